"""Filling: a rollout, or a limit of servers, changes a plan only where it has to."""

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import GIB, gpu_node, lone
from tests.operator.planning.test_packing_properties import again, pools, seats
from tests.properties import examples

from argosy.api.values.identity import PoolKey
from argosy.planning.facts import CurrentServer, Footprint, Gpu, Group, Node, PoolFacts
from argosy.planning.nodes.slices import first_index, is_slice
from argosy.planning.packing.filling.joined import joined
from argosy.planning.packing.layout import Layout, PlacedReplica, Replica, Server, Topology
from argosy.planning.packing.solve import pack
from argosy.planning.plan import PoolPlan

MIB = 1 << 20


def fleet(seed: int) -> PoolFacts:
    """Return models of many sizes for 64 GPUs of 80 GiB."""
    drawn = random.Random(seed)
    groups = tuple(
        lone(
            f"g{at}",
            Footprint(drawn.choice([5, 10, 20, 30, 40, 60]) * GIB, drawn.choice([0, 100, 300])),
            drawn.choice([1, 1, 1, 2]),
        )
        for at in range(24)
    )
    return PoolFacts(PoolKey("default/a"), tuple(gpu_node(f"n{at}", 4) for at in range(16)), groups)


def rolling(group: Group, surge: int, promoted: int = 0) -> Group:
    """Return a group with a candidate of so many bytes."""
    return group.with_footprints(lambda need: replace(need, surge=surge, promoted=promoted))


@pytest.mark.parametrize("seed", range(2))
def test_a_small_candidate_and_a_limit_that_does_not_bind_take_no_further_gpu(seed: int) -> None:
    facts = fleet(seed)
    plan = pack(facts)
    assert not plan.unplaced
    first, *others = facts.groups
    assert pack(replace(facts, groups=(rolling(first, MIB), *others))).gpus_used == plan.gpus_used
    assert pack(replace(facts, max_servers=len(plan.servers))) == plan


def test_a_new_replica_goes_where_there_is_memory_for_both_revisions() -> None:
    filler = lone("n", Footprint(42 * GIB))
    group = rolling(lone("m", Footprint(20 * GIB)), 20 * GIB)
    facts = PoolFacts(PoolKey("default/p"), (gpu_node("a", 2, memory=80),), (filler, group), headroom=0)
    assert [placement.surge for server in pack(facts).servers for placement in server.placements] == [0, 20 * GIB]
    assert pack(facts).gpus_used == 2


def test_a_new_replica_has_the_stable_revision_alone_where_there_is_no_memory_for_both() -> None:
    group = rolling(lone("m", Footprint(50 * GIB)), 50 * GIB)
    facts = PoolFacts(PoolKey("default/p"), (gpu_node("a", 1, memory=80),), (group,), headroom=0)
    (server,) = pack(facts).servers
    (placement,) = server.placements
    assert placement.surge == 0
    assert placement.unreserved is not None


def test_a_candidate_leaves_nothing_out_that_fits_without_it() -> None:
    groups = (rolling(lone("a", Footprint(30 * GIB)), 30 * GIB), lone("b", Footprint(30 * GIB)))
    facts = PoolFacts(PoolKey("default/p"), (gpu_node("n", 1, memory=80),), groups, headroom=0)
    plan = pack(facts)
    assert plan.unplaced == ()
    assert [placement.surge for server in plan.servers for placement in server.placements] == [0, 0]


@pytest.mark.parametrize("seed", range(2))
def test_a_limit_joins_servers_of_a_node_and_takes_no_further_gpu(seed: int) -> None:
    facts = fleet(seed)
    plan = pack(facts)
    nodes = len({server.node for server in plan.servers})
    fewer = pack(replace(facts, max_servers=2 * nodes))
    assert len(fewer.servers) == 2 * nodes < len(plan.servers)
    assert (fewer.gpus_used, fewer.unplaced) == (plan.gpus_used, ())
    assert bindings(fewer) == bindings(plan)


def bindings(plan: PoolPlan) -> set[tuple[str, str, str, tuple[int, ...]]]:
    return {(one.group, one.model, server.node, one.gpus) for server in plan.servers for one in server.placements}


PROFILE = first_index("1g.10gb", single=False) or 0
A, B = lone("a", Footprint(5 * GIB)), lone("b", Footprint(5 * GIB))


