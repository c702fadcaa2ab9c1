"""Nodes that are cordoned, tainted, not ready or gone: what stays there, what moves, and when."""

from dataclasses import replace
from typing import Any

import pytest
from tests.operator.planning.declared import GIB, gpu_node, model, pool
from tests.operator.planning.simulated_cluster import Cluster

from argosy.api import ConditionType
from argosy.planning.facts import Gpu, Node
from argosy.planning.nodes.parse import node_of


def test_what_runs_on_a_cordoned_node_stays_and_nothing_comes_to_it() -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b", 2)))
    cluster.settle([pool(), model("m")])
    cluster.nodes = (replace(cluster.nodes[0], schedulable=False), cluster.nodes[1])
    cluster.keep_routed([pool(), model("m"), model("n")], {"m"})
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
    cluster.keep_routed(resources, {"m"})
    assert [server.step.plan.node for server in cluster.servers.values()] == ["b"]


def not_ready(cluster: Cluster) -> tuple[Node, ...]:
    """Return the nodes, none of which has reported since now."""
    return tuple(replace(node, ready=False, unready_since=cluster.now) for node in cluster.nodes)


def test_when_no_node_is_heard_of_everything_stays_as_it_is() -> None:
    """As when kubelets cannot renew their leases: the servers go on serving."""
    cluster = Cluster((gpu_node("a", 2), gpu_node("b", 2)))
    resources = [pool(), *(model(f"m-{n}", memory=60) for n in range(4))]
    cluster.settle(resources)
    before, heard = dict(cluster.servers), cluster.nodes
    cluster.nodes = not_ready(cluster)
    for _ in range(120):
        outcome = cluster.tick(resources)
        assert cluster.servers == before
        assert outcome.plan.pools[0].unplaced == ()
    cluster.nodes = heard
    cluster.settle(resources)
    assert {name: server.step.plan for name, server in cluster.servers.items()} == {
        name: item.step.plan for name, item in before.items()
    }


def test_what_has_no_memory_on_other_nodes_stays_on_a_node_that_is_lost() -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b")))
    resources = [pool(), model("m", memory=60), model("n", memory=60)]
    cluster.settle(resources)
    cluster.nodes = (replace(cluster.nodes[0], ready=False, unready_since=None), cluster.nodes[1])
    cluster.keep_routed(resources, {"m", "n"})
    assert {server.step.plan.node for server in cluster.servers.values()} == {"a", "b"}


def test_a_server_whose_pod_is_gone_stays_while_no_node_is_heard_of() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("m")])
    cluster.nodes = not_ready(cluster)
    cluster.restart("p-0")
    for _ in range(120):
        cluster.tick([pool(), model("m")])
        assert set(cluster.servers) == {"p-0"}


def test_what_a_node_lost_of_its_facts_ends_nothing_there() -> None:
    """Nothing is known of its GPUs: what serves there goes on until it serves elsewhere."""
    cluster = Cluster((gpu_node("a"), gpu_node("b", 2)))
    resources = [pool(), model("m")]
    cluster.settle(resources)
    unknown = Node("a", (), schedulable=False, stale=True)
    cluster.nodes = (unknown,)
    for _ in range(30):
        cluster.tick(resources)
        assert cluster.routed() == {"m": {"p-0"}}
    cluster.nodes = (unknown, gpu_node("b", 2))
    cluster.keep_routed(resources, {"m"})
    assert [server.step.plan.node for server in cluster.servers.values()] == ["b"]


def test_models_for_gpus_that_are_unknown_for_now_do_not_go_to_a_cpu() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("m")])
    cpu = Node("c", (Gpu(0, 512 * GIB, is_cpu=True),))
    cluster.nodes = (Node("a", (), schedulable=False, stale=True), cpu)
    for _ in range(30):
        cluster.tick([pool(), model("m")])
        assert [server.step.plan.node for server in cluster.servers.values()] == ["a"]


def test_servers_leave_a_node_that_is_no_longer_selected() -> None:
    zone = {"zone": "x"}
    cluster = Cluster((gpu_node("a", labels=zone), gpu_node("b", labels=zone)))
    resources = [pool(nodeSelector=zone), model("m")]
    cluster.settle(resources)
    cluster.nodes = (gpu_node("a"), cluster.nodes[1])
    cluster.keep_routed(resources, {"m"})
    assert [server.step.plan.node for server in cluster.servers.values()] == ["b"]
    cluster.nodes = (gpu_node("a"), gpu_node("b"))
    cluster.keep_routed(resources, {"m"})
    assert [server.step.plan.node for server in cluster.servers.values()] == ["b"]


def test_unready_pods_of_a_silent_node_keep_their_routes() -> None:
    """As after an outage of the API server: once they are Ready again they are asked at once."""
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("m")])
    cluster.nodes = (replace(cluster.nodes[0], ready=False, unready_since=cluster.now),)
    cluster.unready = frozenset(cluster.servers)
    for _ in range(45):
        cluster.tick([pool(), model("m", version=2)])
        assert [server.routes for server in cluster.servers.values()] == [{"m"}]
    cluster.nodes, cluster.unready = (gpu_node("a"),), frozenset()
    cluster.keep_routed([pool(), model("m", version=2)], {"m"})


