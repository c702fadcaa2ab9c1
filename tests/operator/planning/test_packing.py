"""Packing, case by case: what the solver prefers, what it keeps, and how it makes room."""

from dataclasses import replace

import pytest
from tests.operator.planning.declared import linked_node, lone

from argosy.api.values.identity import PoolKey
from argosy.planning.facts import CurrentServer, Demand, Footprint, Gpu, Group, Node, PoolFacts
from argosy.planning.packing.lower_bound import fewest_gpus, gpus_one_per_model, lower_bound
from argosy.planning.packing.pools import pack_fleet
from argosy.planning.packing.solve import pack
from argosy.planning.plan import PoolPlan

GIB = 1 << 30


def laptop(size: int = 16) -> Node:
    return Node("laptop", (Gpu(0, size * GIB, is_cpu=True),))


def part(memory: int, compute: int = 100) -> Footprint:
    return Footprint(memory * GIB, compute)


def exclusive(gpus: int, memory: int = 60) -> Footprint:
    return Footprint(memory * GIB, 0, gpus)


def pool(nodes: list[Node], groups: list[Group], **limits: object) -> PoolFacts:
    return PoolFacts(PoolKey("default/p"), tuple(nodes), tuple(groups), **limits)  # type: ignore[arg-type]


def seats(plan: PoolPlan) -> dict[str, list[tuple[str, tuple[int, ...]]]]:
    result: dict[str, list[tuple[str, tuple[int, ...]]]] = {}
    for server in plan.servers:
        for placement in server.placements:
            result.setdefault(placement.model, []).append((server.node, placement.gpus))
    return result


def test_six_gpus_become_three() -> None:
    stages = {
        "tokenize": Footprint(),
        "embed": part(8, 200),
        "safety": part(4, 100),
        "llama": exclusive(2),
        "detokenize": Footprint(),
    }
    group = Group("chat", tuple(Demand(name, 1, need) for name, need in stages.items()))
    facts = pool([linked_node("a"), linked_node("b")], [group])
    plan = pack(facts)
    assert (plan.gpus_used, plan.gpus_one_per_model, lower_bound(facts)) == (3, 6, 3)
    (server,) = plan.servers
    assert (server.name, server.node, server.gpus) == ("p-0", "a", (0, 1, 2))
    assert [(p.model, p.gpus) for p in server.placements] == [
        ("tokenize", ()),
        ("embed", (2,)),
        ("safety", (2,)),
        ("llama", (0, 1)),
        ("detokenize", ()),
    ]


def test_small_models_share_the_gpu_that_is_open() -> None:
    plan = pack(pool([linked_node("a")], [lone("x", part(20)), lone("y", part(20)), lone("z", part(20))]))
    assert plan.gpus_used == 1
    assert seats(plan) == {name: [("a", (0,))] for name in "xyz"}


def test_compute_fills_a_gpu_as_memory_does() -> None:
    plan = pack(pool([linked_node("a")], [lone(name, part(1, 400)) for name in "xyz"]))
    assert plan.gpus_used == 2


def test_the_node_with_least_to_spare_is_opened_first() -> None:
    plan = pack(pool([linked_node("big", 8), linked_node("small", 2)], [lone("x", part(20))]))
    assert seats(plan) == {"x": [("small", (0,))]}


def test_replicas_prefer_different_nodes_to_fewer_gpus() -> None:
    facts = pool([linked_node("a", 2), linked_node("b", 2)], [lone("x", part(20), 2), lone("y", part(20), 1)])
    plan = pack(facts)
    assert sorted(seats(plan)["x"]) == [("a", (0,)), ("b", (0,))]
    assert plan.gpus_used == 2


def test_replicas_share_a_node_where_there_is_no_other() -> None:
    plan = pack(pool([linked_node("a", 2)], [lone("x", part(20), 2)]))
    assert sorted(seats(plan)["x"]) == [("a", (0,)), ("a", (1,))]
    assert len(plan.servers) == 2


def test_every_model_gets_one_replica_before_any_gets_two() -> None:
    plan = pack(pool([linked_node("a", 2)], [lone("big", exclusive(1), 2), lone("small", part(5))]))
    assert {unplaced.group for unplaced in plan.unplaced} == {"big"}
    assert set(seats(plan)) == {"big", "small"}


def test_models_for_the_cpu_take_no_gpu() -> None:
    plan = pack(pool([linked_node("a")], [lone("x", Footprint()), lone("y", Footprint())]))
    assert (plan.gpus_used, len(plan.servers)) == (0, 1)
    assert gpus_one_per_model([lone("x", Footprint(), 2)]) == 2


def test_a_pool_without_gpus_serves_from_its_cpus() -> None:
    plan = pack(pool([laptop()], [lone("x", part(4, 900)), lone("y", part(4, 900)), lone("z", exclusive(1, 2))]))
    assert seats(plan) == {name: [("laptop", ())] for name in "xyz"}
    assert (plan.gpus_total, plan.gpus_used) == (0, 0)


