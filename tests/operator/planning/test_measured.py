"""What was measured of a GPU becomes a footprint: the larger one, and only where it is a fact."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.operator.planning.declared import GIB, gpu_node, model

from argosy.api import InferenceModel
from argosy.planning.demand.footprint import footprint_of
from argosy.planning.demand.measured import CRASHES_COUNT, Crash, MeasuredFootprint, MeasuredMemory, measured_memory
from argosy.planning.facts import Footprint, Gpu, Node
from argosy.planning.rollouts.revision import revision_of
from argosy.status.measured.deviation import LOWER_AFTER, footprint_deviation

NOW = datetime(2026, 1, 1, tzinfo=UTC)
L4 = gpu_node("a", memory=24, product="L4")
HEADROOM = 200
USABLE = 24 * GIB * 8 // 10


def measured(of: InferenceModel, gib: float, instances: int = 1, product: str = "L4") -> MeasuredFootprint:
    size = int(gib * GIB)
    revision = revision_of(of).name
    return MeasuredFootprint(NOW, None, size, size, NOW, 1, revision, instances, "p-0", product)


def counting(
    of: InferenceModel, footprint: MeasuredFootprint, *nodes: Node, now: datetime = NOW
) -> MeasuredMemory | None:
    return measured_memory([of], {of.identity: footprint}, nodes or (L4,), HEADROOM, now).get(of.name)


def need(of: InferenceModel, footprint: MeasuredFootprint, versions: int = 1) -> Footprint:
    return footprint_of(of, versions, measured=counting(of, footprint))


def undeclared(**spec: Any) -> InferenceModel:
    return model("m", footprint=None, **spec)


def test_the_larger_one_of_declared_and_measured_counts() -> None:
    declared = model("m", memory=4, instances=2)
    assert need(declared, measured(declared, 12, instances=2)).memory == 12 * GIB
    assert need(declared, measured(declared, 6, instances=2)).memory == 8 * GIB
    assert need(declared, measured(declared, 3), versions=2).memory == 16 * GIB


def test_further_instances_take_as_much_as_a_measured_one() -> None:
    declared = model("m", memory=4, instances=3)
    assert need(declared, measured(declared, 5)).memory == 15 * GIB


def test_a_model_that_declares_nothing_shares_a_gpu_once_it_is_measured() -> None:
    assert footprint_of(undeclared()) == Footprint(gpus=1, assumed=True)
    assert need(undeclared(), measured(undeclared(), 3)) == Footprint(memory=3 * GIB)


def test_what_runs_beyond_the_headroom_stays_placeable() -> None:
    declared = model("m", memory=4)
    assert need(declared, measured(declared, 23)).memory == USABLE
    assert need(undeclared(), measured(undeclared(), 23)).memory == USABLE
    assert need(model("m", memory=4, instances=2), measured(declared, 12)).memory == 24 * GIB


def test_a_measurement_of_another_revision_counts_only_where_nothing_is_declared() -> None:
    former = measured(model("m", version=1, memory=4), 10)
    assert counting(model("m", version=2, memory=4), former) is None
    assert need(undeclared(version=2), former).memory == 10 * GIB


@pytest.mark.parametrize(
    "spec",
    [
        {"footprint": {"device": "CPU"}},
        {"footprint": {"gpus": 1}},
        {"footprint": {"gpus": 1, "gpuMemory": "4Gi"}},
        {"footprint": None, "modelFormat": {"name": "vllm"}},
    ],
)
def test_it_does_not_count_for(spec: dict[str, Any]) -> None:
    other = model("m", **spec)
    assert counting(other, measured(other, 10)) is None


def test_it_counts_where_the_pool_has_such_gpus() -> None:
    declared = model("m", memory=4)
    assert counting(declared, measured(declared, 10, product="H100")) is None
    assert counting(declared, measured(declared, 10), L4, gpu_node("b", product="H100")) is not None
    cpu = Node("c", (Gpu(0, 24 * GIB, is_cpu=True),), product="L4")
    assert counting(declared, measured(declared, 10), cpu) is None


def test_without_a_gpu_there_is_no_fact() -> None:
    declared = model("m", memory=4)
    assert counting(declared, replace(measured(declared, 10), gpu=None, peak=None)) is None


def deviation(declared: InferenceModel, gib: float, later: timedelta = timedelta()) -> str:
    return footprint_deviation(declared, counting(declared, measured(declared, gib)), NOW + later)


def test_a_noticeable_difference_is_reported_with_the_patch() -> None:
    declared = model("m", memory=4)
    assert deviation(declared, 4.7) == ""
    assert deviation(declared, 6.25) == (
        "spec.footprint.gpuMemory is 4 GiB, and an instance has used up to 6.2 GiB on L4 since 2026-01-01T00:00:00Z; "
        "the plan counts that. Declare it: kubectl patch inferencemodel m -n default --type merge -p "
        '\'{"spec":{"footprint":{"gpuMemory":"6400Mi"}}}\''
    )


def test_less_is_reported_after_an_hour() -> None:
    declared = model("m", memory=4)
    assert deviation(declared, 1) == ""
    assert "the rest stays unused" in deviation(declared, 1, LOWER_AFTER)
    assert '"gpuMemory":"1024Mi"' in deviation(declared, 1, LOWER_AFTER)


def test_an_engine_that_takes_what_is_declared_is_not_advised() -> None:
    engine = model("m", memory=4, modelFormat={"name": "vllm"})
    assert deviation(engine, 8) == ""
    assert need(engine, measured(engine, 8)).memory == 8 * GIB


def crashed(of: InferenceModel, gib: int) -> MeasuredFootprint:
    return replace(measured(of, gib), crashed=True, crash=Crash(gib * GIB, NOW))


def test_what_a_crashed_process_had_is_no_footprint_but_a_peak_for_a_day() -> None:
    declared = model("m", memory=4)
    assert need(declared, crashed(declared, 12)) == Footprint(memory=4 * GIB, peak=12 * GIB)
    assert need(declared, crashed(declared, 23)).peak == USABLE
    again = replace(measured(declared, 5), crash=Crash(12 * GIB, NOW))
    assert need(declared, again) == Footprint(memory=5 * GIB, peak=12 * GIB)
    assert counting(declared, crashed(declared, 12), now=NOW + CRASHES_COUNT) is None


def test_a_crash_of_another_revision_or_of_what_has_no_neighbours_counts_for_nothing() -> None:
    former = crashed(model("m", version=1, memory=4), 12)
    assert counting(model("m", version=2, memory=4), former) is None
    alone = model("m", footprint={"gpus": 1, "gpuMemory": "4Gi"})
    assert counting(alone, crashed(alone, 12)) is None


def test_a_crash_is_reported_with_the_time_until_which_it_counts() -> None:
    declared = model("m", memory=4)
    message = footprint_deviation(declared, counting(declared, crashed(declared, 12)), NOW)
    assert message == (
        "an instance had 12 GiB of a GPU before its process crashed at 2026-01-01T00:00:00Z, and 4 GiB is declared: "
        "until 2026-01-02T00:00:00Z the plan leaves it 12 GiB next to other models, where nothing lacks a place for "
        "that. If it needs so much, declare it: kubectl patch inferencemodel m -n default --type merge -p "
        '\'{"spec":{"footprint":{"gpuMemory":"12288Mi"}}}\''
    )
    assert footprint_deviation(declared, counting(declared, crashed(declared, 4)), NOW) == ""
