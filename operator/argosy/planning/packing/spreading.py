"""Replicas apart: how many each topology domain may have, and where a further replica is close to others."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from argosy.planning.facts import Group, Node
from argosy.planning.spreading import Spread


@dataclass(frozen=True, slots=True)
class DomainLimit:
    """A required spread of one group by the label `key`. `domains` has that of each node, none for nodes without the
    label. A domain may have `most` replicas, and only `full` of them may have so many.
    """

    key: str
    domains: Mapping[str, str]
    most: int
    full: int

    def allows(self, hosting: Iterable[str], node: str) -> bool:
        """Return whether a node may have one more replica; `hosting`: the nodes of the others, one for each."""
        counts = Counter(self.domains.get(name, "") for name in hosting)
        domain = self.domains.get(node, "")
        if not domain or counts[domain] >= self.most:
            return False
        fullest = sum(count >= self.most for other, count in counts.items() if other)
        return counts[domain] + 1 < self.most or fullest < self.full


Limits = tuple[DomainLimit, ...]


def limits_of(group: Group, nodes: Sequence[Node], usable: Mapping[str, Mapping[int, int]]) -> Limits:
    """Return the limits of a group with required spreads, over the domains that have a node which could host it.

    `usable`: bytes of each GPU, by node. A replica more or less changes no more than the rounding requires.
    """
    required = [spread for spread in group.spread if spread.required]
    if not required or group.replicas < 2:
        return ()
    on_cpus = not any(node.has_gpus for node in nodes)
    able = [node for node in nodes if group.runs_on(node) and _could_host(group, node, usable[node.name], on_cpus)]
    return tuple(_limit(group, spread, nodes, able) for spread in required)


def _limit(group: Group, spread: Spread, nodes: Iterable[Node], able: Iterable[Node]) -> DomainLimit:
    domains = {node.name: domain for node in nodes if (domain := node.domain(spread.key))}
    count = len({node.domain(spread.key) for node in able} - {""})
    most = -(-group.replicas // count) if count >= spread.least else min(count, 1)
    full = count if most <= 1 else group.replicas - count * (most - 1)
    return DomainLimit(spread.key, domains, most, full)


def _could_host(group: Group, node: Node, usable: Mapping[int, int], on_cpus: bool) -> bool:
    """Return whether a node that is empty may have room for each model of a group, by memory and number of GPUs.

    `on_cpus`: CPUs stand in for GPUs.
    """
    needs = [demand.footprint for demand in group.demands if not demand.footprint.on_cpu]
    if not needs or on_cpus:
        return bool(node.gpus)
    return all(sum(size >= need.settled for size in usable.values()) >= max(1, need.gpus) for need in needs)


def allowed(limits: Limits, hosting: Sequence[str], node: str) -> bool:
    """Return whether all limits of a group let a node have one more replica."""
    return all(limit.allows(hosting, node) for limit in limits)


def preferred_keys(group: Group, nodes: Iterable[Node]) -> tuple[str, ...]:
    """Return the labels by which a group's replicas are apart where there is space, of those that tell nodes apart.

    Nodes themselves are not among them: replicas on one node are counted for every group.
    """
    keys = [spread.key for spread in group.spread[1:] if not spread.required]
    every = list(nodes) if keys else []
    return tuple(key for key in keys if len({node.domain(key) for node in every}) > 1)


def crowding(group: Group, node: Node, others: Iterable[Node]) -> tuple[int, ...]:
    """Return how many of the other replicas' nodes share each domain with a node, what is required first."""
    there = list(others)
    ordered = sorted(group.spread, key=lambda spread: not spread.required)
    return tuple(sum(other.domain(spread.key) == node.domain(spread.key) for other in there) for spread in ordered)
