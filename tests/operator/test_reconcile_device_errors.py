"""A GPU that does not work: its models move to others, and nothing is placed there until it is repaired."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.operator.planning.declared import gpu_node, model, pool
from tests.operator.planning.simulated_cluster import POOL, Cluster

from argosy.api import ConditionType, ServingPoolStatus
from argosy.planning.nodes.cordons import UNCORDONED_AT
from argosy.snapshot import PoolSnapshot


def slots(cluster: Cluster) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return each server's node and GPUs."""
    return {name: server.slot() for name, server in cluster.servers.items()}


def pool_status(cluster: Cluster) -> ServingPoolStatus:
    """Return the pool's status, as it was last written."""
    result = cluster.snapshot.statuses["ServingPool default/p"]
    assert isinstance(result, ServingPoolStatus)
    return result


def cordoned(cluster: Cluster) -> list[tuple[str, int]]:
    """Return the GPUs that the pool's status names as cordoned."""
    return [(gpu.node, gpu.gpu) for gpu in pool_status(cluster).cordoned_gpus]


def for_minutes(cluster: Cluster, minutes: int, resources: list) -> None:  # type: ignore[type-arg]
    """Run rounds of ten seconds."""
    for _ in range(6 * minutes):
        cluster.tick(resources, seconds=10)


def test_device_errors_of_loads_cordon_the_gpu_and_move_the_server() -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b")), broken=frozenset({("a", 0)}))
    resources = [pool(), model("m")]
    for _ in range(4):
        cluster.tick(resources, seconds=10)
    assert slots(cluster) == {"p-0": ("a", (0,))}, "a driver that starts again is no reason yet"
    assert cordoned(cluster) == []
    assert cluster.message("m", ConditionType.LOADED).startswith("DeviceError: ")
    for_minutes(cluster, 3, resources)
    assert list(slots(cluster).values()) == [("b", (0,))]
    assert cluster.routed() == {"m": set(slots(cluster))}
    assert cordoned(cluster) == [("a", 0)]
    (cordon,) = pool_status(cluster).cordoned_gpus
    assert cordon.models == ("m",)
    assert "CUDA error: uncorrectable ECC error encountered" in cordon.message
    assert f"kubectl annotate -n default servingpool p --overwrite {UNCORDONED_AT}=" in cordon.message
    placed = pool_status(cluster).condition(ConditionType.PLACED)
    assert placed is not None
    assert "cordoned for device errors: a/0" in placed.message


def test_what_has_no_other_gpu_names_the_cordoned_gpu() -> None:
    cluster = Cluster((gpu_node("a"),), broken=frozenset({("a", 0)}))
    for_minutes(cluster, 4, [pool(), model("m")])
    assert slots(cluster) == {}
    assert cluster.message("m", ConditionType.PLACED).startswith("NoFreeGpus: ")
    assert "the cordon of GPU 0 of node a" in cluster.message("m", ConditionType.PLACED)


def broken_and_cordoned(nodes: int = 1) -> tuple[Cluster, list]:  # type: ignore[type-arg]
    """Return a cluster that has cordoned its first GPU."""
    cluster = Cluster(tuple(gpu_node(name, boot_id="1") for name in "ab"[:nodes]), broken=frozenset({("a", 0)}))
    resources = [pool(), model("m")]
    for_minutes(cluster, 4, resources)
    assert cordoned(cluster) == [("a", 0)]
    cluster.broken = frozenset()
    return cluster, resources


def test_an_operator_that_starts_again_knows_of_it() -> None:
    cluster, resources = broken_and_cordoned()
    written = cluster.snapshot.statuses
    cluster.forget()
    cluster.snapshot = replace(cluster.snapshot, pools={POOL: PoolSnapshot(cluster.snapshot.pool(POOL).servers)})
    cluster.tick(resources)
    assert cluster.snapshot.statuses["ServingPool default/p"] == written["ServingPool default/p"]
    assert slots(cluster) == {}


def test_a_node_that_started_again_has_no_cordon() -> None:
    cluster, resources = broken_and_cordoned()
    cluster.nodes = (gpu_node("a", boot_id="2"),)
    cluster.settle(resources)
    assert cordoned(cluster) == []
    assert set(cluster.routed()) == {"m"}


def test_a_node_that_is_gone_takes_its_cordon_with_it() -> None:
    cluster, resources = broken_and_cordoned(nodes=2)
    cluster.lose("a")
    cluster.tick(resources)
    assert cordoned(cluster) == []


def test_the_pools_annotation_lifts_what_was_cordoned_before() -> None:
    cluster, resources = broken_and_cordoned()
    for at, lifted in ((cluster.now - timedelta(hours=1), False), (cluster.now, True)):
        annotated = pool(metadata={"annotations": {UNCORDONED_AT: at.isoformat()}})
        cluster.tick([annotated, *resources[1:]])
        assert (cordoned(cluster) == []) is lifted
    cluster.settle([annotated, *resources[1:]])
    assert set(cluster.routed()) == {"m"}
    cluster.broken = frozenset({("a", 0)})
    cluster.restart(next(iter(cluster.servers)))
    for_minutes(cluster, 4, [annotated, *resources[1:]])
    assert cordoned(cluster) == [("a", 0)], "what happens later is not lifted by it"


def test_an_annotation_that_is_no_time_lifts_nothing() -> None:
    cluster, resources = broken_and_cordoned()
    for text in ("yesterday", "2099-01-01T00:00:00", ""):
        cluster.tick([pool(metadata={"annotations": {UNCORDONED_AT: text}}), *resources[1:]])
        assert cordoned(cluster) == [("a", 0)]
        (placed,) = [condition.message for condition in pool_status(cluster).conditions if condition.type == "Placed"]
        assert (f"metadata.annotations[{UNCORDONED_AT}]: {text!r} is no time" in placed) is bool(text)


@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_a_model_that_fails_wherever_it_is_cordons_one_gpu_alone(replicas: int) -> None:
    every = frozenset({("a", 0), ("a", 1), ("b", 0), ("b", 1)})
    cluster = Cluster((gpu_node("a", 2), gpu_node("b", 2)), broken=every)
    for_minutes(cluster, 20, [pool(), model("m", minReplicas=replicas)])
    assert len(cordoned(cluster)) == 1


def test_a_gpu_on_which_another_model_serves_is_not_cordoned() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("n")])
    cluster.broken = frozenset({("a", 0)})
    for_minutes(cluster, 5, [pool(), model("n"), model("m")])
    assert cordoned(cluster) == []
    assert set(cluster.routed()) == {"n"}
    cluster.restart("p-0")
    for_minutes(cluster, 5, [pool(), model("n"), model("m")])
    assert cordoned(cluster) == [("a", 0)]


def test_another_gpu_of_the_node_is_taken_where_no_other_node_has_one() -> None:
    cluster = Cluster((gpu_node("a", 2),), broken=frozenset({("a", 0)}))
    resources = [pool(), model("m", memory=60)]
    for_minutes(cluster, 4, resources)
    assert list(slots(cluster).values()) == [("a", (1,))]
    cluster.nodes = (gpu_node("a", 3), gpu_node("b", 3))
    cluster.keep_routed([*resources, model("n", memory=60)], {"m"})
    assert sorted(slots(cluster).values()) == [("a", (1,)), ("b", (0,))], "a plugin may hand out the cordoned one"
