"""What models were measured to use: reported at once, then by noticeable changes, and never forgotten."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.operator.planning.declared import gpu_node, model

from argosy.api import Condition, ConditionStatus, ConditionType, Reason
from argosy.api.status import FootprintStatus, InferenceModelStatus
from argosy.autoscaling.metrics.signals import MemorySignals, Signals
from argosy.autoscaling.pool.footprints import MeasuredModel, measured_footprints
from argosy.planning.demand.measured import CRASHES_COUNT, Crash, MeasuredFootprint, measured_memory
from argosy.planning.rollouts.revision import revision_of
from argosy.status.measured.footprint import restored, with_measured

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MIB = 2**20
MODEL = model("m")


def status(loaded: ConditionStatus, reconciling: ConditionStatus) -> InferenceModelStatus:
    conditions = (
        Condition(type=ConditionType.LOADED, status=loaded, reason=Reason.LOADED),
        Condition(type=ConditionType.RECONCILING, status=reconciling, reason=Reason.SETTLED),
    )
    return InferenceModelStatus(conditions=conditions)


SETTLED = status(ConditionStatus.TRUE, ConditionStatus.FALSE)


def measured(
    seconds: float, host: float | None, gpu: float | None = None, version: int = 1, instances: int = 1
) -> MeasuredModel:
    memory = MemorySignals(version, "p-0", instances, host, gpu)
    signals = Signals(NOW + timedelta(seconds=seconds), 10.0, memory=(memory,))
    return MeasuredModel(MODEL, SETTLED, signals, {"p-0": "L4"})


def after(before: MeasuredFootprint | None, one: MeasuredModel) -> MeasuredFootprint | None:
    return measured_footprints({} if before is None else {MODEL.identity: before}, [one]).get(MODEL.identity)


def report(seconds: float, host: int | None, gpu: int | None = None) -> MeasuredFootprint:
    at = NOW + timedelta(seconds=seconds)
    return MeasuredFootprint(
        at, host, gpu, gpu, NOW, version=1, revision=revision_of(MODEL).name, server="p-0", product="L4"
    )


def test_the_first_measurement_is_reported_at_once() -> None:
    assert after(None, MeasuredModel(MODEL, SETTLED, None, {})) is None
    assert after(None, measured(0, None)) is None
    assert after(None, measured(0, 100.0 * MIB)) == report(0, 100 * MIB)


def test_a_later_one_by_what_differs_and_by_its_age() -> None:
    first = report(0, 100 * MIB)
    assert after(first, measured(600, 105 * MIB)) is first
    assert after(first, measured(10, 200 * MIB)) is first
    assert after(first, measured(60, 200 * MIB)) == report(60, 200 * MIB)
    assert after(first, measured(60, 100 * MIB, 1.0)) == report(60, 100 * MIB, 1)
    assert after(first, measured(1800, 101 * MIB)) == report(1800, 101 * MIB)


def test_the_peak_of_a_gpu_grows_by_more_than_noise_and_never_falls() -> None:
    first = report(0, None, 1000 * MIB)
    assert after(first, measured(60, None, 1040 * MIB)) is first
    grown = after(first, measured(60, None, 1060 * MIB))
    assert grown is not None
    assert (grown.peak, grown.since) == (1060 * MIB, NOW)
    fallen = after(grown, measured(120, None, 500 * MIB))
    assert fallen is not None
    assert (fallen.gpu, fallen.peak) == (500 * MIB, 1060 * MIB)


def test_another_revision_or_number_of_instances_begins_again() -> None:
    first = report(0, None, 1000 * MIB)
    fewer = after(first, measured(60, None, 1500 * MIB, instances=3))
    assert fewer is not None
    assert (fewer.peak, fewer.instances, fewer.per_instance) == (1500 * MIB, 3, 500 * MIB)
    former = replace(first, revision="of another spec")
    assert after(former, measured(1, None, 400 * MIB)) == replace(
        report(1, None, 400 * MIB), since=NOW + timedelta(seconds=1)
    )


def test_after_a_crash_the_next_process_begins_again() -> None:
    leaked = report(0, None, 900 * MIB)
    crash = measured(5, None)
    assert crash.signals is not None
    of_another = replace(crash, signals=replace(crash.signals, memory=(), crashed=("p-1",)))
    assert after(leaked, of_another) is leaked
    crashed = after(leaked, replace(crash, signals=replace(crash.signals, memory=(), crashed=("p-0",))))
    first = Crash(900 * MIB, NOW + timedelta(seconds=5))
    assert crashed == replace(leaked, crashed=True, crash=first)
    assert after(crashed, measured(6, None)) is crashed
    fresh = after(crashed, measured(20, None, 100 * MIB))
    assert fresh is not None
    assert (fresh.peak, fresh.crashed, fresh.since) == (100 * MIB, False, NOW + timedelta(seconds=20))
    assert fresh.crash == first
    signals = replace(crash.signals, at=NOW + timedelta(seconds=60), memory=(), crashed=("p-0",))
    again = after(fresh, replace(crash, signals=signals))
    assert again is not None
    assert again.crash == Crash(900 * MIB, NOW + timedelta(seconds=60))


def test_a_crash_counts_for_a_day_and_for_one_revision() -> None:
    crashed = replace(report(0, None, 900 * MIB), crashed=True, crash=Crash(900 * MIB, NOW))
    later = after(crashed, measured(CRASHES_COUNT.total_seconds(), None, 100 * MIB))
    other = after(replace(crashed, revision="of another spec"), measured(20, None, 100 * MIB))
    assert later is not None
    assert other is not None
    assert (later.crash, other.crash) == (None, None)
    written = with_measured(None, crashed)
    assert restored(InferenceModelStatus(footprint=written)) == replace(crashed, crashed=False, peak=None)


def test_memory_of_a_crashed_process_counts_only_without_a_declaration() -> None:
    crashed = replace(report(0, None, 40 * 2**30), crashed=True, product="")
    nodes = [gpu_node("n")]
    assert measured_memory([MODEL], {MODEL.identity: crashed}, nodes, 0, NOW) == {}
    undeclared = model("m", footprint=None)
    assert measured_memory([undeclared], {undeclared.identity: crashed}, nodes, 0, NOW)["m"].per_instance == 40 * 2**30
    written = with_measured(None, crashed)
    assert written is not None
    assert written.measured is not None
    assert written.measured.peak_gpu_memory is None


def test_of_a_version_that_is_not_declared_nothing_is_reported() -> None:
    assert after(None, measured(0, 100.0 * MIB, version=7)) is None


@pytest.mark.parametrize(
    "unsettled",
    [
        None,
        InferenceModelStatus(),
        status(ConditionStatus.FALSE, ConditionStatus.FALSE),
        status(ConditionStatus.TRUE, ConditionStatus.TRUE),
    ],
)
def test_while_servers_come_to_a_spec_nothing_is_reported(unsettled: object) -> None:
    assert after(None, replace(measured(0, 100.0 * MIB), status=unsettled)) is None


@pytest.mark.parametrize(("loaded", "per_gpu"), [(4, 2), (2, 1), (1, 1), (3, 3)])
def test_instances_of_several_gpus(loaded: int, per_gpu: int) -> None:
    two = model("m", footprint={"gpus": 2}, instanceGroups=[{"kind": "KIND_GPU"}])
    one = replace(measured(0, None, 100.0 * MIB, instances=loaded), model=two)
    footprint = after(None, one)
    assert footprint is not None
    assert footprint.instances == per_gpu


def test_a_model_that_is_not_measured_any_more_keeps_its_report() -> None:
    first = report(0, 100 * MIB)
    assert after(first, MeasuredModel(MODEL, SETTLED, None, {})) is first
    assert after(first, measured(600, None)) is first
    assert measured_footprints({"gone": first}, []) == {}


def test_a_status_has_it_and_gives_it_back() -> None:
    first = report(0, 100 * MIB, 3 * MIB)
    footprint = with_measured(FootprintStatus(gpus=2), first)
    assert footprint is not None
    assert footprint.gpus == 2
    written = InferenceModelStatus(footprint=footprint).model_dump(by_alias=True, exclude_none=True)
    assert restored(InferenceModelStatus.model_validate(written)) == first
    assert restored(None) is None
    assert restored(InferenceModelStatus(footprint=FootprintStatus())) is None
    assert with_measured(None, None) is None


def test_a_status_of_an_earlier_release_counts_for_no_plan() -> None:
    written = {"footprint": {"measured": {"gpuMemory": "2Gi", "time": "2026-01-01T00:00:00Z"}}}
    footprint = restored(InferenceModelStatus.model_validate(written))
    assert footprint is not None
    assert footprint.per_instance == 0
