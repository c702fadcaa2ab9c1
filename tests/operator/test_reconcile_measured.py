"""Measured footprints in rounds: what shares a GPU, what moves, what is reported, what a restart leaves."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.operator.planning.declared import GIB, gpu_node, model, pool
from tests.operator.planning.simulated_cluster import START, Cluster

from argosy.api import ConditionType, InferenceModel, Resource
from argosy.api.status import CrashStatus, InferenceModelStatus
from argosy.controller.events.announcements import footprint_events
from argosy.planning.demand.measured import Crash, MeasuredFootprint
from argosy.planning.rollouts.revision import revision_of
from argosy.reconcile import reconcile
from argosy.replay.codec import decoded_snapshot, encoded
from argosy.snapshot import FleetSnapshot

POOL = pool(memoryHeadroom="20%")


def measure(cluster: Cluster, **gib: float) -> None:
    """Let the models have been measured to use so many GiB of a GPU."""
    assert cluster.outcome is not None
    footprints = dict(cluster.snapshot.footprints)
    for name, size in gib.items():
        one = cluster.outcome.valid[f"InferenceModel default/{name}"]
        assert isinstance(one, InferenceModel)
        used = int(size * GIB)
        footprints[one.identity] = MeasuredFootprint(
            cluster.now, None, used, used, START, 1, revision_of(one).name, 1, "p-0"
        )
    cluster.snapshot = replace(cluster.snapshot, footprints=footprints)


def gpu_of(cluster: Cluster, name: str) -> tuple[str, tuple[int, ...]]:
    """Return the node and the GPUs of a model's only replica."""
    (placement,) = status(cluster, name).placement
    return placement.node, placement.gpus


def status(cluster: Cluster, name: str) -> InferenceModelStatus:
    assert cluster.outcome is not None
    result = cluster.outcome.statuses[f"InferenceModel default/{name}"]
    assert isinstance(result, InferenceModelStatus)
    return result


def test_a_model_that_declares_nothing_shares_its_gpu_once_it_is_measured() -> None:
    cluster, resources = Cluster((gpu_node("a"),)), [POOL, model("m", footprint=None), model("n", memory=30)]
    cluster.settle([POOL, model("m", footprint=None)])
    cluster.settle(resources)
    assert status(cluster, "n").replicas == 0
    measure(cluster, m=20)
    cluster.keep_routed(resources, ["m"])
    assert gpu_of(cluster, "m") == gpu_of(cluster, "n")
    assert status(cluster, "n").available_replicas == 1


def test_growth_that_fits_moves_nothing() -> None:
    cluster, resources = Cluster((gpu_node("a", 2),)), [POOL, model("m", memory=20), model("n", memory=20)]
    cluster.settle(resources)
    before = gpu_of(cluster, "m"), gpu_of(cluster, "n")
    measure(cluster, m=40)
    cluster.settle(resources)
    assert (gpu_of(cluster, "m"), gpu_of(cluster, "n")) == before


def test_what_outgrows_its_gpu_no_longer_shares_it_and_stays_reachable() -> None:
    nodes = (gpu_node("a"), gpu_node("b"))
    cluster, resources = Cluster(nodes), [POOL, model("m", memory=20), model("n", memory=30)]
    cluster.settle(resources)
    assert gpu_of(cluster, "m") == gpu_of(cluster, "n")
    measure(cluster, m=50)
    cluster.keep_routed(resources, ["m", "n"])
    assert gpu_of(cluster, "m") != gpu_of(cluster, "n")


def test_a_measurement_leaves_no_model_unplaced() -> None:
    cluster, resources = Cluster((gpu_node("a"),)), [POOL, model("m", memory=20)]
    cluster.settle(resources)
    measure(cluster, m=75)
    cluster.settle(resources)
    assert status(cluster, "m").available_replicas == 1


def test_a_difference_is_reported_in_the_status_and_once_as_an_event() -> None:
    cluster, resources = Cluster((gpu_node("a"),)), [POOL, model("m", memory=20)]
    cluster.settle(resources)
    before = status(cluster, "m")
    measure(cluster, m=30)
    cluster.settle(resources)
    message = cluster.message("m", ConditionType.VALID)
    assert message.startswith("FootprintDiffers: spec.footprint.gpuMemory is 20 GiB, and an instance has used")
    assert status(cluster, "m").ready
    (event,) = footprint_events(before, status(cluster, "m"))
    assert (event.reason, event.message) == ("FootprintDiffers", message.partition(": ")[2])
    assert not list(footprint_events(status(cluster, "m"), status(cluster, "m")))


def test_another_operator_process_plans_with_what_the_status_says() -> None:
    cluster = Cluster((gpu_node("a"),))
    resources: list[Resource] = [POOL, model("m", footprint=None), model("n", memory=30)]
    cluster.settle(resources[:2])
    measure(cluster, m=20)
    cluster.settle(resources)
    placed = gpu_of(cluster, "m"), gpu_of(cluster, "n")
    cluster.snapshot = replace(cluster.snapshot, footprints={})
    cluster.settle(resources)
    assert (gpu_of(cluster, "m"), gpu_of(cluster, "n")) == placed


