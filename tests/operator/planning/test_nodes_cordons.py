"""Device errors over time, and when they cordon a GPU."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.operator.planning.declared import gpu_node, pool

from argosy.api import ServingPool, ServingPoolStatus
from argosy.planning.facts import CurrentServer, ServerReport
from argosy.planning.nodes.cordons import LEAST_SPAN, UNCORDONED_AT, cordons, with_cordons
from argosy.planning.nodes.device_errors import WINDOW, DeviceErrors
from argosy_agent.contract import FailureKind, LoadedModel, LoadState

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SERVER = CurrentServer("p-0", "a", (0, 1), {"m": (0,), "n": (0,), "both": (0, 1)})
NODES = (gpu_node("a", 2), gpu_node("b", 2))


def failed(model: str, attempts: int, reason: str = "no device", kind: FailureKind = FailureKind.DEVICE) -> LoadedModel:
    """Return a load that failed so many times in a row."""
    return LoadedModel(model, 1, LoadState.UNAVAILABLE, reason, kind, attempts=attempts)


def seen(*rounds: tuple[float, Sequence[LoadedModel]], expired: bool = False) -> DeviceErrors:
    """Return the device errors of the server after rounds, each at so many seconds after noon."""
    errors = DeviceErrors()
    for seconds, models in rounds:
        report = ServerReport("p-0", True, tuple(models), expired=expired)
        errors = errors.after([SERVER], [report], NOON + timedelta(seconds=seconds))
    return errors


def counts(errors: DeviceErrors) -> dict[tuple[str, int], int]:
    """Return the number of errors on each GPU."""
    return {device: len(result) for device, result in errors.recent.items()}


def test_every_attempt_counts_once_on_every_gpu_of_its_model() -> None:
    first, again = failed("both", 1), failed("both", 2)
    assert counts(seen((0, [first]), (1, [first]), (2, []), (3, [first]))) == {("a", 0): 1, ("a", 1): 1}
    assert counts(seen((0, [first]), (1, [again]))) == {("a", 0): 2, ("a", 1): 2}
    assert counts(seen((0, [again]), (1, [first]))) == {("a", 0): 2, ("a", 1): 2}, "the Pod started again"


def test_other_failures_and_old_reports_do_not_count() -> None:
    assert counts(seen((0, [failed("m", 1, kind=FailureKind.LOAD), failed("x", 1)]))) == {}
    assert counts(seen((0, [failed("m", 1)]), expired=True)) == {}


def test_an_error_counts_for_as_long_as_the_window() -> None:
    overdue = WINDOW.total_seconds()
    assert counts(seen((0, [failed("m", 1)]), (overdue - 1, []))) == {("a", 0): 1}
    assert counts(seen((0, [failed("m", 1)]), (overdue, []))) == {}


def decided(errors: DeviceErrors, status: ServingPoolStatus | None = None) -> list[tuple[str, int]]:
    """Return the GPUs that are cordoned then."""
    declared = pool()
    assert isinstance(declared, ServingPool)
    return [(gpu.node, gpu.gpu) for gpu in cordons(declared, status, errors, NODES, NOON).gpus]


SPAN = LEAST_SPAN.total_seconds()


@pytest.mark.parametrize(
    ("at", "cordoned"),
    [((0, 1, SPAN), True), ((0, 1, SPAN - 1), False), ((0, SPAN), False), ((0, 1, 2, 3, 4), False)],
)
def test_three_errors_over_a_minute_cordon(at: Sequence[float], cordoned: bool) -> None:
    errors = seen(*((seconds, [failed("m", attempt)]) for attempt, seconds in enumerate(at, 1)))
    assert decided(errors) == ([("a", 0)] if cordoned else [])


def test_errors_of_several_models_count_together() -> None:
    errors = seen((0, [failed("m", 1)]), (1, [failed("m", 1), failed("n", 1)]), (SPAN, [failed("n", 2)]))
    assert decided(errors) == [("a", 0)]


def enough() -> DeviceErrors:
    """Return as many errors as cordon a GPU."""
    return seen((0, [failed("m", 1)]), (1, [failed("m", 2)]), (SPAN, [failed("m", 3)]))


def test_a_cordon_that_no_status_has_yet_is_decided_again() -> None:
    declared = pool()
    assert isinstance(declared, ServingPool)
    first = cordons(declared, None, enough(), NODES, NOON)
    again = cordons(declared, None, first.errors, NODES, NOON)
    assert again.gpus == first.gpus != ()
    written = cordons(declared, ServingPoolStatus(cordoned_gpus=first.gpus), again.errors, NODES, NOON)
    assert written.gpus == first.gpus
    assert written.errors.recent == {}, "what led to it does not lead to another one once it is lifted"


def test_a_model_that_brought_about_a_cordon_brings_about_no_other_alone() -> None:
    declared = pool()
    assert isinstance(declared, ServingPool)
    (cordon,) = cordons(declared, None, enough(), NODES, NOON).gpus
    status = ServingPoolStatus(cordoned_gpus=(cordon.model_copy(update={"node": "b"}),))
    assert decided(enough(), status) == [("b", 0)]
    other = seen((0, [failed("m", 1)]), (1, [failed("m", 2)]), (SPAN, [failed("n", 1)]))
    assert decided(other, status) == [("a", 0), ("b", 0)]


def at_once(*servers: CurrentServer) -> list[tuple[str, int]]:
    """Return the GPUs that are cordoned where the model `m` fails on all of these in the same rounds."""
    errors = DeviceErrors()
    for attempt, seconds in enumerate((0, 1, SPAN), 1):
        reports = [ServerReport(server.name, True, (failed("m", attempt),)) for server in servers]
        errors = errors.after(servers, reports, NOON + timedelta(seconds=seconds))
    return decided(errors)


def test_a_model_failing_on_several_servers_cordons_the_gpus_of_one() -> None:
    one, other = CurrentServer("p-0", "a", (0, 1), {"m": (0, 1)}), CurrentServer("p-1", "b", (0,), {"m": (0,)})
    assert at_once(one, other) == at_once(one) == [("a", 0), ("a", 1)]


def test_an_annotation_of_a_time_to_come_keeps_cordons_away_until_then() -> None:
    declared = pool(metadata={"annotations": {UNCORDONED_AT: (NOON + timedelta(hours=1)).isoformat()}})
    assert isinstance(declared, ServingPool)
    first = cordons(declared, None, enough(), NODES, NOON)
    assert first.gpus == ()
    assert cordons(declared, None, first.errors, NODES, NOON + timedelta(hours=1, seconds=1)).gpus != ()


def test_what_others_hold_stays_theirs() -> None:
    node = gpu_node("a", 2)
    reserved = replace(node, gpus=(replace(node.gpus[0], withheld_by="Pod x/y"), node.gpus[1]))
    (cordon,) = with_cordons([reserved], {("a", 0), ("a", 1), ("z", 0)})
    assert [gpu.withheld_by for gpu in cordon.gpus] == ["Pod x/y", "the cordon of GPU 1 of node a (device errors)"]
    assert [gpu.cordoned for gpu in cordon.gpus] == [False, True]
