"""A higher priority takes the place of a lower one, which drains, and comes back once there is room."""

from dataclasses import replace

import pytest
from tests.operator.planning.declared import GIB, ensemble, gpu_node, model, pool
from tests.operator.planning.simulated_cluster import Cluster

from argosy.api import ConditionType, Resource
from argosy.api.values.identity import PoolKey
from argosy.controller.events.preemption import preemption_events
from argosy.planning.facts import Claim, Gpu, Node, OtherPools, PreemptibleGpu

LOWER = {"preemption": "LowerPriority"}


def two() -> tuple[Node, ...]:
    return gpu_node("a", 1), gpu_node("b", 1)


def preempting(**packing: str) -> Resource:
    return pool(packing={**LOWER, **packing})


LOW = [model("low", memory=60), model("other", memory=60, priority=5)]
URGENT = model("urgent", memory=60, priority=500)


def placed(cluster: Cluster, name: str) -> str:
    return cluster.message(name, ConditionType.PLACED)


def test_without_preemption_the_higher_priority_waits_and_its_status_names_the_way_out() -> None:
    cluster = Cluster(two())
    cluster.settle([pool(), *LOW])
    cluster.settle([pool(), *LOW, URGENT])
    assert set(cluster.serving()) == {"low", "other"}
    assert "LowerPriority" in placed(cluster, "urgent")


def test_the_lowest_priority_leaves_for_the_highest() -> None:
    cluster = Cluster(two())
    cluster.settle([preempting(), *LOW])
    cluster.settle([preempting(), *LOW, URGENT])
    assert set(cluster.serving()) == {"urgent", "other"}
    assert "urgent took its place at 2" in placed(cluster, "low")
    assert "by priority 500, its own is 0, and it had 10 s to end its requests" in placed(cluster, "low")


def test_both_statuses_and_an_event_name_the_other() -> None:
    cluster = Cluster(two())
    before = cluster.settle([preempting(), *LOW])
    statuses, announced = before.statuses, list[tuple[str, str]]()
    for _ in range(60):
        outcome = cluster.tick([preempting(), *LOW, URGENT])
        for identity, status in outcome.statuses.items():
            announced += [(identity, one.reason) for one in preemption_events(statuses.get(identity), status)]
        statuses = outcome.statuses
    assert sorted(announced) == [
        ("InferenceModel default/low", "Preempted"),
        ("InferenceModel default/urgent", "Preempts"),
    ]
    loser, winner = (statuses[f"InferenceModel default/{name}"] for name in ("low", "urgent"))
    assert (loser.preempted_by.name, loser.preempted_by.priority, loser.preempted_by.drain_seconds) == (
        "urgent",
        500,
        10,
    )
    assert [(one.name, one.priority, one.drain_seconds) for one in winner.preempted] == [("low", 0, 10)]
    after = cluster.settle([preempting(), *LOW])
    assert after.statuses["InferenceModel default/low"].preempted_by is None


def test_what_lost_is_not_routed_while_it_drains_and_the_other_is_never_disturbed() -> None:
    cluster = Cluster(two())
    cluster.settle([preempting(), *LOW])
    after = [preempting(), *LOW, URGENT]
    for _ in range(60):
        cluster.tick(after)
        assert "other" in cluster.routed()
        assert not cluster.overcommitted({("a", 0): 80 << 30, ("b", 0): 80 << 30})
    assert set(cluster.routed()) == {"urgent", "other"}


def test_a_restarted_operator_goes_on() -> None:
    cluster = Cluster(two())
    cluster.settle([preempting(), *LOW])
    for _ in range(40):
        cluster.tick([preempting(), *LOW, URGENT])
        cluster.forget()
    assert set(cluster.routed()) == {"urgent", "other"}


def test_a_drain_that_has_begun_ends_although_the_pool_no_longer_preempts() -> None:
    cluster = Cluster(two())
    cluster.settle([preempting(), *LOW])
    for _ in range(3):
        cluster.tick([preempting(), *LOW, URGENT])
    cluster.settle([pool(), *LOW, URGENT])
    assert set(cluster.serving()) == {"urgent", "other"}


def test_it_comes_back_once_the_other_leaves() -> None:
    cluster = Cluster(two())
    cluster.settle([preempting(), *LOW])
    cluster.settle([preempting(), *LOW, URGENT])
    cluster.settle([preempting(), *LOW])
    assert set(cluster.serving()) == {"low", "other"}


def test_an_ensemble_leaves_with_its_models() -> None:
    low = [model("m", memory=30), model("n", memory=30), ensemble("e", "m", "n")]
    cluster = Cluster((gpu_node("a", 1),))
    cluster.settle([preempting(), *low])
    cluster.settle([preempting(), *low, URGENT])
    assert set(cluster.serving()) == {"urgent"}
    cluster.settle([preempting(), *low])
    assert set(cluster.serving()) == {"m", "n", "e"}


@pytest.mark.parametrize("neighbour", [True, False])
def test_a_neighbour_on_the_same_gpu_stays(neighbour: bool) -> None:
    low = [model("low", memory=40), *([model("kept", memory=10, priority=9)] if neighbour else [])]
    cluster = Cluster((gpu_node("a", 1),))
    cluster.settle([preempting(), *low])
    urgent = model("urgent", memory=45, priority=500)
    for _ in range(60):
        cluster.tick([preempting(), *low, urgent])
        assert ("kept" in cluster.routed()) is neighbour
    assert "urgent" in cluster.routed()


