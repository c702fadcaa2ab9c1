"""Remedies: the smallest change by which a replica without a place has one. Each holds where all is planned."""

import re
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import gpu_node, linked_node, lone
from tests.properties import examples

from argosy.api.pool.packing import Preemption
from argosy.api.values.identity import PoolKey
from argosy.planning.explanation.remedies.find import OF_A_ROUND, THOROUGH, find_remedies
from argosy.planning.explanation.remedies.remedy import Remedy, RemedyKind
from argosy.planning.facts import Demand, Footprint, Gpu, Group, Node, PoolFacts
from argosy.planning.nodes.slices import dra_index, first_index
from argosy.planning.packing.priorities import pack_by_priority
from argosy.planning.plan import PoolPlan
from argosy.planning.requirements import NodeRequirements
from argosy.planning.spreading import HOSTNAME, ZONE, Spread

POOL = PoolKey("n/p")
GIB = 1 << 30


def facts(nodes: list[Node], *groups: Group, **more: object) -> PoolFacts:
    return replace(PoolFacts(POOL, tuple(nodes), groups), **more)


def small(name: str, memory: int = 10, replicas: int = 1, compute: int = 100) -> Group:
    return lone(name, Footprint(memory * GIB, compute), replicas)


def planned(pool: PoolFacts) -> PoolPlan:
    return pack_by_priority([pool]).plan.pools[0]


def remedies(pool: PoolFacts, group: str) -> list[tuple[str, str]]:
    results = find_remedies([pool], pack_by_priority([pool]).plan, THOROUGH)
    return [(str(one.kind), one.text) for one in results.get((POOL, group), ())]


def first(pool: PoolFacts, group: str) -> str:
    return remedies(pool, group)[0][1]


def test_the_memory_to_be_freed_is_what_the_nearest_gpu_lacks() -> None:
    node = replace(gpu_node("a", 1), product="NVIDIA-H100")
    pool = facts([node], small("x", 58), small("y", 12))
    assert first(pool, "y") == "free 6 GiB on GPU 0 of node a (NVIDIA-H100)"


def test_compute_is_freed_where_that_is_short() -> None:
    pool = facts([gpu_node("a", 1)], small("x", 40, compute=800), small("y", 30, compute=350))
    assert first(pool, "y") == "free 6 GiB and 15 % of compute on GPU 0 of node a"


def test_compute_is_freed_on_a_partition_that_a_driver_publishes() -> None:
    index = dra_index("mig.nvidia.com", "p", part=True)
    pool = facts([Node("a", (Gpu(index, 80 * GIB, compute=285),))], small("x", 30, compute=200), small("y", 30))
    assert first(pool, "y") == f"free 1.5 % of compute on partition {index} of node a"


def test_a_lower_headroom_is_named_where_it_suffices() -> None:
    pool = facts([gpu_node("a", 1)], small("x", 70))
    assert remedies(pool, "x") == [("Setting", "memoryHeadroom 20 % → 12 %, so that node a has the memory")]
    assert remedies(facts([gpu_node("a", 1)], small("x", 78)), "x") == []


def test_a_pool_that_preempts_is_named_with_what_gives_way() -> None:
    running = planned(facts([gpu_node("a", 2)], small("low", 60), small("lower", 60))).current
    groups = [replace(small(name, 60), priority=at) for name, at in (("high", 10), ("low", 0), ("lower", -1))]
    pool = facts([gpu_node("a", 2)], *groups, current=running)
    text = "packing.preemption: LowerPriority in the pool, which takes it from lower with priority -1"
    assert remedies(pool, "high")[0] == ("Preemption", text)
    preempting = replace(pool, preemption=Preemption.LOWER_PRIORITY)
    assert [one.group for one in planned(preempting).unplaced] == ["lower"]


def test_a_pool_that_preempts_takes_nothing_for_a_replica_beyond_the_minimum() -> None:
    high = replace(small("high", 60, 2), priority=10, minimum=1, declared=2)
    results = remedies(facts([gpu_node("a", 2)], high, small("low", 60)), "high")
    assert results
    assert not {"Preemption", "Priority"} & {kind for kind, _ in results}


