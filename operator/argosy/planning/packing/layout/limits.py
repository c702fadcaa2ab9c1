"""Replicas apart: how many each topology domain may have, and where a further replica is close to others."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from argosy.planning.facts import Group, Node
from argosy.planning.spreading import HOSTNAME, Spread


@dataclass(frozen=True, slots=True)
class DomainLimit:
    """A required spread of one group by the label `key`. `domains` has that of each node, none for nodes without the
    label. A domain may have `most` replicas, and only `full` of them may have so many.
    """

    key: str
    domains: Mapping[str, str]
    most: int
    full: int

    def allows(self, counts: Mapping[str, int], node: str) -> bool:
        """Return whether a node may have one more replica; `counts`: those that each domain has."""
        domain = self.domains.get(node, "")
        here = counts.get(domain, 0)
        if not domain or here >= self.most:
            return False
        fullest = sum(count >= self.most for other, count in counts.items() if other)
        return here + 1 < self.most or fullest < self.full

    def count(self, hosting: Iterable[str]) -> Counter[str]:
        """Return the replicas of each domain; `hosting`: the node of each."""
        return Counter(self.domains.get(name, "") for name in hosting)


Limits = tuple[DomainLimit, ...]


@dataclass(frozen=True, slots=True)
class _Alike:
    """Nodes that a spread tells apart by their names alone: one of them, its GPUs' usable bytes, and how many."""

    node: Node
    sizes: tuple[int, ...]
    count: int


def limits_by_group(
    groups: Iterable[Group], nodes: Sequence[Node], usable: Mapping[str, Mapping[int, int]], labels: Sequence[str]
) -> dict[str, Limits]:
    """Return the limits of each group with required spreads, over the domains that have a node which could host it.

    `usable`: bytes of each GPU, by node; `labels`: those by which a node may suit a group and not another one.
    """
    spread = [group for group in groups if group.spread_required]
    if not spread:
        return {}
    keys = {one.key for group in spread for one in group.spread if one.required}
    domains = {key: {node.name: domain for node in nodes if (domain := node.domain(key))} for key in keys}
    alike, on_cpus = _alike(nodes, usable, labels), not any(node.has_gpus for node in nodes)
    result: dict[str, Limits] = {}
    for group in spread:
        able = [one for one in alike if group.runs_on(one.node) and _could_host(group, one, on_cpus)]
        required = (one for one in group.spread if one.required)
        result[group.name] = tuple(_limit(group, one, domains[one.key], able) for one in required)
    return result


def _alike(nodes: Iterable[Node], usable: Mapping[str, Mapping[int, int]], labels: Sequence[str]) -> tuple[_Alike, ...]:
    by_kind: dict[object, list[Node]] = {}
    for node in nodes:
        gpus = node.product, node.compute_capability, node.has_gpus, bool(node.gpus), node.architecture(on_gpu=False)
        kind = tuple(sorted(usable[node.name].values())), gpus, tuple(node.labels.get(key) for key in labels)
        by_kind.setdefault(kind, []).append(node)
    return tuple(_Alike(same[0], tuple(usable[same[0].name].values()), len(same)) for same in by_kind.values())


def _limit(group: Group, spread: Spread, domains: Mapping[str, str], able: Sequence[_Alike]) -> DomainLimit:
    """Return the limit of one spread. A replica more or less changes no more than the rounding requires."""
    if spread.key == HOSTNAME:
        count = sum(one.count for one in able)
    else:
        count = len({one.node.domain(spread.key) for one in able} - {""})
    most = -(-group.replicas // count) if count >= spread.least else min(count, 1)
    full = count if most <= 1 else group.replicas - count * (most - 1)
    return DomainLimit(spread.key, domains, most, full)


def _could_host(group: Group, alike: _Alike, on_cpus: bool) -> bool:
    """Return whether a node that is empty may have room for each model of a group, by memory and number of GPUs.

    `on_cpus`: CPUs stand in for GPUs.
    """
    needs = [demand.footprint for demand in group.demands if not demand.footprint.on_cpu]
    if not needs or on_cpus:
        return bool(alike.node.gpus)
    counts = ((need, sum(size >= need.settled for size in alike.sizes)) for need in needs)
    return all(able >= max(need.shares, need.gpus) for need, able in counts)


def allowed(limits: Limits, hosting: Sequence[str], node: str) -> bool:
    """Return whether all limits of a group let a node have one more replica; `hosting`: the node of each other one."""
    return all(limit.allows(limit.count(hosting), node) for limit in limits)


def preferred_labels(group: Group) -> list[str]:
    """Return the labels by which a group's replicas are apart where there is space, but for nodes themselves."""
    return [spread.key for spread in group.spread[1:] if not spread.required]


def preferred_keys(group: Group, nodes: Iterable[Node]) -> tuple[str, ...]:
    """Return the labels by which a group's replicas are apart where there is space, of those that tell nodes apart.

    Nodes themselves are not among them: replicas on one node are counted for every group.
    """
    keys = preferred_labels(group)
    every = list(nodes) if keys else []
    return tuple(key for key in keys if len({node.domain(key) for node in every}) > 1)


def crowding(group: Group, node: Node, others: Iterable[Node]) -> tuple[int, ...]:
    """Return how many of the other replicas' nodes share each domain with a node, what is required first."""
    there = list(others)
    ordered = sorted(group.spread, key=lambda spread: not spread.required)
    return tuple(sum(other.domain(spread.key) == node.domain(spread.key) for other in there) for spread in ordered)
