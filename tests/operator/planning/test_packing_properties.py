"""What holds for every plan, whatever the pool: capacity, company, distance, stability; and no refusal without need."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.plan_rules import broken_rules
from tests.properties import examples

from argosy.api.values.identity import PoolKey
from argosy.planning.facts import Demand, Footprint, Gpu, Group, Node, PoolFacts
from argosy.planning.packing.lower_bound import lower_bound, placed_groups
from argosy.planning.packing.solve import pack
from argosy.planning.plan import PoolPlan, replica_counts

GIB = 1 << 30

shared = st.builds(
    Footprint,
    memory=st.integers(1, 9).map(lambda size: size * GIB),
    compute=st.sampled_from([0, 100, 300, 600, 900]),
)
exclusive = st.builds(Footprint, memory=st.integers(0, 9).map(lambda size: size * GIB), gpus=st.integers(1, 3))
footprints = st.one_of(shared, shared, exclusive, st.just(Footprint()))


@st.composite
def groups(draw: st.DrawFn, most: int, models: int, replicas: int) -> tuple[Group, ...]:
    result = []
    for g in range(draw(st.integers(1, most))):
        replicas_value = draw(st.integers(1, replicas))
        demands = tuple(
            Demand(f"m{g}{m}", 1, draw(footprints), replicas_value) for m in range(draw(st.integers(1, models)))
        )
        result.append(Group(f"g{g}", demands, replicas_value))
    return tuple(result)


@st.composite
def fleets(draw: st.DrawFn, nodes: int = 3, gpus: int = 4) -> tuple[Node, ...]:
    result = []
    for n in range(draw(st.integers(1, nodes))):
        count = draw(st.integers(1, gpus))
        size = draw(st.sampled_from([8, 10])) * GIB
        linked = draw(st.integers(0, count))
        nvlink = (frozenset(range(linked)),) if linked > 1 else ()
        reserved = draw(st.frozensets(st.integers(0, count - 1), max_size=1))
        devices = tuple(Gpu(i, size, withheld_by="Pod n/x" if i in reserved else "") for i in range(count))
        result.append(Node(f"n{n}", devices, nvlink=nvlink))
    return tuple(result)


@st.composite
def pools(draw: st.DrawFn, most: int = 8, nodes: int = 3, gpus: int = 4, models: int = 3) -> PoolFacts:
    return PoolFacts(
        pool=PoolKey("default/p"),
        nodes=draw(fleets(nodes, gpus)),
        groups=draw(groups(most, models, 2)),
        headroom=draw(st.sampled_from([0, 200])),
        max_gpus_per_server=draw(st.sampled_from([None, None, 1, 2])),
        max_servers=draw(st.sampled_from([None, None, 1, 2])),
    )


def again(facts: PoolFacts, plan: PoolPlan, **changed: object) -> PoolFacts:
    return replace(facts, current=plan.current, **changed)


@given(pools())
@examples(50)
def test_every_plan_keeps_to_the_rules_and_moves_nothing_when_it_is_made_again(facts: PoolFacts) -> None:
    plan = pack(facts)
    assert broken_rules(facts, plan) == []
    assert pack(again(facts, plan)).servers == plan.servers
    for server in plan.servers:
        assert set(server.gpus) == {gpu for placement in server.placements for gpu in placement.gpus}
    placed, missing = replica_counts(plan.servers), Counter(item.group for item in plan.unplaced)
    assert {group.name: placed[group.name] + missing[group.name] for group in facts.groups} == {
        group.name: group.replicas for group in facts.groups
    }
    assert plan.gpus_total == sum(len(node.gpus) for node in facts.nodes)
    held = any(gpu.withheld_by for node in facts.nodes for gpu in node.gpus)
    if held and plan.unplaced and all(item.reason in ("NoFreeGpus", "NoRoom") for item in plan.unplaced):
        assert all("Pod n/x" in item.message for item in plan.unplaced)
    packed = replace(facts, groups=placed_groups(facts.groups, plan.servers))
    assert plan.unplaced or packed == facts
    assert lower_bound(packed) <= plan.gpus_used <= plan.gpus_total


@given(pools(), st.randoms(use_true_random=False))
@examples(40)
def test_the_plan_does_not_depend_on_the_order_of_the_facts(facts: PoolFacts, random: object) -> None:
    nodes, result = list(facts.nodes), list(facts.groups)
    random.shuffle(nodes)  # type: ignore[attr-defined]
    random.shuffle(result)  # type: ignore[attr-defined]
    assert pack(replace(facts, nodes=tuple(nodes), groups=tuple(result))) == pack(facts)


@given(pools(), st.data())
@examples(50)
def test_removing_a_group_moves_no_other(facts: PoolFacts, data: st.DataObject) -> None:
    plan = pack(facts)
    if plan.unplaced:
        return
    gone = data.draw(st.sampled_from(facts.groups)).name
    left = pack(again(facts, plan, groups=tuple(g for g in facts.groups if g.name != gone)))
    assert seats(left) == {seat for seat in seats(plan) if seat[0] != gone}


@given(pools())
@examples(50)
def test_a_newcomer_never_drives_out_what_runs(facts: PoolFacts) -> None:
    before = replace(facts, groups=facts.groups[1:])
    plan = pack(before)
    after = pack(again(facts, plan))
    running, still = [sorted(seat[:2] for seat in seats(p) if seat[0] != facts.groups[0].name) for p in (plan, after)]
    assert len(running) <= len(still)


def seats(plan: PoolPlan) -> set[tuple[str, str, str, str, tuple[int, ...]]]:
    return {(p.group, p.model, s.name, s.node, p.gpus) for s in plan.servers for p in s.placements}


@given(pools(most=3, nodes=2, gpus=2, models=2))
@examples(100)
def test_a_small_pool_is_refused_only_what_fits_in_no_way(facts: PoolFacts) -> None:
    assert bool(pack(facts).unplaced) == (not feasible(facts))


@given(pools(most=5, nodes=2, gpus=2, models=1), st.data())
@examples(80)
def test_what_runs_frees_memory_for_what_would_fit(facts: PoolFacts, data: st.DataObject) -> None:
    """Some groups go, which leaves holes, and others come: they are refused only if no packing has all."""
    names = [group.name for group in facts.groups]
    gone = set(data.draw(st.lists(st.sampled_from(names), max_size=3)))
    new = set(data.draw(st.lists(st.sampled_from(names), max_size=2))) - gone
    before = pack(replace(facts, groups=tuple(g for g in facts.groups if g.name not in new)))
    after = replace(facts, groups=tuple(g for g in facts.groups if g.name not in gone)[:3])
    assert bool(pack(again(after, before)).unplaced) == (not feasible(after))


def feasible(facts: PoolFacts) -> bool:
    """Return whether every replica fits, by trying every way to divide replicas among servers."""
    replicas = [group for group in facts.groups for _ in range(group.replicas)]
    return any(_housed(facts, servers, frozenset()) for servers in _partitions(replicas) if _allowed(facts, servers))


def _allowed(facts: PoolFacts, servers: Sequence[Sequence[Group]]) -> bool:
    apart = all(len({group.name for group in server}) == len(server) for server in servers)
    return apart and (facts.max_servers is None or len(servers) <= facts.max_servers)


def _partitions(items: Sequence[Group]) -> Iterator[list[list[Group]]]:
    if not items:
        yield []
        return
    for rest in _partitions(items[1:]):
        yield [[items[0]], *rest]
        for at in range(len(rest)):
            yield [*rest[:at], [items[0], *rest[at]], *rest[at + 1 :]]


def _housed(facts: PoolFacts, servers: Sequence[Sequence[Group]], taken: frozenset[tuple[str, int]]) -> bool:
    if not servers:
        return True
    demands = [demand.footprint for group in servers[0] for demand in group.demands]
    for node in facts.nodes:
        free = [g.index for g in node.gpus if not g.withheld_by and (node.name, g.index) not in taken]
        limit = len(free) if facts.max_gpus_per_server is None else min(len(free), facts.max_gpus_per_server)
        for count in range(limit + 1):
            for gpus in combinations(free, count):
                mine = frozenset((node.name, gpu) for gpu in gpus)
                if _seated(facts, node, gpus, demands) and _housed(facts, servers[1:], taken | mine):
                    return True
    return False


def _seated(facts: PoolFacts, node: Node, gpus: Sequence[int], needs: Sequence[Footprint]) -> bool:
    ways = [[()] if n.on_cpu else list(combinations(gpus, n.gpus or 1)) for n in needs]
    return any(_fits(facts, node, needs, seats) for seats in product(*ways))


def _fits(facts: PoolFacts, node: Node, needs: Sequence[Footprint], seats: Sequence[tuple[int, ...]]) -> bool:
    for gpu in node.gpus:
        here = [need for need, seat in zip(needs, seats, strict=True) if gpu.index in seat]
        if sum(need.memory for need in here) > gpu.memory * (1000 - facts.headroom) // 1000:
            return False
        if sum(need.compute for need in here) > 1000 or (len(here) > 1 and any(need.exclusive for need in here)):
            return False
    several = [seat for seat in seats if len(seat) > 1]
    return all(any(set(seat) <= joined for joined in node.nvlink) for seat in several)


@st.composite
def wordy_pools(draw: st.DrawFn) -> PoolFacts:
    """Draw pools whose models have configurations that fill a server's documents."""
    facts = draw(pools())
    sized = tuple(replace(group, size=draw(st.sampled_from([0, 10, 30, 60, 95, 110]))) for group in facts.groups)
    return replace(facts, groups=sized, placed_bytes=95, staying_bytes=100)