def test_a_node_that_vanishes_loses_its_servers_at_once() -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b")))
    cluster.settle([pool(), model("m")])
    cluster.lose("a")
    cluster.tick([pool(), model("m")])
    assert [server.step.plan.node for server in cluster.servers.values()] == ["b"]


def test_a_node_that_cannot_be_read_is_named_with_its_fault_and_all_else_goes_on() -> None:
    fault = "metadata.labels[nvidia.com/gpu.memory]: must be more than 0 MiB"
    broken = Node("broken", (), labels={"zone": "a"}, schedulable=False, stale=True, fault=fault)
    cluster = Cluster((gpu_node("a", labels={"zone": "a"}), broken, replace(broken, name="other", labels={})))
    cluster.settle([pool(nodeSelector={"zone": "a"}), model("m")])
    message = cluster.message("ServingPool default/p", ConditionType.PLACED)
    assert message.endswith(f"; nodes that take nothing new: broken: {fault}")
    assert cluster.routed()["m"] == {"p-0"}


def test_nodes_whose_number_of_gpus_goes_on_changing_are_named_as_long_as_it_does() -> None:
    often = "nvidia.com/gpu changed 4 times or more"
    nodes = tuple(gpu_node(name) for name in "abcde")
    cluster = Cluster(tuple(replace(node, unsteady=often) for node in nodes))
    cluster.settle([pool(), model("m")])
    message = cluster.message("ServingPool default/p", ConditionType.PLACED)
    assert message.endswith(f"; on node b {often}; on node c {often}; and 2 more such nodes")
    cluster.nodes = nodes
    cluster.settle([pool(), model("m")])
    assert "changed" not in cluster.message("ServingPool default/p", ConditionType.PLACED)


def ailing(name: str, status: str) -> Node:
    """Return a node of one GPU, as parsed, whose monitoring agent reports a status of its GPUs."""
    condition = {"type": "AcceleratedHardwareReady", "status": status, "message": "XID 79: fallen off the bus"}
    ready = {"type": "Ready", "status": "True"}
    offered = {"nvidia.com/gpu": "1"}
    return node_of(
        {
            "metadata": {"name": name, "labels": {"nvidia.com/gpu.memory": "81920"}},
            "status": {"capacity": offered, "allocatable": offered, "conditions": [ready, condition]},
        }
    )


def test_what_runs_on_broken_gpus_moves_in_order_and_stays_without_another_node() -> None:
    cluster = Cluster((ailing("a", "True"),))
    resources = [pool(), model("m")]
    cluster.settle(resources)
    cluster.nodes = (ailing("a", "False"),)
    cluster.keep_routed(resources, {"m"})
    assert [server.step.plan.node for server in cluster.servers.values()] == ["a"]
    message = cluster.message("ServingPool default/p", ConditionType.PLACED)
    assert message.endswith(
        "AcceleratedHardwareReady is False (XID 79: fallen off the bus); repair or replace the node"
    )
    cluster.nodes = (*cluster.nodes, gpu_node("b"))
    cluster.keep_routed(resources, {"m"})
    assert [server.step.plan.node for server in cluster.servers.values()] == ["b"]


def test_an_unknown_state_of_gpus_is_no_fault() -> None:
    node = ailing("a", "Unknown")
    assert (node.schedulable, node.lost, node.fault) == (True, False, "")


def leaving(node: Node, *gpus: int) -> Node:
    """Return the node, of which these GPUs are to be left."""
    left = tuple(
        replace(gpu, leaving=gpu.index in gpus, closed="taint" if gpu.index in gpus else "") for gpu in node.gpus
    )
    return replace(node, gpus=left)


def test_what_runs_on_a_gpu_that_is_to_be_left_moves_in_order_and_stays_without_another() -> None:
    cluster = Cluster((gpu_node("a", 2), gpu_node("b", 1)))
    resources = [pool(), model("m", memory=60), model("n", memory=60), model("o", memory=60)]
    cluster.settle(resources)
    on = {name: server.slot() for name, server in cluster.servers.items()}
    cluster.nodes = (leaving(cluster.nodes[0], 0), cluster.nodes[1])
    cluster.keep_routed(resources, {"m", "n", "o"})
    assert {name: server.slot() for name, server in cluster.servers.items()} == on
    message = cluster.message("ServingPool default/p", ConditionType.PLACED)
    assert "; only for the servers that have them: a/0 (taint)" in message
    cluster.nodes = (cluster.nodes[0], gpu_node("b", 2))
    cluster.keep_routed(resources, {"m", "n", "o"})
    assert sorted(server.slot() for server in cluster.servers.values()) == [("a", (1,)), ("b", (0,)), ("b", (1,))]


def test_nothing_new_gets_a_gpu_that_is_to_be_left_and_the_message_says_why() -> None:
    cluster = Cluster((leaving(gpu_node("a"), 0),))
    cluster.settle([pool(), model("m")])
    assert cluster.servers == {}
    assert "to be left (taint)" in cluster.message("m", ConditionType.PLACED)
