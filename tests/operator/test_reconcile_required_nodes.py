"""Labels, spreads and anti-affinities that change under what serves: it moves in order, and stays where it must."""

from dataclasses import replace
from typing import Any

import pytest
from tests.operator.planning.declared import gpu_node, model, pool
from tests.operator.planning.simulated_cluster import Cluster

from argosy.api import ConditionType
from argosy.planning.spreading import ZONE

SSD = {"labels": {"disk": "ssd"}}


def nodes_of(cluster: Cluster, name: str) -> list[str]:
    """Return the nodes of the servers that have a model."""
    plans = (server.step.plan for server in cluster.servers.values())
    return sorted(plan.node for plan in plans if any(one.model == name for one in plan.placements))


def test_a_model_whose_node_loses_its_label_moves_without_a_gap() -> None:
    cluster = Cluster((gpu_node("a", **SSD), gpu_node("b", **SSD)))
    resources = [pool(), model("m", nodeSelector={"disk": "ssd"}), model("n")]
    cluster.settle(resources)
    assert (nodes_of(cluster, "m"), nodes_of(cluster, "n")) == (["a"], ["a"])
    cluster.nodes = (replace(cluster.nodes[0], labels={}), cluster.nodes[1])
    cluster.keep_routed(resources, {"m", "n"})
    assert (nodes_of(cluster, "m"), nodes_of(cluster, "n")) == (["b"], ["a"])


def test_a_model_whose_only_node_loses_its_label_stays() -> None:
    cluster = Cluster((gpu_node("a", **SSD), gpu_node("b")))
    resources = [pool(), model("m", nodeSelector={"disk": "ssd"})]
    cluster.settle(resources)
    cluster.nodes = (replace(cluster.nodes[0], labels={}), cluster.nodes[1])
    cluster.keep_routed(resources, {"m"})
    assert nodes_of(cluster, "m") == ["a"]
    assert "on p-0 it stays although nodeSelector" in cluster.message("m", ConditionType.PLACED)
    cluster.nodes = (replace(cluster.nodes[0], **SSD), cluster.nodes[1])
    cluster.settle(resources)
    assert "stays" not in cluster.message("m", ConditionType.PLACED)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"topologySpread": [{"topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}]}, ["x", "y"]),
        ({"footprint": {"gpuMemory": "20Gi", "gpuType": {"products": ["H100"]}}}, ["y", "y"]),
    ],
)
def test_what_is_declared_later_is_reached_without_a_gap(change: dict[str, Any], expected: list[str]) -> None:
    zones = [("a", "x", ""), ("b", "x", ""), ("c", "y", "H100"), ("d", "y", "H100")]
    cluster = Cluster(tuple(gpu_node(name, labels={ZONE: zone}, product=what) for name, zone, what in zones))
    before = [pool(), model("m", replicas=2, nodeSelector={ZONE: "x"})]
    cluster.settle(before)
    assert nodes_of(cluster, "m") == ["a", "b"]
    cluster.keep_routed([pool(), model("m", replicas=2, **change)], {"m"})
    zone_of = {name: zone for name, zone, _ in zones}
    assert sorted(zone_of[node] for node in nodes_of(cluster, "m")) == expected


def test_models_that_are_to_be_apart_part_without_a_gap() -> None:
    cluster = Cluster((gpu_node("a", 1), gpu_node("b", 1)))
    cluster.settle([pool(), model("m"), model("n")])
    assert nodes_of(cluster, "m") == nodes_of(cluster, "n") == ["a"]
    apart = {"antiAffinity": [{"name": "n", "level": "Node"}]}
    cluster.keep_routed([pool(), model("m", **apart), model("n")], {"m", "n"})
    assert sorted([*nodes_of(cluster, "m"), *nodes_of(cluster, "n")]) == ["a", "b"]


def test_more_instances_than_a_gpu_holds_take_a_further_gpu_without_a_gap() -> None:
    cluster = Cluster((gpu_node("a", 3),))
    cluster.settle([pool(), model("m", memory=40)])
    cluster.keep_routed([pool(), model("m", memory=40, instances=2)], {"m"})
    (server,) = cluster.servers.values()
    (placement,) = server.step.plan.placements
    assert (len(placement.gpus), placement.instances) == (2, 1)
