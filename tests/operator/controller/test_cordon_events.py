"""Events of cordoned GPUs."""

from argosy.api.status import CordonedGpu, EnsembleStatus, ServingPoolStatus
from argosy.controller.events.announcements import cordon_events


def status(*gpus: int) -> ServingPoolStatus:
    """Return a pool's status with these GPUs of node `a` cordoned."""
    result = (CordonedGpu(node="a", gpu=gpu, time="2026-01-01T00:00:00Z", message="3 device errors") for gpu in gpus)
    return ServingPoolStatus(cordoned_gpus=tuple(result))


def test_a_cordon_and_its_end_are_reported_once() -> None:
    (cordon,) = cordon_events(None, status(1))
    assert (cordon.type, cordon.reason, cordon.message) == ("Warning", "GpuCordoned", "GPU a/1: 3 device errors")
    assert list(cordon_events(status(1), status(1))) == []
    (over,) = cordon_events(status(1), status())
    assert (over.type, over.reason) == ("Normal", "GpuUncordoned")
    assert [event.subject for event in cordon_events(status(1), status(2))] == ["a/2", "a/1"]
    assert list(cordon_events(None, EnsembleStatus())) == []