CPU = Node("a", (Gpu(0, 80 * GIB, is_cpu=True),))
BUSY = {"compute": "60%"}


@pytest.mark.parametrize(
    ("node", "low", "urgent"),
    [
        (CPU, {"gpuMemory": "60Gi"}, {"gpuMemory": "60Gi"}),
        (gpu_node("a"), {"gpuMemory": "10Gi", **BUSY}, {"gpuMemory": "10Gi", **BUSY}),
        (gpu_node("a"), {"gpuMemory": "8Gi"}, {"gpuMemory": "60Gi"}),
    ],
    ids=["memory of a host without GPUs", "compute", "memory within the headroom"],
)
def test_what_lost_leaves_whatever_it_lost(node: Node, low: dict[str, str], urgent: dict[str, str]) -> None:
    loser, winner = model("low", footprint=low), model("urgent", footprint=urgent, priority=500)
    cluster = Cluster((node,))
    cluster.settle([preempting(), loser])
    cluster.settle([preempting(), loser, winner])
    assert set(cluster.serving()) == set(cluster.routed()) == {"urgent"}
    assert "it had 10 s to end its requests" in placed(cluster, "low")


def test_on_a_host_without_gpus_the_winner_is_loaded_once_the_other_has_left() -> None:
    cluster = Cluster((CPU,))
    cluster.settle([preempting(), model("low", memory=60)])
    for _ in range(40):
        cluster.tick([preempting(), model("low", memory=60), URGENT])
        assert not cluster.serving().keys() >= {"low", "urgent"}
    assert set(cluster.routed()) == {"urgent"}


def test_what_serves_and_is_declared_too_large_stays_next_to_a_higher_priority() -> None:
    small, neighbour = model("low", memory=10), model("urgent", memory=20, priority=500)
    for node in (CPU, gpu_node("a")):
        cluster = Cluster((node,))
        cluster.settle([preempting(), small, neighbour])
        cluster.settle([preempting(), model("low", memory=500), neighbour])
        assert set(cluster.routed()) == {"low", "urgent"}


def claimed(cluster: Cluster, pool: str) -> Cluster:
    """Return the cluster in which a pool claims the GPU of node b for a model of priority 500."""
    claims = {("b", 0): Claim(PoolKey(pool), "theirs", (False, -500))}
    cluster.snapshot = replace(cluster.snapshot, others=OtherPools(claims))
    return cluster


def test_what_loses_to_another_pool_drains_before_its_server_gives_up_the_gpu() -> None:
    cluster = Cluster(two())
    low = [preempting(), *LOW]
    cluster.settle(low)
    (name,) = (name for name, server in cluster.servers.items() if server.slot() == ("b", (0,)))
    (lost,) = cluster.servers[name].loaded
    claimed(cluster, "default/q")
    for second in range(9):
        cluster.tick(low)
        assert lost not in cluster.routed()
        assert name in cluster.servers, f"its requests have 10 s, and not {second}"
    cluster.settle(low)
    assert name not in cluster.servers
    assert "theirs of ServingPool default/q took its place" in placed(cluster, lost)
    cluster.snapshot = replace(cluster.snapshot, others=OtherPools())
    cluster.settle(low)
    assert set(cluster.serving()) == {"low", "other"}


def test_a_pool_that_never_preempts_leaves_no_gpu_to_a_claim() -> None:
    cluster = Cluster(two())
    cluster.settle([pool(), *LOW])
    claimed(cluster, "default/q").settle([pool(), *LOW])
    assert set(cluster.serving()) == {"low", "other"}


def test_of_another_namespace_the_status_names_only_the_pool() -> None:
    cluster = Cluster(two())
    cluster.settle([preempting(), *LOW])
    outcome = claimed(cluster, "team/q").settle([preempting(), *LOW])
    losses = [outcome.statuses[f"InferenceModel default/{name}"].preempted_by for name in ("low", "other")]
    (loss,) = (one for one in losses if one is not None)
    assert (loss.name, loss.pool, loss.priority) == ("", "team/q", 500)


def test_a_winner_names_the_loser_of_another_pool_until_that_is_placed_again() -> None:
    theirs = PoolKey("default/q")
    gpu = PreemptibleGpu(theirs, "q-0", (((True, -7), "lost"),), 1)
    node = gpu_node("a", 1)
    held = replace(node, gpus=tuple(replace(one, withheld_by="ServingPool default/q") for one in node.gpus))
    cluster, urgent = Cluster((held,)), [pool(), URGENT]
    cluster.snapshot = replace(cluster.snapshot, others=OtherPools(preemptible={("a", 0): gpu}))
    status = cluster.tick(urgent).statuses["InferenceModel default/urgent"]
    assert [(one.name, one.pool, one.priority) for one in status.preempted] == [("lost", "default/q", 7)]
    assert "1 GPU that servers of ServingPool default/q give up" in placed(cluster, "urgent")
    cluster.nodes = (node,)
    cluster.snapshot = replace(cluster.snapshot, others=OtherPools(lacking=frozenset({(theirs, "lost")})))
    status = cluster.settle(urgent).statuses["InferenceModel default/urgent"]
    assert [one.name for one in status.preempted] == ["lost"]
    cluster.snapshot = replace(cluster.snapshot, others=OtherPools())
    assert not cluster.settle(urgent).statuses["InferenceModel default/urgent"].preempted