def of_two_servers(first: Group, second: Group, gpus: tuple[int, int] = (0, 1), **limits: Any) -> Layout:
    """Return the layout of a node on which each of two servers has a replica on a GPU."""
    node = Node("n", tuple(Gpu(index, 80 * GIB, compute=142 if is_slice(index) else 1000) for index in gpus))
    facts = PoolFacts(PoolKey("default/p"), (node,), (first, second) if first is not second else (first,), **limits)
    replicas = Replica(first, 0), Replica(second, 1 if first is second else 0)
    return Layout.empty(Topology.of(facts)).with_servers(
        (Server(f"p-{at}", "n"), (PlacedReplica(replica, ((gpu,),)),))
        for at, (replica, gpu) in enumerate(zip(replicas, gpus, strict=True))
    )


def test_two_servers_of_a_node_become_one() -> None:
    layout = of_two_servers(replace(A, size=50), replace(B, size=50), max_gpus_per_server=2, placed_bytes=100)
    after = joined(layout, 1)
    assert after is not None
    assert [(server.name, server.gpus) for server in after.servers.values()] == [("p-0", (0, 1))]


@pytest.mark.parametrize(
    "layout",
    [
        pytest.param(of_two_servers(A, replace(B, not_on_server=frozenset("a"))), id="apart"),
        pytest.param(of_two_servers(replace(A, size=51), replace(B, size=50), placed_bytes=100), id="documents"),
        pytest.param(of_two_servers(A, B, max_gpus_per_server=1), id="max_gpus_per_server"),
        pytest.param(of_two_servers(A, B, (PROFILE, PROFILE + 1)), id="slices"),
        pytest.param(of_two_servers(A, lone("b", Footprint(gpus=1, first_gpus=True))), id="first GPUs"),
        pytest.param(of_two_servers(*[lone("a", Footprint(5 * GIB), 2)] * 2), id="one group"),
        pytest.param(
            of_two_servers(A, B, current=tuple(CurrentServer(f"p-{at}", "n", (at,)) for at in range(2))), id="running"
        ),
    ],
)
def test_servers_stay_two_where_one_may_not_have_what_both_have(layout: Layout) -> None:
    assert joined(layout, 2) == layout
    assert joined(layout, 1) is None


def test_a_limit_below_the_nodes_in_use_takes_one_replica_after_another() -> None:
    groups = tuple(lone(name, Footprint(40 * GIB)) for name in "xyz")
    facts = PoolFacts(PoolKey("default/p"), (gpu_node("a", 2), gpu_node("b", 4)), groups, max_servers=1)
    assert [(server.node, server.gpus) for server in pack(facts).servers] == [("b", (0, 1, 2))]


@st.composite
def pools_in_rollouts(draw: st.DrawFn) -> PoolFacts:
    """Draw pools some of whose models have candidates."""
    facts = draw(pools())
    groups = (
        rolling(group, draw(st.integers(1, 9)) * GIB, draw(st.sampled_from([0, 5])) * GIB)
        if draw(st.booleans()) and not any(demand.footprint.exclusive for demand in group.demands) and not group.on_cpu
        else group
        for group in facts.groups
    )
    return replace(facts, groups=tuple(groups))


@given(pools_in_rollouts())
@examples(60)
def test_no_gpu_lacks_memory_for_the_revisions_that_it_has_reserved(facts: PoolFacts) -> None:
    nodes = {node.name: node for node in facts.nodes}
    for server in pack(facts).servers:
        sizes = {gpu.index: gpu.memory for gpu in nodes[server.node].gpus}
        for gpu in server.gpus:
            here = [placement for placement in server.placements if gpu in placement.gpus]
            assert sum(one.memory for one in here) <= sizes[gpu] * (1000 - facts.headroom) // 1000
            assert sum(one.memory + one.surge for one in here) <= sizes[gpu]
            assert sum(one.compute for one in here) <= 1000


@given(pools(), st.data())
@examples(50)
def test_nothing_that_runs_moves_because_a_rollout_begins(facts: PoolFacts, data: st.DataObject) -> None:
    plan = pack(facts)
    if plan.unplaced:
        return
    number = data.draw(st.integers(0, len(facts.groups) - 1))
    groups = list(facts.groups)
    groups[number] = rolling(groups[number], data.draw(st.integers(1, 9)) * GIB)
    assert seats(pack(again(facts, plan, groups=tuple(groups)))) == seats(plan)


@given(pools_in_rollouts())
@examples(50)
def test_candidates_leave_out_no_more_than_a_plan_without_them(facts: PoolFacts) -> None:
    stable = tuple(rolling(group, 0) for group in facts.groups)
    assert len(pack(facts).unplaced) <= len(pack(replace(facts, groups=stable)).unplaced)
