"""Replicas apart: by nodes and zones where there is space, by what is required in any case, and what moves for it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import ensemble, facts_of, gpu_node, lone, model, pool
from tests.properties import examples

from argosy.api.values.identity import PoolKey
from argosy.planning.facts import CurrentServer, Footprint, Gpu, Node, PoolFacts
from argosy.planning.packing.solve import pack
from argosy.planning.plan import PoolPlan
from argosy.planning.spreading import DEFAULT_SPREAD, HOSTNAME, ZONE, Spread, spread_of

GIB = 1 << 30
RACK = "example.com/rack"
LIMITS: list[dict[str, Any]] = [{}, {"maxServers": 9}]
"""Pools that are searched, and pools that are filled in several orders."""


def spread(key: str, when: str = "DoNotSchedule", **more: Any) -> list[dict[str, Any]]:
    return [{"topologyKey": key, "whenUnsatisfiable": when, **more}]


def in_zones(zones: str, gpus: int = 1) -> list[Node]:
    """Return nodes in these zones, a letter each; `-` is a node without the label."""
    labels: list[dict[str, str]] = [{} if zone == "-" else {ZONE: zone} for zone in zones]
    return [gpu_node(f"n{at}", gpus, labels=of_node) for at, of_node in enumerate(labels)]


def zones_of(plan: PoolPlan, nodes: Sequence[Node], name: str = "m") -> str:
    """Return the zones of a model's replicas, in order."""
    zone = {node.name: node.domain(ZONE) or "-" for node in nodes}
    return "".join(sorted(zone[s.node] for s in plan.servers for p in s.placements if p.model == name))


def planned(nodes: Sequence[Node], *members: Any, **limits: Any) -> PoolPlan:
    (facts,) = facts_of([pool(**limits), *members], nodes)
    return pack(facts)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize(
    ("zones", "replicas", "result"),
    [("xxy", 2, "xy"), ("xxxyz", 3, "xyz"), ("xxy", 3, "xxy"), ("xxyy", 4, "xxyy"), ("xx", 2, "xx"), ("--x", 2, "-x")],
)
def test_replicas_prefer_different_zones(limits: dict[str, Any], zones: str, replicas: int, result: str) -> None:
    nodes = in_zones(zones)
    assert zones_of(planned(nodes, model("m", replicas=replicas), **limits), nodes) == result


def test_another_zone_costs_no_further_gpu() -> None:
    """In y a GPU would have to be opened, and two nodes of x have one that has space."""
    nodes = in_zones("xxy")
    big = [model(f"b{at}", memory=40, nodeSelector={ZONE: "x"}) for at in range(2)]
    plan = planned(nodes, *big, model("m", replicas=2))
    assert (plan.gpus_used, zones_of(plan, nodes)) == (2, "xx")


def test_another_node_is_preferred_to_another_zone() -> None:
    nodes = in_zones("xxx", gpus=2)
    assert len({server.node for server in planned(nodes, model("m", replicas=2)).servers}) == 2


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize(
    ("zones", "replicas", "result", "unplaced"),
    [
        ("xxy", 2, "xy", 0),
        ("xxy", 3, "xxy", 0),
        ("xxxy", 4, "xxy", 1),
        ("xxxxyz", 5, "xxyz", 1),
        ("xxx", 2, "xx", 0),
        ("x---", 3, "x", 2),
        ("-x", 1, "x", 0),
        ("--", 1, "", 1),
    ],
)
def test_a_required_spread_is_even_or_leaves_out(
    limits: dict[str, Any], zones: str, replicas: int, result: str, unplaced: int
) -> None:
    nodes = in_zones(zones)
    plan = planned(nodes, model("m", replicas=replicas, topologySpread=spread(ZONE)), **limits)
    assert (zones_of(plan, nodes), len(plan.unplaced)) == (result, unplaced)
    assert {item.reason for item in plan.unplaced} <= {"ReplicasApart"}


@pytest.mark.parametrize(("least", "result"), [(1, "xx"), (2, "x")])
def test_fewer_domains_than_the_least_have_no_second_replica(least: int, result: str) -> None:
    nodes = in_zones("xxx")
    plan = planned(nodes, model("m", replicas=2, topologySpread=spread(ZONE, minDomains=least)))
    assert zones_of(plan, nodes) == result