def test_a_cpu_slot_is_as_large_as_its_memory() -> None:
    plan = pack(pool([laptop(16)], [lone("x", part(8)), lone("y", part(8))]))
    assert [unplaced.reason for unplaced in plan.unplaced] == ["NoRoom"]


def test_cpus_do_not_stand_in_where_there_are_gpus() -> None:
    plan = pack(
        pool([laptop(), linked_node("a", 1)], [lone("x", part(60)), lone("y", part(10)), lone("c", Footprint())])
    )
    assert seats(plan)["x"] == [("a", (0,))]
    assert [unplaced.group for unplaced in plan.unplaced] == ["y"]


def test_one_server_grows_where_only_one_is_allowed() -> None:
    groups = [lone("x", part(40)), lone("y", part(40)), lone("z", part(40))]
    plan = pack(pool([linked_node("a", 2), linked_node("b", 4)], groups, max_servers=1))
    assert [(server.node, server.gpus) for server in plan.servers] == [("b", (0, 1, 2))]


def test_no_server_has_more_gpus_than_it_may() -> None:
    group = Group("e", (Demand("m", 1, part(40)), Demand("n", 1, part(40))))
    assert pack(pool([linked_node("a")], [group], max_gpus_per_server=1)).unplaced[0].reason == "GroupTooLarge"
    assert pack(pool([linked_node("a")], [group], max_gpus_per_server=2)).gpus_used == 2


def test_idle_servers_fill_up_to_the_minimum_and_take_models_first() -> None:
    facts = pool([linked_node("a", 2), linked_node("b", 4)], [lone("x", part(10))], min_servers=2)
    plan = pack(facts)
    assert [(s.name, s.node, s.gpus, len(s.placements)) for s in plan.servers] == [
        ("p-0", "a", (0,), 1),
        ("p-1", "b", (0,), 0),
    ]
    assert pack(replace(facts, current=plan.current)).servers == plan.servers
    assert pack(replace(facts, max_servers=1)).gpus_used == 1


def test_a_suspended_pool_takes_nothing() -> None:
    plan = pack(pool([linked_node("a")], [lone("x", part(10))], suspended=True, min_servers=1))
    assert (plan.servers, plan.unplaced, plan.gpus_used, plan.gpus_total) == ((), (), 0, 4)


def test_what_runs_stays_though_a_fresh_plan_would_differ() -> None:
    here = CurrentServer("p-7", "b", (3,), {"x": (3,)})
    plan = pack(
        pool([linked_node("a", 2), linked_node("b", 4)], [lone("x", part(10)), lone("y", part(10))], current=(here,))
    )
    assert [(s.name, s.node, s.gpus) for s in plan.servers] == [("p-7", "b", (3,))]
    assert set(seats(plan)) == {"x", "y"}


def test_a_new_server_takes_no_name_that_is_in_use() -> None:
    gone = CurrentServer("p-0", "lost", (0,), {"x": (0,)})
    plan = pack(pool([linked_node("a")], [lone("x", part(10))], current=(gone,)))
    assert [server.name for server in plan.servers] == ["p-1"]


def test_a_server_gives_back_the_gpus_that_no_one_needs() -> None:
    here = CurrentServer("p-0", "a", (0, 1, 2), {"big": (0, 1), "x": (2,)})
    plan = pack(pool([linked_node("a")], [lone("x", part(10))], current=(here,)))
    assert [(s.name, s.gpus) for s in plan.servers] == [("p-0", (2,))]


def test_a_model_that_joins_an_ensemble_goes_where_the_others_are() -> None:
    here = CurrentServer("p-0", "b", (2,), {"m": (2,)})
    group = Group("e", (Demand("m", 1, part(10)), Demand("n", 1, part(10))))
    plan = pack(pool([linked_node("a", 1), linked_node("b", 4)], [group], current=(here,)))
    assert seats(plan) == {"m": [("b", (2,))], "n": [("b", (2,))]}


def test_a_model_that_has_outgrown_its_gpu_moves_and_the_rest_stays() -> None:
    here = CurrentServer("p-0", "a", (0,), {"x": (0,), "y": (0,)})
    plan = pack(pool([linked_node("a", 2)], [lone("x", part(60)), lone("y", part(10))], current=(here,)))
    assert seats(plan) == {"x": [("a", (0,))], "y": [("a", (1,))]}
    assert not plan.unplaced


def test_fewer_replicas_leave_the_first_where_it_is() -> None:
    facts = pool([linked_node("a"), linked_node("b")], [lone("x", part(10), 2)])
    before = pack(facts)
    after = pack(replace(facts, groups=(lone("x", part(10), 1),), current=before.current))
    assert after.servers == before.servers[:1]


