"""Scoring: of the places for one replica, which comes first."""

from tests.operator.planning.declared import GIB, gpu_node, lone

from argosy.api.values.identity import PoolKey
from argosy.planning.facts import Footprint, PoolFacts
from argosy.planning.packing.layout import Layout, PlacedReplica, Replica, Topology
from argosy.planning.packing.scoring import best


def test_replicas_share_a_node_rather_than_take_a_further_gpu() -> None:
    filler, several = lone("m", Footprint(60 * GIB)), lone("x", Footprint(20 * GIB), 2)
    nodes = (gpu_node("a", 2), gpu_node("b", 2))
    layout = Layout.empty(Topology.of(PoolFacts(PoolKey("default/p"), nodes, (filler, several), headroom=0)))
    layout = layout.with_replica("p-0", "a", PlacedReplica(Replica(several, 0), ((0,),)))
    layout = layout.with_replica("p-1", "a", PlacedReplica(Replica(filler, 0), ((1,),)))
    candidate = best(layout, Replica(several, 1))
    assert candidate is not None
    assert (candidate.node, candidate.server, candidate.assignment) == ("a", "p-1", ((1,),))


def test_replicas_are_on_different_nodes_where_that_takes_no_further_gpu() -> None:
    several = lone("x", Footprint(20 * GIB), 2)
    nodes = (gpu_node("a", 2), gpu_node("b", 2))
    layout = Layout.empty(Topology.of(PoolFacts(PoolKey("default/p"), nodes, (several,), headroom=0)))
    layout = layout.with_replica("p-0", "a", PlacedReplica(Replica(several, 0), ((0,),)))
    candidate = best(layout, Replica(several, 1))
    assert candidate is not None
    assert candidate.node == "b"
