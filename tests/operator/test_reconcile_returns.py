"""What served comes back with a new Pod: the versions that were kept, and nothing that never served."""

import pytest
from tests.operator.planning.declared import ensemble, gpu_node, model, pool
from tests.operator.planning.simulated_cluster import Cluster


def test_versions_that_were_retained_come_back_with_a_new_pod() -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b")))
    both = {"versionPolicy": {"specific": {"versions": [1, 2]}}}
    step = {"model": "m", "version": 1, "inputs": {"X": "T0"}, "outputs": {"Y": "T1"}}
    cluster.settle([pool(), model("m", **both), ensemble("e", "m", steps=[step])])
    declared = [pool(), model("m", version=2, **both), ensemble("e", "m", steps=[step])]
    cluster.settle(declared)
    (server,) = cluster.servers
    cluster.restart(server)
    cluster.settle(declared)
    assert set(cluster.servers[server].loaded["m"].versions) == {1, 2}
    assert cluster.routed().keys() == {"m", "e"}
    cluster.lose(cluster.servers[server].step.plan.node)
    cluster.settle(declared)
    assert [set(server.loaded["m"].versions) for server in cluster.servers.values()] == [{1, 2}]
    assert cluster.routed().keys() == {"m", "e"}


def test_a_new_replica_has_the_versions_that_the_policy_keeps() -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b")))
    latest = {"versionPolicy": {"latest": {"numVersions": 2}}}
    cluster.settle([pool(), model("m", **latest)])
    cluster.settle([pool(), model("m", version=2, **latest)])
    cluster.settle([pool(), model("m", version=2, minReplicas=2, **latest)])
    assert [set(server.loaded["m"].versions) for server in cluster.servers.values()] == [{1, 2}, {1, 2}]


@pytest.mark.parametrize("gone", ["pod", "node"])
def test_what_served_comes_back_while_its_successor_does_not_load(gone: str) -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b")))
    cluster.settle([pool(), model("m")])
    cluster.refuses = frozenset({("m", 2)})
    cluster.settle([pool(), model("m", version=2)])
    (server,) = cluster.servers
    if gone == "pod":
        cluster.restart(server)
    else:
        cluster.lose(cluster.servers[server].step.plan.node)
    cluster.settle([pool(), model("m", version=2)])
    assert cluster.routed().keys() == {"m"}


def test_what_never_served_does_not_come_back() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.refuses = frozenset({("m", 1)})
    for _ in range(10):
        cluster.tick([pool(), model("m")])
    (server,) = cluster.servers
    cluster.restart(server)
    cluster.settle([pool(), model("m", version=2)])
    assert set(cluster.servers[server].loaded["m"].versions) == {2}