def test_a_further_node_is_of_the_smallest_type_that_would_do() -> None:
    tiny = Node("t", (Gpu(0, 24 * GIB, withheld_by="Pod a/b"),), "NVIDIA-L4")
    full = Node("b", (Gpu(0, 80 * GIB),), "NVIDIA-H100")
    pool = facts([tiny, full], small("x", 60), small("y", 12))
    assert remedies(pool, "y")[-1] == ("Node", "one more node like t (1 x NVIDIA-L4)")
    pool = facts([tiny, full], small("x", 60), small("y", 40))
    assert remedies(pool, "y")[-1] == ("Node", "one more node like b (1 x NVIDIA-H100)")


def test_slices_are_no_gpus_in_the_name_of_a_further_node() -> None:
    first = first_index("1g.10gb", single=False) or 0
    slices = tuple(Gpu(first + at, 10 * GIB, compute=142, withheld_by=f"Pod a/{at}") for at in range(7))
    mixed = Node("m", (Gpu(0, 80 * GIB, withheld_by="Pod a/b"), *slices), "NVIDIA-H100")
    pool = facts([mixed], small("x", 7))
    assert remedies(pool, "x")[-1] == ("Node", "one more node like m (NVIDIA-H100: 1 GPU, 7 slices of 1g.10gb)")
    sliced = replace(mixed, gpus=(Gpu(1, 80 * GIB, withheld_by="MIG (9g.90gb, not supported)"), *slices))
    pool = facts([sliced], small("x", 7), small("y", 20))
    assert remedies(pool, "x")[-1] == ("Node", "one more node like m (NVIDIA-H100: 7 slices of 1g.10gb)")
    assert remedies(pool, "y") == []


def test_a_node_that_is_only_tried_goes_by_the_name_of_its_original() -> None:
    pool = facts([gpu_node("a-new-1", 1)], small("x", 60), small("y", 40))
    plan = pack_by_priority([pool]).plan
    node = find_remedies([pool], plan, THOROUGH, {"a-new-1": "a"})[POOL, "y"][-1]
    assert (node.text, node.option) == ("one more node like a", "--with-node a")


def test_equivalent_replicas_get_a_number_of_nodes() -> None:
    pool = facts([gpu_node("a", 1)], small("x", 60), *(small(f"y{n}", 40) for n in range(3)))
    results = find_remedies([pool], pack_by_priority([pool]).plan, THOROUGH)
    node = next(one for one in results[POOL, "y0"] if one.kind is RemedyKind.NODE)
    assert node == Remedy(RemedyKind.NODE, "one more node like a (3 for all 3 that need the same)", "--with-node a=3")
    assert results[POOL, "y0"] == results[POOL, "y2"]


def test_a_number_of_nodes_is_for_the_replicas_of_one_model() -> None:
    pool = facts([gpu_node("a", 1)], *(small(f"y{n}", 40, replicas=3) for n in range(3)))
    assert remedies(pool, "y2")[-1] == ("Node", "one more node like a (3 for all 3 of its replicas that lack one)")


def test_a_gpu_without_memory_has_no_remedy_by_headroom() -> None:
    pool = replace(facts([Node("a", (Gpu(0, 0),))], small("x", 10)), headroom=100)
    assert all(kind == RemedyKind.MEMORY for kind, _ in remedies(pool, "x"))


def test_fewer_replicas_are_as_many_as_are_placed() -> None:
    pool = facts([gpu_node("a", 2)], small("x", 10, replicas=3))
    assert ("Replicas", "replicas 3 → 2") in remedies(pool, "x")


def test_a_priority_is_named_only_where_the_plan_takes_from_what_is_lower() -> None:
    """What a plan never takes from is no remedy, whatever the priorities are."""
    chat = replace(small("chat", 60), priority=100)
    results = remedies(facts([gpu_node("a", 1)], chat, small("other", 40)), "other")
    assert results
    assert all(kind != RemedyKind.PRIORITY for kind, _ in results)