def test_a_full_zone_keeps_its_share_free_of_others() -> None:
    nodes = in_zones("xxy")
    other = model("big", memory=60, nodeSelector={ZONE: "y"}, priority=9)
    plan = planned(nodes, other, model("m", replicas=2, topologySpread=spread(ZONE)))
    (unplaced,) = plan.unplaced
    assert zones_of(plan, nodes) == "x"
    for words in (f"at most 1 replica for each value of {ZONE}, and x has 1", "ScheduleAnyway", "Add a node elsewhere"):
        assert words in unplaced.message


def test_a_zone_without_a_gpu_that_could_have_it_does_not_count() -> None:
    """With three zones each would have one replica, and the third none."""
    laptop = Node("c", (Gpu(0, 64 * GIB, is_cpu=True),), labels={ZONE: "w"})
    nodes = [*in_zones("xxy"), replace(gpu_node("small", 1, 8), labels={ZONE: "z"}), laptop]
    plan = planned(nodes, model("m", replicas=3, topologySpread=spread(ZONE)))
    assert (zones_of(plan, nodes), plan.unplaced) == ("xxy", ())


def test_nodes_without_the_label_are_named() -> None:
    unplaced = planned(in_zones("---"), model("m", replicas=2, topologySpread=spread(ZONE))).unplaced
    assert len(unplaced) == 2
    assert (
        f"spread by {ZONE} (topologySpread, DoNotSchedule), and no node of the pool has that label"
        in unplaced[0].message
    )


def test_a_node_without_the_label_is_named_next_to_the_zones() -> None:
    (unplaced,) = planned(in_zones("x-"), model("m", replicas=2, topologySpread=spread(ZONE))).unplaced
    assert f"each value of {ZONE}, and x has 1, and n1 without that label may have none" in unplaced.message


@pytest.mark.parametrize("limits", LIMITS)
def test_one_without_a_node_that_has_the_label_takes_nothing_from_others(limits: dict[str, Any]) -> None:
    """They need the same, and are explained apart."""
    spread_one = model("m", topologySpread=spread(ZONE), priority=9)
    plan = planned(in_zones("-"), spread_one, model("n", priority=5), model("o", memory=60), **limits)
    assert {p.model for s in plan.servers for p in s.placements} == {"n"}
    assert {one.group: str(one.reason) for one in plan.unplaced} == {"m": "ReplicasApart", "o": "NoRoom"}


def test_a_replica_that_serves_stays_on_a_node_without_the_label() -> None:
    (facts,) = facts_of([pool(), model("m", topologySpread=spread(ZONE))], in_zones("--"))
    plan = pack(replace(facts, current=running(("p-0", "n0"))))
    assert [(server.name, server.node) for server in plan.servers] == [("p-0", "n0")]


def test_the_strictest_of_an_ensemble_and_its_models_holds() -> None:
    members = [
        model("a", topologySpread=spread(ZONE, "ScheduleAnyway")),
        model("b", topologySpread=spread(RACK, minDomains=2)),
        ensemble("e", "a", "b", topologySpread=spread(RACK, "ScheduleAnyway")),
    ]
    assert spread_of(members) == (Spread(HOSTNAME), Spread(ZONE), Spread(RACK, required=True, least=2))
    assert spread_of([model("a")]) == DEFAULT_SPREAD


def running(*replicas: tuple[str, str]) -> tuple[CurrentServer, ...]:
    """Return servers that run model m, by name and node."""
    return tuple(CurrentServer(name, node, (0,), {"m": (0,)}) for name, node in replicas)


def test_what_runs_too_close_together_stays_where_it_is_only_preferred() -> None:
    nodes = in_zones("xxy")
    (facts,) = facts_of([pool(), model("m", replicas=2)], nodes)
    plan = pack(replace(facts, current=running(("p-0", "n0"), ("p-1", "n1"))))
    assert [(server.name, server.node) for server in plan.servers] == [("p-0", "n0"), ("p-1", "n1")]