def test_one_model_moves_to_free_memory_for_two_gpus_side_by_side() -> None:
    distribution = (CurrentServer("p-0", "a", (0,), {"x": (0,)}), CurrentServer("p-1", "b", (1,), {"y": (1,)}))
    groups = [lone("x", part(10)), lone("y", part(10)), lone("big", exclusive(2))]
    plan = pack(pool([linked_node("a", 2), linked_node("b", 2)], groups, current=distribution))
    assert not plan.unplaced
    moved = [
        (name, location) for name, location in seats(plan).items() if location not in ([("a", (0,))], [("b", (1,))])
    ]
    assert [name for name, _ in moved] == ["big"] or len(moved) == 2
    assert plan.gpus_used == 3


def test_one_move_frees_memory_in_a_pool_too_large_to_search_completely() -> None:
    nodes = [linked_node(f"n{i:02}", 2) for i in range(12)]
    current = tuple(CurrentServer(f"p-{i}", f"n{i:02}", (0,), {f"m{i:02}": (0,)}) for i in range(12))
    groups = [lone(f"m{i:02}", part(30)) for i in range(12)] + [lone("big", exclusive(2))]
    plan = pack(pool(nodes, groups, current=current))
    assert not plan.unplaced
    stayed = {(s.node, p.model, p.gpus) for s in plan.servers for p in s.placements}
    assert len(stayed & {(f"n{i:02}", f"m{i:02}", (0,)) for i in range(12)}) == 11


def test_a_large_fleet_comes_close_to_the_bound() -> None:
    sizes = [(5 + 7 * i % 31, 50 + 37 * i % 400) for i in range(120)]
    groups = [lone(f"m{i:03}", part(memory, compute)) for i, (memory, compute) in enumerate(sizes)]
    groups += [lone(f"w{i}", exclusive(2)) for i in range(6)]
    facts = pool([linked_node(f"n{i:02}", 8) for i in range(16)], groups)
    plan = pack(facts)
    assert not plan.unplaced
    assert plan.gpus_used <= 1.05 * lower_bound(facts)
    assert plan.gpus_one_per_model == 132


@pytest.mark.parametrize(("replicas", "expected"), [(1, 1), (3, 3)])
def test_replicas_count_in_the_bound_because_they_share_no_gpu(replicas: int, expected: int) -> None:
    assert lower_bound(pool([linked_node("a")], [lone("x", part(1, 10), replicas)])) == expected


def test_two_pools_never_take_the_same_gpu() -> None:
    one = pool([linked_node("a", 2)], [lone("x", part(60))])
    other = replace(one, pool=PoolKey("default/q"), groups=(lone("y", part(60)),))
    plans = pack_fleet([other, one])
    assert [(p.pool, s.gpus) for p in plans.pools for s in p.servers] == [("default/p", (0,)), ("default/q", (1,))]
    reserved = replace(other, current=(CurrentServer("q-0", "a", (0,), {"y": (0,)}),))
    plans = pack_fleet([reserved, one])
    assert [(p.pool, s.gpus) for p in plans.pools for s in p.servers] == [("default/p", (1,)), ("default/q", (0,))]
    assert plans.gpus_used == 2


def test_what_fits_nowhere_counts_in_no_total() -> None:
    """A model of 400 GiB would fill five such GPUs, and takes none of them."""
    facts = pool([linked_node("a", 2)], [lone("small", part(8)), lone("huge", part(400)), lone("often", part(8), 3)])
    plans = pack_fleet([facts])
    (plan,) = plans.pools
    assert [item.group for item in plan.unplaced] == ["huge", "often"]
    assert plans.gpus_one_per_model == 3
    assert fewest_gpus(plans, [facts]) == plans.gpus_used == 2


def first(gpus: int) -> Footprint:
    return replace(exclusive(gpus), first_gpus=True)


def test_a_model_that_needs_the_first_gpus_of_its_server_gets_them() -> None:
    groups = [lone("a-part", part(8)), lone("split", first(2)), lone("glue", Footprint())]
    (server,) = pack(pool([linked_node("a")], groups, max_servers=1)).servers
    assert {item.model: item.gpus for item in server.placements} == {"a-part": (2,), "split": (0, 1), "glue": ()}


@pytest.mark.parametrize("most", [1, None])
def test_a_first_gpu_of_another_model_is_not_taken(most: int | None) -> None:
    """The other model moves where the pool may have no further server."""
    groups = [lone("a", part(8)), lone("split", first(2))]
    running = (CurrentServer("p-0", "a", (0,), {"a": (0,)}),)
    plan = pack(pool([linked_node("a")], groups, max_servers=most, current=running))
    assert not plan.unplaced
    assert len(plan.servers) == (most or 2)
    (server,) = (server for server in plan.servers if "split" in {item.model for item in server.placements})
    (split,) = (item for item in server.placements if item.model == "split")
    assert split.gpus == server.gpus[:2]


def test_an_ensemble_of_two_such_models_fits_nowhere() -> None:
    group = Group("e", (Demand("one", 1, first(2)), Demand("two", 1, first(2))))
    (unplaced,) = pack(pool([linked_node("a")], [group])).unplaced
    assert "must share one server" in unplaced.message
