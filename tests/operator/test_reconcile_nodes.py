"""Nodes that are cordoned, tainted, not ready or gone: what stays there, what moves, and when."""

from dataclasses import replace
from typing import Any

import pytest
from tests.operator.fleet.declared import gpu_node, model, pool
from tests.operator.fleet.simulated_cluster import Cluster
from tests.operator.watching import always_routed


def test_what_runs_on_a_cordoned_node_stays_and_nothing_comes_to_it() -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b", 2)))
    cluster.settle([pool(), model("m")])
    cluster.nodes = (replace(cluster.nodes[0], schedulable=False), cluster.nodes[1])
    always_routed(cluster, [pool(), model("m"), model("n")], {"m"})
    assert {name: server.step.plan.node for name, server in cluster.servers.items()} == {"p-0": "a", "p-1": "b"}


MAINTENANCE = {"key": "maintenance", "value": "soon", "effect": "NoSchedule"}


@pytest.mark.parametrize("closed", [{"schedulable": False}, {"taints": (MAINTENANCE,)}], ids=["cordon", "taint"])
def test_what_is_evicted_from_a_node_that_takes_nothing_new_moves(closed: dict[str, Any]) -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b")))
    cluster.settle([pool(), model("m")])
    cluster.nodes = (replace(cluster.nodes[0], **closed), cluster.nodes[1])
    cluster.restart("p-0")
    cluster.settle([pool(), model("m")])
    assert {name: server.step.plan.node for name, server in cluster.servers.items()} == {"p-1": "b"}


def test_an_idle_server_that_is_evicted_gets_another_name() -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b")))
    resources = [pool(minServers=1)]
    cluster.settle(resources)
    cluster.nodes = (replace(cluster.nodes[0], schedulable=False), cluster.nodes[1])
    cluster.restart("p-0")
    cluster.settle(resources)
    assert {name: server.step.plan.node for name, server in cluster.servers.items()} == {"p-1": "b"}


def test_what_ends_on_a_node_whose_taint_is_tolerated_comes_back_there() -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b")))
    tolerant = pool(tolerations=[{"key": "maintenance", "operator": "Exists"}])
    cluster.settle([tolerant, model("m")])
    cluster.nodes = (replace(cluster.nodes[0], taints=(MAINTENANCE,)), cluster.nodes[1])
    cluster.restart("p-0")
    cluster.settle([tolerant, model("m")])
    assert [server.step.plan.node for server in cluster.servers.values()] == ["a"]


def test_a_node_that_is_not_ready_keeps_what_it_has_for_a_while() -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b")))
    resources = [pool(), model("m")]
    cluster.settle(resources)
    cluster.nodes = (replace(cluster.nodes[0], ready=False, unready_since=cluster.now), cluster.nodes[1])
    for _ in range(60):
        outcome = cluster.tick(resources)
        assert [server.step.plan.node for server in cluster.servers.values()] == ["a"]
    assert outcome.wake == cluster.now
    cluster.settle(resources)
    assert [server.step.plan.node for server in cluster.servers.values()] == ["b"]


def test_pods_that_are_not_ready_only_because_nobody_hears_of_their_node_keep_their_routes() -> None:
    """As after an outage of the API server: once they are Ready again they are asked at once."""
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("m")])
    cluster.nodes = (replace(cluster.nodes[0], ready=False, unready_since=cluster.now),)
    cluster.unready = frozenset(cluster.servers)
    for _ in range(45):
        cluster.tick([pool(), model("m", version=2)])
        assert [server.routes for server in cluster.servers.values()] == [{"m"}]
    cluster.nodes, cluster.unready = (gpu_node("a"),), frozenset()
    always_routed(cluster, [pool(), model("m", version=2)], {"m"})


def test_a_node_that_vanishes_loses_its_servers_at_once() -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b")))
    cluster.settle([pool(), model("m")])
    cluster.lose("a")
    cluster.tick([pool(), model("m")])
    assert [server.step.plan.node for server in cluster.servers.values()] == ["b"]