def test_where_a_pool_preempts_lower_priorities_a_priority_is_named() -> None:
    chat, other = replace(small("chat", 60), priority=100), small("other", 40)
    pool = facts([gpu_node("a", 1)], chat, other, preemption=Preemption.LOWER_PRIORITY)
    text = "a priority above 100, which takes it from chat"
    assert ("Priority", text) in remedies(pool, "other")
    raised = replace(pool, groups=(chat, replace(other, priority=101)), current=planned(pool).current)
    assert [one.group for one in planned(raised).unplaced] == ["chat"]
    equal = replace(raised, groups=(chat, replace(other, priority=100)))
    assert [one.group for one in planned(equal).unplaced] == ["other"]


def test_the_lowest_priority_that_would_do_is_named() -> None:
    groups = replace(small("high", 60), priority=100), replace(small("mid", 60), priority=50), small("new", 60)
    pool = facts([gpu_node("a", 2)], *groups, preemption=Preemption.LOWER_PRIORITY)
    assert ("Priority", "a priority above 50, which takes it from mid") in remedies(pool, "new")


def test_what_needs_a_gpu_alone_names_what_would_have_to_leave() -> None:
    pool = facts([linked_node("a", 2)], small("x"), small("y", 60), lone("big", Footprint(60 * GIB, 0, 2)))
    assert remedies(pool, "big")[0] == ("Others", "take x, y off GPUs 0, 1 of node a")


def test_a_replica_is_not_placed_by_taking_away_another_of_its_own() -> None:
    pool = facts([linked_node("a", 2)], lone("big", Footprint(60 * GIB, 0, 2), replicas=2))
    assert "Others" not in dict(remedies(pool, "big"))
    divided = lone("x", Footprint(40 * GIB, 0, shares=2), replicas=2)
    assert "Others" not in dict(remedies(facts([linked_node("a", 2)], divided), "x"))


def test_a_required_spread_is_loosened() -> None:
    zoned = [replace(gpu_node(name, 2), labels={ZONE: "z"}) for name in ("a", "b")]
    group = replace(small("x", replicas=2), spread=(Spread(HOSTNAME), Spread(ZONE, required=True, least=2)))
    assert first(facts(zoned, group), "x") == f"whenUnsatisfiable: ScheduleAnyway in its topologySpread ({ZONE})"


def test_an_anti_affinity_is_dropped_where_it_is_all_that_is_in_the_way() -> None:
    one, other = small("x"), small("y")
    pool = facts(
        [gpu_node("a", 1)], replace(one, not_on_node=frozenset({"y"})), replace(other, not_on_node=frozenset({"x"}))
    )
    (unplaced,) = planned(pool).unplaced
    placed = "y" if unplaced.group == "x" else "x"
    assert first(pool, unplaced.group) == f"no antiAffinity between it and {placed}"


@pytest.mark.parametrize(
    ("requires", "text"),
    [
        (NodeRequirements((("disk", "ssd"),)), "no nodeSelector disk=ssd, so that it may have node a"),
        (
            NodeRequirements(products=frozenset({"NVIDIA-H200"})),
            "a footprint.gpuType that allows NVIDIA-A100 (node a)",
        ),
    ],
)
def test_a_requirement_is_dropped_where_other_nodes_have_space(requires: NodeRequirements, text: str) -> None:
    node = replace(gpu_node("a", 1), product="NVIDIA-A100")
    group = Group("x", (Demand("x", 1, Footprint(GIB, 10), requires=requires),))
    assert first(facts([node], group), "x") == text


def test_limits_of_the_pool_are_raised() -> None:
    pool = facts([gpu_node("a", 2)], small("x", replicas=2), max_servers=1)
    assert first(pool, "x") == "the pool's maxServers (or replicas, where that is set) 1 → 2"
    pool = facts([linked_node("a", 2)], lone("big", Footprint(60 * GIB, 0, 2)), max_gpus_per_server=1)
    assert first(pool, "big") == "the pool's maxGpusPerServer 1 → 2"


