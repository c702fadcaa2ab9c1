"""What models were measured to use: reported at once, then by noticeable changes, and never forgotten."""

from datetime import UTC, datetime, timedelta

from argosy.api.status import FootprintStatus
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.pool.footprints import MeasuredFootprint, measured_footprints
from argosy.status.measured.footprint import restored, with_measured

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MIB = 2**20


def signals(seconds: float, host: float | None, gpu: float | None = None) -> Signals:
    return Signals(NOW + timedelta(seconds=seconds), 10.0, host_memory=host, gpu_memory=gpu)


def after(before: MeasuredFootprint | None, measured: Signals | None) -> MeasuredFootprint | None:
    return measured_footprints({} if before is None else {"m": before}, {"m": measured}).get("m")


def test_the_first_measurement_is_reported_at_once() -> None:
    assert after(None, None) is None
    assert after(None, signals(0, None)) is None
    assert after(None, signals(0, 100 * MIB)) == MeasuredFootprint(NOW, 100 * MIB, None)


def test_a_later_one_by_what_differs_and_by_its_age() -> None:
    first = MeasuredFootprint(NOW, 100 * MIB, None)
    assert after(first, signals(600, 105 * MIB)) is first
    assert after(first, signals(10, 200 * MIB)) is first
    assert after(first, signals(60, 200 * MIB)) == MeasuredFootprint(NOW + timedelta(seconds=60), 200 * MIB, None)
    assert after(first, signals(60, 100 * MIB, 1.0)) == MeasuredFootprint(NOW + timedelta(seconds=60), 100 * MIB, 1)
    assert after(first, signals(1800, 101 * MIB)) == MeasuredFootprint(NOW + timedelta(minutes=30), 101 * MIB, None)


def test_a_model_that_is_not_measured_any_more_keeps_its_report() -> None:
    first = MeasuredFootprint(NOW, 100 * MIB, None)
    assert after(first, None) is first
    assert after(first, signals(600, None)) is first
    assert measured_footprints({"gone": first}, {}) == {}


def test_a_status_has_it_and_gives_it_back() -> None:
    report = MeasuredFootprint(NOW, 100 * MIB, 3 * MIB)
    status = with_measured(FootprintStatus(gpus=2), report)
    assert status is not None
    assert status.gpus == 2
    written = FootprintStatus.model_validate(status.model_dump(by_alias=True, exclude_none=True))
    assert restored(written) == report
    assert restored(None) is None
    assert restored(FootprintStatus()) is None
    assert with_measured(None, None) is None