def bytes_of(facts: PoolFacts, plan: PoolPlan) -> list[int]:
    """Return how many bytes the models of each server take of its documents."""
    sizes = {group.name: group.size for group in facts.groups}
    return [
        sum(sizes[name] for name in {placement.group for placement in server.placements}) for server in plan.servers
    ]


@given(wordy_pools(), st.integers(0, 5))
@examples(80)
def test_no_server_has_more_than_its_documents_hold(facts: PoolFacts, more: int) -> None:
    """A running model moves only if its configuration grows much, and what found no server fits once all are small."""
    plan = pack(facts)
    assert all(size <= facts.placed_bytes for size in bytes_of(facts, plan))
    assert {item.reason for item in plan.unplaced if item.group in _too_wordy(facts)} <= {"ConfigTooLarge", "NoGpus"}
    assert {item.group for item in plan.unplaced} >= _too_wordy(facts)
    little = tuple(replace(group, size=group.size + more * (group.size == 95)) for group in facts.groups)
    assert pack(again(replace(facts, groups=little), plan)).servers == plan.servers
    much = replace(facts, groups=tuple(replace(group, size=group.size * 2) for group in facts.groups))
    assert all(size <= facts.staying_bytes for size in bytes_of(much, pack(again(much, plan))))
    if any(item.reason == "NoRoomForConfig" for item in plan.unplaced):
        small = tuple(replace(group, size=0) for group in facts.groups)
        assert len(pack(again(facts, plan, groups=small)).unplaced) < len(plan.unplaced)


def _too_wordy(facts: PoolFacts) -> set[str]:
    return {group.name for group in facts.groups if group.size > facts.placed_bytes}