def test_hosts_without_gpus_name_the_memory_to_be_freed() -> None:
    node = Node("c", (Gpu(0, 16 * GIB, is_cpu=True),))
    pool = facts([node], small("x"), small("y", 5))
    assert first(pool, "y") == "free 2.3 GiB of the memory of node c"


def test_a_model_for_gpus_is_never_sent_to_a_host_without_them() -> None:
    nodes = [Node("c", (Gpu(0, 512 * GIB, is_cpu=True),)), gpu_node("a", 1)]
    pool = facts(nodes, small("x", 60), small("y", 12))
    assert all("node c" not in text and "like c" not in text for _, text in remedies(pool, "y"))


def test_a_round_names_one_remedy_of_the_highest_priorities() -> None:
    groups = [small(f"m{n}", 60 - n) for n in range(9)]
    ranked = [replace(group, priority=n) for n, group in enumerate(groups)]
    pool = facts([gpu_node("a", 1)], *ranked)
    results = find_remedies([pool], pack_by_priority([pool]).plan, OF_A_ROUND)
    assert len(results) == OF_A_ROUND.demands
    assert all(len(of_group) == 1 for of_group in results.values())
    assert (POOL, "m7") in results


def test_gpus_of_another_pool_stay_there() -> None:
    other = PoolKey("n/a")
    node = gpu_node("a", 2)
    mine = facts([node], small("x", 60), small("y", 12))
    theirs = replace(facts([node], small("z", 60)), pool=other)
    plan = pack_by_priority([mine, theirs]).plan
    results = find_remedies([mine, theirs], plan, THOROUGH)[POOL, "y"]
    z_on = next(server for pool in plan.pools if pool.pool == other for server in pool.servers).gpus[0]
    assert f"GPU {1 - z_on} of node a" in results[0].text


