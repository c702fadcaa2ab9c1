"""Growth: a model that needs more than it was placed with moves itself, and its neighbours stay where they are."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import GIB, gpu_node, lone
from tests.properties import examples

from argosy.api.pool.packing import Preemption
from argosy.api.values.identity import PoolKey
from argosy.planning.facts import Footprint, Group, Need, Node, PoolFacts
from argosy.planning.packing.solve import pack
from argosy.planning.plan import PoolPlan

POOL = PoolKey("default/p")
Where = dict[str, list[tuple[str, tuple[int, ...]]]]


def shared(name: str, memory: int, compute: int = 0, priority: int = 0) -> Group:
    return replace(lone(name, Footprint(memory * GIB, compute)), priority=priority)


def running(nodes: Sequence[Node], *groups: Group, **fields: object) -> PoolFacts:
    """Return the facts of a fleet that runs by a plan."""
    facts = replace(PoolFacts(POOL, tuple(nodes), groups, headroom=0), **fields)
    return replace(facts, current=pack(facts).current)


def changed(facts: PoolFacts, *groups: Group) -> PoolFacts:
    """Return the facts with these groups in place of those of the same names."""
    by_name = {group.name: group for group in groups}
    return replace(facts, groups=tuple(by_name.get(group.name, group) for group in facts.groups))


def where(plan: PoolPlan) -> Where:
    placements = Where()
    for server in plan.servers:
        for placement in server.placements:
            placements.setdefault(placement.model, []).append((server.name, placement.gpus))
    return placements


def placed(facts: PoolFacts) -> Where:
    return {
        model: [(s.name, s.placed[model]) for s in facts.current if model in s.placed]
        for model in {model for server in facts.current for model in server.placed}
    }


def disturbed(facts: PoolFacts, plan: PoolPlan, *besides: str) -> list[str]:
    """Return what a plan takes from where it runs, besides these models."""
    before, after = placed(facts), where(plan)
    return sorted(model for model in before if model not in besides and after.get(model) != before[model])


def test_a_model_that_outgrows_its_slot_moves_and_its_neighbours_stay() -> None:
    facts = running([gpu_node("a"), gpu_node("b")], *(shared(f"m{n}", 20) for n in range(4)))
    plan = pack(changed(facts, shared("m0", 40)))
    assert (disturbed(facts, plan, "m0"), plan.unplaced) == ([], ())
    assert disturbed(facts, plan) == ["m0"]


def test_it_stays_where_there_is_free_memory() -> None:
    facts = running([gpu_node("a"), gpu_node("b")], *(shared(f"m{n}", 20) for n in range(3)))
    plan = pack(changed(facts, shared("m0", 40)))
    assert (disturbed(facts, plan), plan.unplaced) == ([], ())


def test_more_compute_is_growth_too() -> None:
    facts = running([gpu_node("a"), gpu_node("b")], *(shared(f"m{n}", 10, 300) for n in range(3)))
    plan = pack(changed(facts, shared("m2", 10, 600)))
    assert disturbed(facts, plan) == ["m2"]


def test_a_model_that_now_needs_a_gpu_alone_moves_to_one() -> None:
    facts = running([gpu_node("a"), gpu_node("b")], shared("m0", 20), shared("m1", 20))
    plan = pack(changed(facts, lone("m0", Footprint(20 * GIB, gpus=1))))
    assert disturbed(facts, plan) == ["m0"]


def test_where_nothing_else_has_a_slot_its_neighbours_move() -> None:
    nodes = [gpu_node("a", memory=80), gpu_node("b", memory=30)]
    facts = running(nodes, shared("large", 40), shared("small", 20))
    plan = pack(changed(facts, shared("large", 70)))
    assert (disturbed(facts, plan), plan.unplaced) == (["small"], ())


def test_without_free_memory_the_priorities_decide() -> None:
    facts = running([gpu_node("a")], shared("low", 40), shared("high", 40, priority=9))
    assert [one.group for one in pack(changed(facts, shared("high", 60, priority=9))).unplaced] == ["high"]
    lower = replace(facts, preemption=Preemption.LOWER_PRIORITY)
    assert [one.group for one in pack(changed(lower, shared("high", 60, priority=9))).unplaced] == ["low"]
    assert [one.group for one in pack(changed(lower, shared("low", 60))).unplaced] == ["low"]


def test_a_measurement_that_vanishes_moves_nothing() -> None:
    facts = running([gpu_node("a"), gpu_node("b")], shared("m0", 20), shared("m1", 20))
    unknown = changed(facts, lone("m0", Footprint(0, gpus=1, assumed=True)))
    plan = pack(unknown)
    assert (disturbed(facts, plan), plan.unplaced) == ([], ())
    assert where(pack(replace(unknown, current=plan.current))) == where(plan)
    assert pack(unknown).current[0].needs["m0"] == Need(20 * GIB)


def test_without_a_note_of_what_it_was_placed_with_a_model_counts_as_unchanged() -> None:
    facts = running([gpu_node("a"), gpu_node("b")], *(shared(f"m{n}", 20) for n in range(4)))
    former = replace(facts, current=tuple(replace(server, needs={}) for server in facts.current))
    assert disturbed(former, pack(former)) == []
    assert pack(changed(former, shared("m0", 40))).unplaced == ()


def test_a_plan_notes_what_models_that_share_gpus_need() -> None:
    facts = running([gpu_node("a", 2)], shared("m", 20, 300), lone("whole", Footprint(30 * GIB, gpus=1)))
    needs = {model: need for server in facts.current for model, need in server.needs.items()}
    assert needs == {"m": Need(20 * GIB, 300)}


@st.composite
def fleets(draw: st.DrawFn) -> PoolFacts:
    """Return a fleet that runs, with most of its memory in use."""
    nodes = [gpu_node(f"n{n}", 2) for n in range(draw(st.integers(2, 4)))]
    left, groups = len(nodes) * 160 * 85 // 100, list[Group]()
    while left > 0:
        size = draw(st.sampled_from([6, 10, 15, 20, 30]))
        groups.append(shared(f"m{len(groups)}", size, 50, draw(st.sampled_from([0, 5, 10]))))
        left -= size
    return running(nodes, *groups, preemption=draw(st.sampled_from(Preemption)))


@given(fleets(), st.data())
@examples(40)
def test_nothing_moves_for_a_grown_model_that_has_another_slot(facts: PoolFacts, data: st.DataObject) -> None:
    grown = data.draw(st.sampled_from(facts.groups))
    double = shared(grown.name, 2 * grown.demands[0].footprint.memory // GIB, 50, grown.priority)
    plan = pack(changed(facts, double))
    left = {(node.name, gpu.index): gpu.memory for node in facts.nodes for gpu in node.gpus}
    for server in facts.current:
        for model, gpus in server.placed.items():
            for gpu in gpus if model != grown.name else ():
                left[server.node, gpu] -= server.needs[model].memory
    if max(left.values()) >= double.demands[0].footprint.memory:
        assert (disturbed(facts, plan, grown.name), plan.unplaced) == ([], ())
    after = replace(changed(facts, double), current=plan.current)
    assert where(pack(after)) == where(plan)


@given(fleets(), st.data())
@examples(15)
def test_nothing_moves_for_models_that_shrink(facts: PoolFacts, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(facts.groups), min_size=1, unique_by=lambda group: group.name))
    less = (shared(group.name, group.demands[0].footprint.memory // GIB // 2, 0, group.priority) for group in chosen)
    plan = pack(changed(facts, *less))
    assert (disturbed(facts, plan), plan.unplaced) == ([], ())