def test_a_bundle_has_the_measurements() -> None:
    cluster, resources = Cluster((gpu_node("a"),)), [POOL, model("m", footprint=None), model("n", memory=30)]
    cluster.settle(resources[:2])
    measure(cluster, m=20)
    snapshot = replace(cluster.snapshot, resources=tuple(resources), nodes=cluster.nodes)
    again = decoded_snapshot(encoded(snapshot))
    assert again.footprints == snapshot.footprints
    assert _placements(again) == _placements(snapshot) != _placements(replace(snapshot, footprints={}, statuses={}))


def _placements(snapshot: FleetSnapshot) -> list[str]:
    outcome = reconcile(snapshot, START + timedelta(minutes=5))
    return [placement.model for of_pool in outcome.plan.pools for s in of_pool.servers for placement in s.placements]


def crash(cluster: Cluster, **gib: float) -> None:
    """Let processes of the models have crashed that had so many GiB of a GPU."""
    measure(cluster, **gib)
    footprints = {
        name: replace(one, crashed=True, crash=Crash(one.per_instance, cluster.now)) if name in crashed else one
        for crashed in [{f"InferenceModel default/{name}" for name in gib}]
        for name, one in cluster.snapshot.footprints.items()
    }
    cluster.snapshot = replace(cluster.snapshot, footprints=footprints)


def test_what_crashed_where_it_grew_is_not_packed_next_to_others_again_for_a_day() -> None:
    nodes = (gpu_node("a"), gpu_node("b"))
    auto = pool(memoryHeadroom="20%", packing={"consolidate": "Auto", "consolidateAfter": "5s"})
    cluster, resources = Cluster(nodes), [auto, model("m", memory=20), model("n", memory=30)]
    cluster.settle(resources)
    measure(cluster, m=50)
    cluster.keep_routed(resources, ["m", "n"])
    assert gpu_of(cluster, "m") != gpu_of(cluster, "n")
    crash(cluster, m=50)
    for _ in range(90):
        cluster.tick(resources)
    assert gpu_of(cluster, "m") != gpu_of(cluster, "n")
    assert "an instance had 50 GiB of a GPU before its process crashed" in cluster.message("m", ConditionType.VALID)
    cluster.now += timedelta(days=1)
    for _ in range(90):
        cluster.tick(resources)
    assert gpu_of(cluster, "m") == gpu_of(cluster, "n")
    assert cluster.message("m", ConditionType.VALID) == "Valid: "


@pytest.mark.parametrize("priority", [0, 100])
def test_a_crash_evicts_nothing_and_its_model_stays(priority: int) -> None:
    lower = pool(memoryHeadroom="20%", packing={"preemption": "LowerPriority"})
    resources = [lower, model("m", memory=20, priority=priority), model("n", memory=30)]
    cluster = Cluster((gpu_node("a"),))
    cluster.settle(resources)
    crash(cluster, m=60)
    cluster.keep_routed(resources, ["m", "n"])
    assert gpu_of(cluster, "m") == gpu_of(cluster, "n")
    more = [*resources, model("o", memory=10)]
    cluster.settle(more)
    assert status(cluster, "o").available_replicas == 1


def test_what_has_crashed_is_placed_where_there_is_less_than_it_had() -> None:
    resources = [POOL, model("m", memory=20), model("n", memory=20)]
    cluster = Cluster((gpu_node("a"), gpu_node("b", memory=60)))
    cluster.settle(resources)
    crash(cluster, m=60)
    cluster.settle(resources)
    cluster.lose(gpu_of(cluster, "m")[0])
    cluster.settle(resources)
    assert status(cluster, "m").replicas == 1


@pytest.mark.parametrize("field", ["time", "since", "crash"])
@pytest.mark.parametrize("text", ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"])
def test_a_time_in_the_status_that_cannot_be_reckoned_with_stops_nothing(field: str, text: str) -> None:
    cluster = Cluster((gpu_node("a"),))
    resources: list[Resource] = [POOL, model("m", memory=20)]
    cluster.settle(resources)
    measure(cluster, m=30)
    cluster.settle(resources)
    before = status(cluster, "m")
    assert before.footprint is not None
    assert before.footprint.measured is not None
    odd = CrashStatus(peak_gpu_memory=30 * GIB, time=text) if field == "crash" else text
    measured = before.footprint.measured.model_copy(update={field: odd})
    footprint = before.footprint.model_copy(update={"measured": measured})
    statuses = {"InferenceModel default/m": before.model_copy(update={"footprint": footprint})}
    snapshot = replace(cluster.snapshot, footprints={}, statuses={**cluster.snapshot.statuses, **statuses})
    assert not any(plan.unplaced for plan in reconcile(snapshot, cluster.now).plan.pools)