def applied(pool: PoolFacts, group: Group, remedy: Remedy) -> PoolFacts:
    """Return the pool as the words of a remedy say."""
    if match := re.match(
        r"free ([\d.]+) (GiB|MiB)(?: and ([\d.]+) % of compute)? on GPU (\d+) of node (\w+)", remedy.text
    ):
        freed = round(float(match[1]) * (GIB if match[2] == "GiB" else GIB // 1024))
        more = -(-freed * 1000 // (1000 - pool.headroom)) + 1024
        nodes = tuple(
            replace(
                node,
                gpus=tuple(replace(g, memory=g.memory + more) if g.index == int(match[4]) else g for g in node.gpus),
            )
            if node.name == match[5]
            else node
            for node in pool.nodes
        )
        less = round(float(match[3] or 0) * 10)
        return with_group(
            replace(pool, nodes=nodes),
            group.with_footprints(lambda need: replace(need, compute=need.compute - less)),
        )
    if match := re.match(r"free ([\d.]+) % of compute", remedy.text):
        less = round(float(match[1]) * 10)
        return with_group(pool, group.with_footprints(lambda need: replace(need, compute=need.compute - less)))
    if match := re.match(r"one more node like (\w+)", remedy.text):
        like = next(node for node in pool.nodes if node.name == match[1])
        return replace(pool, nodes=(*pool.nodes, replace(like, name="further")))
    if match := re.match(r"replicas \d+ → (\d+)", remedy.text):
        return with_group(pool, replace(group, replicas=int(match[1])))
    if match := re.match(r"memoryHeadroom [\d.]+ % → ([\d.]+) %", remedy.text):
        return replace(pool, headroom=round(float(match[1]) * 10))
    if match := re.match(r"a priority above (\d+)", remedy.text):
        return with_group(pool, replace(group, priority=int(match[1]) + 1))
    gone = re.match(r"take (.+) off", remedy.text)
    assert gone, remedy
    names = {one.partition(" x")[0]: int(one.partition(" x")[2] or 1) for one in gone[1].split(", ")}
    fewer = (replace(one, replicas=one.replicas - names.get(one.name, 0)) for one in pool.groups)
    groups = tuple(one for one in fewer if one.replicas)
    current = tuple(
        replace(server, placed={model: gpus for model, gpus in server.placed.items() if model not in names})
        for server in pool.current
    )
    return replace(pool, groups=groups, current=current)


def with_group(pool: PoolFacts, changed: Group) -> PoolFacts:
    return replace(pool, groups=tuple(changed if one.name == changed.name else one for one in pool.groups))


def needs() -> st.SearchStrategy[Footprint]:
    shared = st.builds(
        lambda memory, compute: Footprint(memory * GIB, compute), st.integers(1, 60), st.integers(1, 600)
    )
    exclusive = st.builds(lambda gpus: Footprint(30 * GIB, 0, gpus), st.integers(1, 2))
    return st.one_of(shared, shared, shared, exclusive)


@given(st.lists(st.tuples(needs(), st.integers(1, 3), st.integers(0, 2)), min_size=2, max_size=9), st.integers(1, 3))
@examples(10)
def test_every_remedy_holds_when_the_pool_is_planned(models: list[tuple[Footprint, int, int]], nodes: int) -> None:
    groups = [replace(lone(f"m{n}", need, replicas), priority=rank) for n, (need, replicas, rank) in enumerate(models)]
    pool = facts([linked_node(name, 2) for name in "abc"[:nodes]], *groups)
    plan = planned(pool)
    results = find_remedies([pool], pack_by_priority([pool]).plan, THOROUGH)
    has = Counter(name for server in plan.servers for name in {placement.group for placement in server.placements})
    for (_, name), of_group in results.items():
        group = next(one for one in pool.groups if one.name == name)
        # The others that have no place stay without one, as the remedy is for this group alone.
        there = tuple(
            replace(one, replicas=has[one.name] + (one.name == name))
            for one in pool.groups
            if has[one.name] or one is group
        )
        running = replace(pool, groups=there, current=plan.current)
        for remedy in (one for one in of_group if " more off" not in one.text):
            after = planned(applied(running, next(one for one in there if one.name == name), remedy))
            assert [one for one in after.unplaced if one.group == name] == [], (remedy, after.unplaced)


def test_a_round_tries_nothing_that_takes_long() -> None:
    """A required spread is tried in the pool as it is, which takes long where that is large."""
    nodes = [replace(gpu_node(f"n{at:03}", 8), labels={ZONE: "z"}) for at in range(80)]
    spread = replace(small("x", replicas=2), spread=(Spread(HOSTNAME), Spread(ZONE, required=True, least=2)))
    many = [small(f"m{at:03}", 60) for at in range(OF_A_ROUND.largest + 1)]
    pool = facts(nodes, spread, *many)
    plan = pack_by_priority([pool]).plan
    node = RemedyKind.NODE
    assert node not in {one.kind for one in find_remedies([pool], plan, replace(OF_A_ROUND, remedies=4))[POOL, "x"]}


@pytest.mark.parametrize(("other", "whose"), [("n/q", ", which takes it from lower with priority -1"), ("other/q", "")])
def test_another_pool_that_keeps_lower_priorities_is_named_with_what_gives_way(other: str, whose: str) -> None:
    nodes = [gpu_node("a", 2)]
    low = [replace(small(name, 60), priority=at) for name, at in (("low", 0), ("lower", -1))]
    theirs = replace(facts(nodes, *low), pool=PoolKey(other))
    theirs = replace(theirs, current=planned(theirs).current)
    mine = facts(nodes, replace(small("high", 60), priority=10))
    results = find_remedies([mine, theirs], pack_by_priority([mine, theirs]).plan, THOROUGH)
    text = f"packing.preemption: LowerPriority in ServingPool {other}{whose}"
    assert ("Preemption", text) in [(str(one.kind), one.text) for one in results[POOL, "high"]]
    giving = pack_by_priority([mine, replace(theirs, preemption=Preemption.LOWER_PRIORITY)]).plan
    assert [lost.group for plan in giving.pools for lost in plan.lost] == ["lower"]
    equal = facts(nodes, replace(small("high", 60), priority=-1))
    results = find_remedies([equal, theirs], pack_by_priority([equal, theirs]).plan, THOROUGH)
    assert "Preemption" not in {str(one.kind) for one in results.get((POOL, "high"), ())}
