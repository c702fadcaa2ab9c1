"""Topology domains of further nodes: those in which a group that is spread in any case may have one more replica."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from argosy.planning.facts import Group, Node, PoolFacts
from argosy.planning.packing.layout import Topology
from argosy.planning.plan import PoolPlan
from argosy.planning.spreading import HOSTNAME

Domains = tuple[tuple[str, tuple[str, ...]], ...]
"""Labels that a node must have, each with the values that will not do, in order."""


def full_domains(facts: PoolFacts, plan: PoolPlan, groups: Iterable[Group]) -> dict[str, Domains]:
    """Return the domains that may have no further replica, of each group that is spread in any case."""
    spread = [group for group in groups if group.spread_required]
    topology = Topology.of(facts) if spread else None
    return {group.name: _full(topology, plan, group) for group in spread if topology is not None}


def _full(topology: Topology, plan: PoolPlan, group: Group) -> Domains:
    hosting = [server.node for server in plan.servers if any(one.group == group.name for one in server.placements)]
    result: list[tuple[str, tuple[str, ...]]] = []
    for limit in topology.limits_of(group):
        counts = limit.count(hosting)
        full = {domain for node, domain in limit.domains.items() if not limit.allows(counts, node)}
        if limit.key != HOSTNAME:
            result.append((limit.key, tuple(sorted(full))))
    return tuple(sorted(result))


def in_domains(node_type: Node, groups: Iterable[Group]) -> Node:
    """Return a type of nodes with every label by which groups are spread in any case."""
    keys = {spread.key for group in groups for spread in group.spread if spread.required}
    lacking: Mapping[str, str] = {key: "further" for key in keys if not node_type.domain(key)}
    return replace(node_type, labels={**node_type.labels, **lacking}) if lacking else node_type
