"""Proofs: what CP-SAT says of a plan holds, and what it finds keeps to the planner's rules."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import gpu_node, linked_node, lone
from tests.properties import examples

from argosy.api.values.identity import PoolKey
from argosy.planning.explanation.proof.prove import Proof, prove
from argosy.planning.facts import CurrentServer, Demand, Footprint, Gpu, Group, Node, PoolFacts
from argosy.planning.packing.priorities import pack_by_priority
from argosy.planning.plan import FleetPlan, Placement, PoolPlan, ServerPlan, Unplaced

pytest.importorskip("ortools", reason="OR-Tools proves it: pip install 'argosy[prove]'")

POOL = PoolKey("n/p")
GIB = 1 << 30
EFFORT = 5.0


def facts(nodes: list[Node], *groups: Group) -> PoolFacts:
    return PoolFacts(POOL, tuple(nodes), groups)


def small(name: str, memory: int, replicas: int = 1) -> Group:
    return lone(name, Footprint(memory * GIB, 10), replicas)


def wasteful(pool: PoolFacts, seats: dict[str, tuple[str, int]], total: int) -> FleetPlan:
    """Return a plan in which each model has a GPU of its own where `seats` says."""
    demands = {demand.model: demand.footprint for group in pool.groups for demand in group.demands}
    servers = tuple(
        ServerPlan(
            f"p-{at}",
            node,
            (gpu,),
            (Placement(name, 1, name, (gpu,), 1, demands[name].memory, demands[name].compute),),
        )
        for at, (name, (node, gpu)) in enumerate(sorted(seats.items()))
    )
    unplaced = tuple(
        Unplaced(group.name, (group.name,), "NoRoom", "") for group in pool.groups if group.name not in seats
    )
    return FleetPlan((PoolPlan(POOL, servers, unplaced, total, len(servers), len(servers)),))


def proven(pool: PoolFacts, plan: FleetPlan, running: dict | None = None) -> tuple[PoolPlan, Proof]:
    better, (proof,) = prove([pool], plan, EFFORT, running)
    return better.pools[0], proof


def test_a_plan_at_its_bound_is_proven_at_once() -> None:
    pool = facts([gpu_node("a", 2)], small("x", 20), small("y", 20))
    plan = pack_by_priority([pool]).plan
    better, proof = proven(pool, plan)
    assert better == plan.pools[0]
    assert (proof.gpus, proof.bound, proof.is_optimal, proof.complete) == (1, 1, True, True)


def test_what_arithmetic_leaves_open_is_proven() -> None:
    """Three models of 30 GiB and three of 25 GiB: two GPUs of 64 GiB have the sum of neither."""
    pool = facts([gpu_node("a", 4)], *(small(f"x{n}", 26) for n in range(5)))
    plan = pack_by_priority([pool]).plan
    _, proof = proven(pool, plan)
    assert (proof.gpus, proof.bound, proof.is_optimal) == (3, 3, True)


def test_a_better_plan_is_taken() -> None:
    pool = facts([gpu_node("a", 4)], small("x", 20), small("y", 20), small("z", 20))
    better, proof = proven(pool, wasteful(pool, {"x": ("a", 0), "y": ("a", 1), "z": ("a", 2)}, 4))
    assert (better.gpus_used, proof.before, proof.gpus, proof.is_optimal) == (1, 3, 1, True)
    assert better.unplaced == ()


def test_what_runs_stays_where_it_is() -> None:
    pool = facts([gpu_node("a", 4)], small("x", 20), small("y", 20), small("z", 20))
    running = {POOL: (CurrentServer("p-0", "a", (0,), {"x": (0,)}), CurrentServer("p-1", "a", (1,), {"y": (1,)}))}
    pool = replace(pool, current=running[POOL])
    better, proof = proven(pool, wasteful(pool, {"x": ("a", 0), "y": ("a", 1), "z": ("a", 2)}, 4), running)
    where = {placement.model: placement.gpus for server in better.servers for placement in server.placements}
    assert (where["x"], where["y"]) == ((0,), (1,))
    assert (proof.gpus, len(better.servers)) == (2, 2)


def test_a_replica_that_was_left_out_is_placed() -> None:
    pool = facts([gpu_node("a", 1)], small("x", 20), small("y", 20))
    better, proof = proven(pool, wasteful(pool, {"x": ("a", 0)}, 1))
    assert (better.unplaced, proof.placed, proof.complete) == ((), 1, True)


def test_a_full_pool_is_proven_to_be_full() -> None:
    pool = facts([gpu_node("a", 2)], *(small(f"x{n}", 40) for n in range(3)))
    better, proof = proven(pool, pack_by_priority([pool]).plan)
    assert (len(better.unplaced), proof.placed, proof.complete) == (1, 0, True)


def test_pools_that_cannot_be_searched_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = facts([Node("c", (Gpu(0, 16 * GIB, is_cpu=True),))], small("x", 1))
    assert proven(pool, pack_by_priority([pool]).plan)[1].note == "it has no GPUs to be spared"
    monkeypatch.setattr("argosy.planning.explanation.proof.prove._MOST_VARIABLES", 10)
    many = facts([gpu_node(name, 4) for name in "ab"], *(small(f"x{n}", 40) for n in range(6)))
    assert "it is too large to be searched" in proven(many, pack_by_priority([many]).plan)[1].note


needs = st.one_of(
    st.builds(lambda memory, compute: Footprint(memory * GIB, compute), st.integers(1, 60), st.integers(1, 900)),
    st.builds(lambda gpus: Footprint(30 * GIB, 0, gpus), st.integers(1, 2)),
)


@given(st.lists(st.tuples(st.lists(needs, min_size=1, max_size=2), st.integers(1, 2)), min_size=1, max_size=6))
@examples(8)
def test_a_proven_plan_is_never_worse_and_keeps_to_the_rules(models: list[tuple[list[Footprint], int]]) -> None:
    groups = tuple(
        Group(f"g{n}", tuple(Demand(f"m{n}-{at}", 1, need, replicas) for at, need in enumerate(of_group)), replicas)
        for n, (of_group, replicas) in enumerate(models)
    )
    pool = facts([linked_node("a", 3), linked_node("b", 2)], *groups)
    plan = pack_by_priority([pool]).plan
    better, proof = proven(pool, plan)
    before = plan.pools[0]
    assert len(better.unplaced) <= len(before.unplaced)
    assert proof.bound <= proof.gpus
    if len(better.unplaced) == len(before.unplaced):
        assert better.gpus_used <= before.gpus_used
    # The planner, started from it, leaves everything where it is.
    again = pack_by_priority([replace(pool, current=better.current)]).plan.pools[0]
    assert again.servers == better.servers
