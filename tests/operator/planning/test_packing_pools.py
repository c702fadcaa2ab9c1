"""Several pools on the same nodes: what one holds without need reaches another, and no GPU has two servers."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import linked_node
from tests.properties import examples

from argosy.api.values.identity import PoolKey
from argosy.planning.facts import Claim, CurrentServer, Demand, Footprint, Gpu, Group, Node, OtherPools, PoolFacts
from argosy.planning.nodes.reservations import devices
from argosy.planning.packing.pools import pack_fleet
from argosy.planning.plan import FleetPlan, PoolPlan

GIB = 1 << 30


def lone(name: str, gpus: int = 1, memory: int = 10, replicas: int = 1) -> Group:
    return Group(name, (Demand(name, 1, Footprint(memory * GIB, 0, gpus), replicas),), replicas)


def facts(pool: str, *groups: Group, nodes: Sequence[Node] = (), **fields: object) -> PoolFacts:
    return PoolFacts(PoolKey.of("n", pool), tuple(nodes) or (linked_node(),), groups, **fields)  # type: ignore[arg-type]


def of(plan: FleetPlan, pool: str) -> PoolPlan:
    return next(item for item in plan.pools if item.pool == f"n/{pool}")


def server_gpus(plan: PoolPlan) -> list[tuple[str, tuple[int, ...]]]:
    return [(server.name, server.gpus) for server in plan.servers]


SHRUNKEN = CurrentServer("q-0", "a", (0, 1, 2, 3), {"y": (0,)})
"""A server that lost models: it has four GPUs, and needs one."""


def test_a_server_that_lost_models_keeps_gpus_that_no_other_pool_needs() -> None:
    plan = of(pack_fleet([facts("q", lone("y"), current=(SHRUNKEN,))]), "q")
    assert (server_gpus(plan), plan.gpus_used) == ([("q-0", (0, 1, 2, 3))], 4)


def test_a_pool_gets_the_gpus_that_another_one_no_longer_needs() -> None:
    """They are claimed first, and taken only once they were given up."""
    mine, theirs = facts("p", lone("x", 2)), facts("q", lone("y"), current=(SHRUNKEN,))
    first = pack_fleet([mine, theirs])
    assert server_gpus(of(first, "p")) == []
    (waits,) = of(first, "p").unplaced
    assert (waits.reason, "GPUs that servers of ServingPool n/q hold" in waits.message) == ("Pending", True)
    assert len(of(first, "p").claims) == 2
    assert server_gpus(of(first, "q")) == [("q-0", (0,))]
    second = pack_fleet([mine, replace(theirs, current=of(first, "q").current)])
    assert server_gpus(of(second, "p")) == [("p-0", (1, 2))]
    assert not of(second, "p").unplaced


def test_a_pool_keeps_surplus_gpus_while_others_are_free() -> None:
    mine = facts("p", lone("x", 2), nodes=[linked_node("a"), linked_node("b", 2)])
    plan = pack_fleet([mine, facts("q", lone("y"), current=(SHRUNKEN,))])
    assert server_gpus(of(plan, "p")) == [("p-0", (0, 1))]
    assert server_gpus(of(plan, "q")) == [("q-0", (0, 1, 2, 3))]


def test_nothing_is_requested_that_would_not_help() -> None:
    plan = pack_fleet([facts("p", lone("x", 4)), facts("q", lone("y"), current=(SHRUNKEN,))])
    assert not of(plan, "p").claims
    assert server_gpus(of(plan, "q")) == [("q-0", (0, 1, 2, 3))]
    assert [item.reason for item in of(plan, "p").unplaced] == ["NoFreeGpus"]


def test_gpus_are_released_once_what_leaves_them_is_unloaded() -> None:
    claimed = OtherPools({("a", 3): Claim(PoolKey("n/p"), "x", (False, 0))})
    theirs = facts("q", lone("y"), current=(SHRUNKEN,), loaded={"q-0": frozenset({"y", "gone"})})
    assert server_gpus(of(pack_fleet([theirs], claimed), "q")) == [("q-0", (0, 1, 2, 3))]
    drained = replace(theirs, loaded={"q-0": frozenset({"y"})})
    assert server_gpus(of(pack_fleet([drained], claimed), "q")) == [("q-0", (0,))]


def test_an_idle_server_that_the_pool_wants_is_not_taken_from_it() -> None:
    idle = CurrentServer("q-0", "a", (0, 1, 2, 3))
    plan = pack_fleet([facts("p", lone("x")), facts("q", current=(idle,), min_servers=1)])
    assert not of(plan, "p").claims
    assert [item.reason for item in of(plan, "p").unplaced] == ["NoFreeGpus"]


def test_gpus_count_whatever_uses_them() -> None:
    nodes = (replace(linked_node(), gpus=(*linked_node().gpus[:3], Gpu(3, 80 * GIB, withheld_by="Pod t/x"))),)
    plan = pack_fleet([facts("p", lone("x"), nodes=nodes), facts("q", lone("y"), nodes=nodes)])
    assert [(pool.gpus_total, pool.gpus_used, pool.gpus_free, dict(pool.withheld)) for pool in plan.pools] == [
        (4, 1, 1, {"Pod t/x": 1, "ServingPool n/q": 1}),
        (4, 1, 1, {"Pod t/x": 1, "ServingPool n/p": 1}),
    ]


groups = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 2)), max_size=4)


@given(st.lists(st.tuples(groups, groups), min_size=2, max_size=3), st.integers(1, 6), st.integers(0, 4))
@examples(25)
def test_no_gpu_is_ever_in_two_pools_or_withheld_in_need(
    changes: list[tuple[list[tuple[int, int]], list[tuple[int, int]]]], gpus: int, lost: int
) -> None:
    """Pools change and a node may lose GPUs; within a few rounds no pool waits for GPUs that another does not need."""
    before = {f"p{n}": first for n, (first, _) in enumerate(changes)}
    after = {f"p{n}": second for n, (_, second) in enumerate(changes)}
    plan = pack_fleet([declared(pool, item, gpus) for pool, item in before.items()])
    left = max(1, gpus - lost)
    for _ in range(5):
        current = {pool.pool: pool.current for pool in plan.pools}
        now = [declared(pool, item, left, current[f"n/{pool}"]) for pool, item in after.items()]
        plan = pack_fleet(now)
        taken = [device for pool in plan.pools for device in devices(pool.servers)]
        counts = sum(len(server.gpus) for pool in plan.pools for server in pool.servers)
        assert len(set(taken)) == counts
        there = {("a", index) for index in range(left)}
        assert set(taken) <= there
        for item in plan.pools:
            assert item.gpus_free >= 0
            if item.claims:
                assert item.unplaced
    assert pack_fleet([replace(item, current=of_key(plan, item.pool).current) for item in now]) == plan
    assert not any(pool.claims for pool in plan.pools)


def declared(
    pool: str, desired: list[tuple[int, int]], gpus: int, current: tuple[CurrentServer, ...] = ()
) -> PoolFacts:
    models = (lone(f"m{n}", need, replicas=replicas) for n, (need, replicas) in enumerate(desired))
    return facts(pool, *models, nodes=[linked_node("a", gpus)], current=current)


def of_key(plan: FleetPlan, key: str) -> PoolPlan:
    return next(pool for pool in plan.pools if pool.pool == key)


def test_a_pool_leaves_shared_gpus_to_another_that_has_no_others() -> None:
    shared, own = linked_node("a", 1), linked_node("b", 1)
    plan = pack_fleet([facts("p", lone("x"), nodes=[shared, own]), facts("q", lone("y"), nodes=[shared])])
    assert [len(of(plan, pool).unplaced) for pool in "pq"] == [0, 0]
    running = [facts("p", lone("x"), nodes=[shared, own], current=of(plan, "p").current)]
    running.append(facts("q", lone("y"), nodes=[shared], current=of(plan, "q").current))
    assert pack_fleet(running) == plan


def test_what_runs_on_a_shared_gpu_stays() -> None:
    shared, own = linked_node("a", 1), linked_node("b", 1)
    runs = CurrentServer("p-0", "a", (0,), {"x": (0,)})
    both = [facts("p", lone("x"), nodes=[shared, own], current=(runs,)), facts("q", lone("y"), nodes=[shared])]
    assert server_gpus(of(pack_fleet(both), "p")) == [("p-0", (0,))]


def test_pools_that_are_too_small_for_all_are_planned_as_before() -> None:
    plan = pack_fleet(
        [facts("p", lone("x"), nodes=[linked_node("a", 1)]), facts("q", lone("y"), nodes=[linked_node("a", 1)])]
    )
    assert [len(of(plan, pool).unplaced) for pool in "pq"] == [0, 1]