def test_what_runs_against_a_required_spread_moves() -> None:
    nodes = in_zones("xxy")
    (facts,) = facts_of([pool(), model("m", replicas=2, topologySpread=spread(ZONE))], nodes)
    plan = pack(replace(facts, current=running(("p-0", "n0"), ("p-1", "n1"))))
    assert zones_of(plan, nodes) == "xy"
    assert "p-0" in {server.name for server in plan.servers}


def test_what_runs_and_has_no_allowed_slot_stays() -> None:
    nodes = in_zones("xxy")
    full = replace(nodes[2], gpus=tuple(replace(gpu, withheld_by="Pod n/x") for gpu in nodes[2].gpus))
    least = spread(ZONE, minDomains=2)
    (facts,) = facts_of([pool(), model("m", replicas=2, topologySpread=least)], [*nodes[:2], full])
    plan = pack(replace(facts, current=running(("p-0", "n0"), ("p-1", "n1"))))
    assert (zones_of(plan, nodes), plan.unplaced) == ("xx", ())


def test_fewer_replicas_leave_the_zone_that_has_most() -> None:
    nodes = in_zones("xxyy")
    (facts,) = facts_of([pool(), model("m", replicas=2)], nodes)
    plan = pack(replace(facts, current=running(("p-0", "n0"), ("p-1", "n1"), ("p-2", "n2"), ("p-3", "n3"))))
    assert zones_of(plan, nodes) == "xy"
    assert {server.name for server in plan.servers} <= {"p-0", "p-1", "p-2", "p-3"}


@st.composite
def spread_pools(draw: st.DrawFn) -> PoolFacts:
    """Draw pools over zones and racks, whose models require or prefer a spread."""
    nodes = tuple(
        gpu_node(f"n{at}", draw(st.integers(1, 2)), 10, labels=_labels(draw)) for at in range(draw(st.integers(1, 6)))
    )
    keys = st.sampled_from([HOSTNAME, ZONE, RACK])
    groups = []
    for at in range(draw(st.integers(1, 4))):
        need = Footprint(draw(st.integers(1, 9)) * GIB, draw(st.sampled_from([0, 300, 600])), 0)
        required = draw(st.frozensets(keys, max_size=2))
        spreads = tuple(Spread(key, key in required) for key in (HOSTNAME, ZONE, *sorted(required & {RACK})))
        groups.append(replace(lone(f"m{at}", need, draw(st.integers(1, 4))), spread=spreads))
    return PoolFacts(PoolKey("n/p"), nodes, tuple(groups), 0, max_servers=draw(st.sampled_from([None, None, 4])))


def _labels(draw: st.DrawFn) -> dict[str, str]:
    zones = {ZONE: draw(st.sampled_from("xyz"))} if draw(st.booleans()) else {}
    return zones | ({RACK: draw(st.sampled_from("12"))} if draw(st.booleans()) else {})


@given(spread_pools())
@examples(80)
def test_no_domain_has_more_than_its_share(facts: PoolFacts) -> None:
    """Counted by the labels, with no code of the packer."""
    plan = pack(facts)
    labels = {node.name: {HOSTNAME: node.name, **node.labels} for node in facts.nodes}
    for group in facts.groups:
        if group.replicas < 2:
            continue
        need = group.demands[0].footprint.memory
        able = [node.name for node in facts.nodes if any(gpu.memory >= need for gpu in node.gpus)]
        here = [server.node for server in plan.servers if any(p.group == group.name for p in server.placements)]
        for spread_by in (one for one in group.spread if one.required):
            domains = {labels[name][spread_by.key] for name in able if spread_by.key in labels[name]}
            counts = Counter(labels[name].get(spread_by.key, "none") for name in here)
            assert set(counts) <= domains
            if len(here) == group.replicas:
                assert max(counts.values()) - min(counts[domain] for domain in domains) <= 1
            assert max(counts.values(), default=0) <= -(-group.replicas // max(1, len(domains)))
    assert pack(replace(facts, nodes=facts.nodes[::-1], groups=facts.groups[::-1])) == plan
    assert pack(replace(facts, current=plan.current)).servers == plan.servers
