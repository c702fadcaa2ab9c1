"""Placeholders: which Pods would make a node autoscaler add the nodes that a pool lacks.

A server's Pod is bound to a node, so a replica without a place is no Pod, and no node autoscaler learns of it. For each
server that it would have on a further node there is a placeholder: a Pod with the same needs, bound to no node.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from argosy.api import Reason
from argosy.planning.facts import Gpu, Group, Node, PoolFacts
from argosy.planning.nodes.holders import is_of_build
from argosy.planning.nodes.slices import GPU_RESOURCE
from argosy.planning.packing.capacity import gpus_of, is_cpu_only
from argosy.planning.packing.solve import pack
from argosy.planning.plan import PoolPlan, ServerPlan, replica_counts
from argosy.planning.provisioning.domains import Domains, full_domains, in_domains
from argosy.planning.provisioning.exclusions import MOST_NAMED, excluded_hosts
from argosy.planning.provisioning.node_types import Labels, further, has_dra_alone, node_types, resource, types_for

CONSIDERED = 128
"""The most replicas that placeholders are worked out for in a round, those of the highest priority first."""
_LONGEST_POOL, _DIGITS = 40, 8
_WOULD_FIT = frozenset(
    (
        Reason.NO_FREE_GPUS,
        Reason.NO_FREE_MEMORY,
        Reason.REPLICAS_APART,
        Reason.ANTI_AFFINITY,
        Reason.NO_CONFIG_SPACE,
    )
)
"""Why a replica finds no place on nodes of a type that has room for it, where there are too few of them."""


@dataclass(frozen=True, slots=True)
class Placeholder:
    """`count` Pods that are alike: each asks for `gpus` GPUs of one of the `products`, the smallest first; any product
    where none is named. `labels`: what the models require of their nodes in addition to the pool. `domains`: further
    labels that the nodes must have, each with the values that will not do, because these topology domains are full.

    `resource`: what these GPUs are, or slices of them, to a Pod. `groups`: what waits for these nodes. `hosts`: nodes
    that are there and have room for a Pod, by the label kubernetes.io/hostname. They are planned already, so no
    placeholder may be bound there.
    """

    name: str
    gpus: int
    products: tuple[str, ...]
    count: int
    groups: tuple[str, ...]
    hosts: tuple[str, ...] = ()
    labels: Labels = ()
    domains: Domains = ()
    resource: str = GPU_RESOURCE


@dataclass(frozen=True, slots=True)
class Provisioning:
    """The placeholders of a pool. `beyond`: groups that would have more of them, if the pool allowed more; `unnamed`:
    those that have none, since too many nodes would have to be named that it must not be bound to.
    """

    placeholders: tuple[Placeholder, ...] = ()
    beyond: frozenset[str] = frozenset()
    unnamed: frozenset[str] = frozenset()


_Where = tuple[Labels, Domains]
_Kind = tuple[int, str, tuple[str, ...], _Where]


@dataclass(frozen=True, slots=True)
class _FurtherServer:
    """A server that a further node would have: its number of GPUs, and what would be on it."""

    gpus: int
    resource: str
    products: tuple[str, ...]
    where: _Where
    groups: tuple[str, ...]
    priority: int

    @property
    def kind(self) -> _Kind:
        """What it asks for."""
        return self.gpus, self.resource, self.products, self.where


def provision(facts: PoolFacts, plan: PoolPlan, lacking: Iterable[str], most: int) -> Provisioning:
    """Return the placeholders for what `plan` has no place for, at most so many Pods.

    `lacking`: the groups that it has too few replicas of. Of these count those that nodes of a known type would take:
    the smallest one by GPU memory that has room for them. Where no type is known any node is asked for; where servers
    have GPUs by ResourceClaims alone, none is.
    """
    groups = _missing(facts, plan, frozenset(lacking))
    servers_left = None if facts.max_servers is None else max(0, facts.max_servers - len(plan.servers))
    if not groups or most <= 0 or servers_left == 0 or facts.suspended or has_dra_alone(facts.nodes):
        return Provisioning()
    fresh = replace(
        facts, current=(), loaded={}, taken=frozenset(), waiting=(), min_servers=0, max_servers=servers_left
    )
    types, desired, unmet = node_types(facts.nodes), list[_FurtherServer](), set[str]()
    full = full_domains(facts, plan, groups)
    for (labels, domains), alike in _by_labels(_after_builds(fresh, groups), full).items():
        of_labels = [in_domains(node_type, alike) for node_type in types_for(alike, labels, types)]
        servers, too_many = _further_servers(fresh, alike, (labels, domains), of_labels, most)
        desired += servers
        unmet |= too_many
    desired.sort(key=lambda server: (-server.priority, server.groups))
    beyond = {name for server in desired[most:] for name in server.groups} | unmet
    joined = _joined(facts, plan, desired[:most])
    asking = tuple(one for one in joined if len(one.hosts) <= MOST_NAMED)
    unnamed = {name for one in joined if one not in asking for name in one.groups}
    return Provisioning(asking, frozenset(beyond), frozenset(unnamed))


def _missing(facts: PoolFacts, plan: PoolPlan, lacking: frozenset[str]) -> tuple[Group, ...]:
    """Return the groups with the replicas that lack GPUs, the highest priority first.

    Replicas that only wait for GPUs that other servers give up are not among them. Where CPUs stand in for GPUs, only
    those are that need several.
    """
    placed = replica_counts(plan.servers)
    pending = Counter(unplaced.group for unplaced in plan.unplaced if unplaced.reason == Reason.PENDING)
    groups, left, on_cpus = list[Group](), CONSIDERED, is_cpu_only(facts)
    for group in sorted(facts.groups, key=lambda group: (-group.priority, group.name)):
        replicas = min(left, group.replicas - placed[group.name] - pending[group.name])
        if group.name in lacking and replicas > 0 and (not on_cpus or _needs_several(group)):
            groups.append(replace(group, replicas=replicas, minimum=None))
            left -= replicas
    return tuple(groups)


def _needs_several(group: Group) -> bool:
    return any(demand.footprint.gpus > 1 for demand in group.demands)


def _after_builds(fresh: PoolFacts, groups: tuple[Group, ...]) -> tuple[Group, ...]:
    """Return the groups without what gets GPUs once builds have ended."""
    nodes = tuple(node for node in map(_freed_by_builds, fresh.nodes) if gpus_of(node))
    if not nodes:
        return groups
    placed = replica_counts(pack(replace(fresh, nodes=nodes, groups=groups)).servers)
    left = ((group, group.replicas - placed[group.name]) for group in groups)
    return tuple(replace(group, replicas=replicas) for group, replicas in left if replicas > 0)


def _freed_by_builds(node: Node) -> Node:
    freed = (
        Gpu(gpu.index, gpu.memory, compute=gpu.compute)
        for gpu in node.gpus
        if is_of_build(gpu.withheld_by) and not gpu.cordoned
    )
    return replace(node, gpus=tuple(freed))


def _by_labels(groups: Iterable[Group], full: Mapping[str, Domains]) -> dict[_Where, list[Group]]:
    """Return the groups by the labels that they require of a node, and the topology domains that are full of them."""
    by_labels: dict[_Where, list[Group]] = {}
    for group in groups:
        labels = {label for demand in group.demands for label in demand.requires.labels}
        by_labels.setdefault((tuple(sorted(labels)), full.get(group.name, ())), []).append(group)
    return by_labels


def _further_servers(
    fresh: PoolFacts, groups: Sequence[Group], where: _Where, types: Sequence[Node], most: int
) -> tuple[list[_FurtherServer], set[str]]:
    """Return the servers that further nodes would have, and the groups for which so many nodes are too few.

    What no node of a type has room for is tried on the next larger type.
    """
    desired: list[_FurtherServer] = []
    unmet: set[str] = set()
    for at, node_type in enumerate(types):
        if not groups:
            break
        by_name = {group.name: group for group in groups}
        plan = pack(replace(fresh, nodes=further(node_type, most), groups=tuple(groups)))
        for server in (server for server in plan.servers if server.gpus):
            hosted = [by_name[name] for name in sorted(server.groups)]
            products = _products(fresh, server, hosted, types[at:])
            priority = max(group.priority for group in hosted)
            names = tuple(group.name for group in hosted)
            of = resource(node_type)
            desired.append(_FurtherServer(len(server.gpus), of, products, where, names, priority))
        too_small = Counter(one.group for one in plan.unplaced if one.reason not in _WOULD_FIT)
        unmet |= {one.group for one in plan.unplaced if one.reason in _WOULD_FIT}
        groups = [replace(by_name[name], replicas=replicas) for name, replicas in sorted(too_small.items())]
    return desired, unmet


def _products(fresh: PoolFacts, server: ServerPlan, hosted: Sequence[Group], types: Sequence[Node]) -> tuple[str, ...]:
    """Return the products of the types on which the server would have as many GPUs, the smallest first.

    None where a node of any product would do, or one whose product is not known.
    """
    groups = tuple(replace(group, replicas=1) for group in hosted)
    one = replace(fresh, groups=groups, max_gpus_per_server=len(server.gpus), max_servers=1)
    larger = [node for node in types[1:] if resource(node) == resource(types[0])]
    fitting = [types[0], *(node for node in larger if not pack(replace(one, nodes=further(node, 1))).unplaced)]
    products = [node.product for node in fitting]
    return tuple(products) if all(products) else ()


def _joined(facts: PoolFacts, plan: PoolPlan, desired: Iterable[_FurtherServer]) -> tuple[Placeholder, ...]:
    """Return the placeholders, those that are alike as one."""
    alike: dict[_Kind, list[_FurtherServer]] = {}
    for server in desired:
        alike.setdefault(server.kind, []).append(server)
    return tuple(
        Placeholder(
            name=_name(facts.pool.name, kind),
            gpus=gpus,
            products=products,
            count=len(servers),
            groups=tuple(sorted({name for server in servers for name in server.groups})),
            hosts=excluded_hosts(facts, plan, gpus, of, products, (labels, domains)),
            labels=labels,
            domains=domains,
            resource=of,
        )
        for kind, servers in sorted(alike.items())
        for gpus, of, products, (labels, domains) in (kind,)
    )


def _name(pool: str, kind: object) -> str:
    """Return the name of a placeholder: a DNS subdomain of at most 63 characters, never that of a server."""
    digest = hashlib.sha256(repr((pool, kind)).encode()).hexdigest()[:_DIGITS]
    return f"{pool[:_LONGEST_POOL].rstrip('-.')}-placeholder-k{digest}"
