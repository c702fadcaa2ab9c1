"""The difference between the facts of two rounds: the groups that are to be planned again."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from argosy.planning.facts import CurrentServer, Group, Node, PoolFacts
from argosy.planning.plan import Placement, PoolPlan, ServerPlan


def changed_groups(last: PoolFacts, plan: PoolPlan, facts: PoolFacts) -> frozenset[str] | None:
    """Return the names of groups that are new, gone or different since the last plan, or that are not on servers as it
    has them; None where more than groups and servers differs.
    """
    same = replace(
        last, nodes=facts.nodes, groups=facts.groups, current=facts.current, taken=facts.taken, loaded=facts.loaded
    )
    if same != facts or not _same_nodes(last.nodes, facts.nodes):
        return None
    return _different(last.groups, facts.groups) | _displaced(plan.servers, facts)


def _same_nodes(last: Sequence[Node], nodes: Sequence[Node]) -> bool:
    return last == nodes or {node.name: node for node in last} == {node.name: node for node in nodes}


def _different(last: Iterable[Group], groups: Iterable[Group]) -> frozenset[str]:
    before = {group.name: group for group in last}
    changed = {group.name for group in groups if before.pop(group.name, None) != group}
    return frozenset(changed | before.keys())


def _displaced(planned: Iterable[ServerPlan], facts: PoolFacts) -> frozenset[str]:
    """Return the groups of servers that are not as planned, or that the plan has not."""
    left = {server.name: server for server in planned}
    models, groups = set[str](), set[str]()
    for server in facts.current:
        plan = left.get(server.name)
        if plan is not None and _is_as_planned(server, plan):
            del left[server.name]
        else:
            models |= server.placed.keys()
    for plan in left.values():
        groups |= plan.groups
    return frozenset(groups | _groups_with(models, facts.groups))


def _groups_with(models: AbstractSet[str], groups: Iterable[Group]) -> set[str]:
    if not models:
        return set()
    return {group.name for group in groups if any(demand.model in models for demand in group.demands)}


def _is_as_planned(server: CurrentServer, plan: ServerPlan) -> bool:
    if (server.node, server.gpus, len(server.placed)) != (plan.node, plan.gpus, len(plan.placements)):
        return False
    return all(
        server.placed.get(placement.model) == placement.gpus and _is_noted(server, placement)
        for placement in plan.placements
    )


def _is_noted(server: CurrentServer, placement: Placement) -> bool:
    """Return whether a server has noted what a model that shares GPUs was placed with."""
    noted = server.needs.get(placement.model)
    if noted is None:
        return placement.exclusive or not (placement.memory or placement.compute)
    return (noted.memory, noted.compute) == (placement.memory, placement.compute)
