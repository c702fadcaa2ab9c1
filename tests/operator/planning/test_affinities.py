"""Models that share servers, and models that are kept apart: as declared, by both of a pair, and what is refused."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import ensemble, facts_of, gpu_node, lone, model, pool
from tests.properties import examples

from argosy.api.values.identity import PoolKey
from argosy.planning.facts import CurrentServer, Footprint, Node, PoolFacts
from argosy.planning.packing.solve import pack
from argosy.planning.plan import PoolPlan
from argosy.planning.validation.graph import Invalid
from argosy.planning.validation.references import check_set

GIB = 1 << 30
LIMITS: list[dict[str, Any]] = [{}, {"maxServers": 9}]


def apart(name: str, level: str = "Server") -> dict[str, Any]:
    return {"antiAffinity": [{"name": name, "level": level}]}


def near(*names: str) -> dict[str, Any]:
    return {"affinity": [{"name": name} for name in names]}


def planned(nodes: Sequence[Node], *members: Any, **limits: Any) -> PoolPlan:
    (facts,) = facts_of([pool(**limits), *members], nodes)
    return pack(facts)


def together(plan: PoolPlan) -> list[list[str]]:
    """Return the models of each server."""
    return sorted(sorted(placement.model for placement in server.placements) for server in plan.servers)


@pytest.mark.parametrize("limits", LIMITS)
def test_models_with_anti_affinity_share_no_server(limits: dict[str, Any]) -> None:
    plan = planned([gpu_node("a", 2)], model("m", **apart("n")), model("n"), model("o"), **limits)
    assert plan.unplaced == ()
    assert not any({"m", "n"} <= set(names) for names in together(plan))


@pytest.mark.parametrize("limits", LIMITS)
def test_models_with_anti_affinity_by_nodes_share_no_node(limits: dict[str, Any]) -> None:
    plan = planned([gpu_node("a", 2), gpu_node("b", 2)], model("m"), model("n", **apart("m", "Node")), **limits)
    assert len({server.node for server in plan.servers}) == len(plan.servers) == 2


@pytest.mark.parametrize("limits", LIMITS)
def test_a_third_model_does_not_bring_them_together(limits: dict[str, Any]) -> None:
    """An ensemble of two models ties two GPUs, on each of which one of the pair has space."""
    pair = [model("m", memory=30, **apart("n")), model("n", memory=30)]
    parts = [model("x", memory=30), model("y", memory=40)]
    plan = planned([gpu_node("a", 4)], *pair, *parts, ensemble("e", "x", "y"), **limits)
    assert plan.unplaced == ()
    assert not any({"m", "n"} <= set(names) for names in together(plan))


def test_on_processors_they_have_servers_of_their_own() -> None:
    plan = planned([gpu_node("a", 1)], model("m", memory=0, **apart("n")), model("n", memory=0))
    assert together(plan) == [["m"], ["n"]]


@pytest.mark.parametrize(("level", "on"), [("Server", "level Server, on a"), ("Node", "level Node, on a")])
def test_what_finds_no_slot_for_it_names_the_other(level: str, on: str) -> None:
    plan = planned([gpu_node("a", 1)], model("m", priority=5), model("n", **apart("m", level)))
    (unplaced,) = plan.unplaced
    assert (unplaced.group, unplaced.reason) == ("n", "AntiAffinity")
    assert f"n fits only where antiAffinity keeps it away from m ({on})" in unplaced.message


def test_an_affinity_puts_models_on_one_server() -> None:
    nodes = [gpu_node("a", 1), gpu_node("b", 1)]
    plan = planned(nodes, model("m", memory=30, **near("n")), model("n", memory=30), model("o", memory=34))
    assert ["m", "n"] in together(plan)


def test_an_affinity_to_an_ensemble_is_one_to_its_models() -> None:
    members = [model("m", **near("e")), model("x"), model("y"), ensemble("e", "x", "y", minReplicas=2)]
    (facts,) = facts_of([pool(), *members], [gpu_node("a", 4)])
    (group,) = facts.groups
    assert (sorted(demand.model for demand in group.demands), group.replicas) == (["m", "x", "y"], 2)


def test_what_runs_together_moves_apart_once_it_is_to() -> None:
    (facts,) = facts_of([pool(), model("m", **apart("n")), model("n")], [gpu_node("a", 2)])
    both = CurrentServer("p-0", "a", (0,), {"m": (0,), "n": (0,)})
    plan = pack(replace(facts, current=(both,)))
    assert together(plan) == [["m"], ["n"]]
    assert "p-0" in {server.name for server in plan.servers}


def test_what_runs_together_and_has_no_other_slot_stays() -> None:
    (facts,) = facts_of([pool(), model("m", **apart("n")), model("n")], [gpu_node("a", 1)])
    both = CurrentServer("p-0", "a", (0,), {"m": (0,), "n": (0,)})
    assert together(pack(replace(facts, current=(both,)))) == [["m", "n"]]


@pytest.mark.parametrize(
    ("members", "path", "message"),
    [
        ([model("m", **near("n"), **apart("n")), model("n")], "spec.antiAffinity[0].name", "keeps 'm' and 'n' apart"),
        (
            [model("m", **near("o")), model("n", **near("o"), **apart("m")), model("o")],
            "spec.antiAffinity[0].name",
            "keeps 'n' and 'm' apart, and they share a server",
        ),
        (
            [model("m", **apart("n")), model("n"), ensemble("e", "m", "n")],
            "spec.antiAffinity[0].name",
            "models of one ensemble",
        ),
        ([model("m", **near("other")), model("others")], "spec.affinity[0].name", "did you mean 'others'?"),
        ([model("m", **apart("m"))], "spec.antiAffinity[0].name", "is this resource itself"),
        ([model("m", **apart("gone"))], "spec.antiAffinity[0].name", "pool 'p' has no model or ensemble 'gone'"),
    ],
)
def test_contradictions_and_unknown_names_are_refused(members: list[Any], path: str, message: str) -> None:
    (problem,) = check_set([pool(), *members])
    assert problem.path == path
    assert message in problem.message


def test_what_another_pool_has_or_is_not_valid_itself_is_no_unknown_name() -> None:
    other = model("n", poolRef={"name": "q"})
    (problem,) = check_set([pool(), pool("q"), model("m", **near("n")), other])
    assert problem.message == "'n' is in pool 'q', and only members of one pool share servers; remove this"
    broken = Invalid(frozenset({"InferenceModel default/n"}))
    assert check_set([pool(), model("m", **apart("n"))], invalid=broken) == []
    (problem,) = check_set([pool(), model("m", **near("n"))], invalid=replace(broken, is_error=True))
    assert problem.message == "'n' is not valid itself; correct that first"


def test_of_many_names_a_message_lists_the_first() -> None:
    (problem,) = check_set([pool(), model("x", **near("unlike-any")), *(model(f"m{at:03}") for at in range(200))])
    assert problem.message.endswith("m038, m039, and 160 more)")


@st.composite
def unfriendly_pools(draw: st.DrawFn) -> PoolFacts:
    """Draw pools whose groups are kept apart, by servers or by nodes."""
    nodes = tuple(gpu_node(f"n{at}", draw(st.integers(1, 3)), 10) for at in range(draw(st.integers(1, 4))))
    names = [f"m{at}" for at in range(draw(st.integers(2, 6)))]
    pairs = st.sets(st.tuples(st.sampled_from(names), st.sampled_from(names)).filter(lambda pair: pair[0] < pair[1]))
    by_server, by_node = draw(pairs), draw(pairs)
    groups = []
    for name in names:
        need = Footprint(draw(st.integers(0, 6)) * GIB, draw(st.sampled_from([0, 300])), 0)
        group = lone(name, need if need.memory else Footprint(), draw(st.integers(1, 2)))
        others = [
            frozenset(other for pair in pairs if name in pair for other in pair if other != name)
            for pairs in (by_server, by_node)
        ]
        groups.append(replace(group, not_on_server=others[0], not_on_node=others[1]))
    return PoolFacts(PoolKey("n/p"), nodes, tuple(groups), 0, max_servers=draw(st.sampled_from([None, None, 4])))


@given(unfriendly_pools())
@examples(60)
def test_nothing_is_next_to_what_it_is_separated_from(facts: PoolFacts) -> None:
    plan = pack(facts)
    of = {group.name: group for group in facts.groups}
    on_node: dict[str, set[str]] = {}
    for server in plan.servers:
        here = {placement.group for placement in server.placements}
        on_node.setdefault(server.node, set()).update(here)
        assert not any(of[name].not_on_server & here for name in here)
    assert not any(of[name].not_on_node & here for here in on_node.values() for name in here)
    assert pack(replace(facts, nodes=facts.nodes[::-1], groups=facts.groups[::-1])) == plan
    assert pack(replace(facts, current=plan.current)).servers == plan.servers
