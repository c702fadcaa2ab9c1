"""Remedies that change a setting which keeps a replica from a place that is free."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from argosy.planning.amounts import listed
from argosy.planning.demand.divided import redivided
from argosy.planning.explanation.remedies.devices import PoolDevices
from argosy.planning.explanation.remedies.remedy import Remedy, RemedyKind
from argosy.planning.explanation.remedies.trial import Part
from argosy.planning.facts import Group, Node
from argosy.planning.requirements import ANY, NodeRequirements
from argosy.planning.spreading import DEFAULT_SPREAD

_TRIED = 2
"""Nodes that are tried, those on which a replica is closest to a place."""
_NAMED = 3


def settings(pool: PoolDevices, group: Group) -> Iterator[Remedy]:
    """Yield each setting without which the replica would have a place, those of the model first."""
    yield from _spread(pool, group)
    yield from _separated(pool, group)
    yield from _selectors(pool, group)
    yield from _gpu_type(pool, group)
    yield from _limits_of_pool(pool, group)


def _spread(pool: PoolDevices, group: Group) -> Iterator[Remedy]:
    required = [spread.key for spread in group.spread if spread.required]
    if required and group.replicas > 1:
        loose = replace(group, spread=DEFAULT_SPREAD)
        if _first(pool, loose, pool.able(loose)):
            text = f"whenUnsatisfiable: ScheduleAnyway in its topologySpread ({listed(required, _NAMED, ', ')})"
            yield Remedy(RemedyKind.SETTING, text)


def _separated(pool: PoolDevices, group: Group) -> Iterator[Remedy]:
    if not group.separated:
        return
    nothing = frozenset[str]()
    near = replace(group, not_on_server=nothing, not_on_node=nothing)
    others = sorted(group.not_on_server | group.not_on_node)

    def loosened(part: Part) -> Part:
        groups = tuple(
            replace(
                one,
                not_on_server=one.not_on_server - {group.name},
                not_on_node=one.not_on_node - {group.name},
            )
            for one in part.facts.groups
        )
        return replace(part, facts=replace(part.facts, groups=groups))

    if _first(pool, near, pool.able(near), loosened):
        yield Remedy(RemedyKind.SETTING, f"no antiAffinity between it and {listed(others, _NAMED, ', ')}")


def _selectors(pool: PoolDevices, group: Group) -> Iterator[Remedy]:
    labels = sorted({f"{key}={value}" for demand in group.demands for key, value in demand.requires.labels})
    if labels:
        yield from _on_other_nodes(
            pool, group, lambda one: replace(one, labels=()), f"no nodeSelector {', '.join(labels)}"
        )


def _gpu_type(pool: PoolDevices, group: Group) -> Iterator[Remedy]:
    """Yield other GPUs, where a model names those that it runs on; what a precision needs is no matter of choice."""
    if any(demand.requires.products or _declares(demand.requires) for demand in group.demands):

        def loose(one: NodeRequirements) -> NodeRequirements:
            return replace(one, products=frozenset(), capability=ANY if _declares(one) else one.capability)

        yield from _on_other_nodes(pool, group, loose, "a footprint.gpuType that allows")


def _declares(requires: NodeRequirements) -> bool:
    return bool(requires.capability.terms) and requires.because.startswith("footprint.gpuType")


def _on_other_nodes(
    pool: PoolDevices, group: Group, loose: Callable[[NodeRequirements], NodeRequirements], text: str
) -> Iterator[Remedy]:
    """Yield a remedy by which the group may have nodes that it may not have now."""
    demands = tuple(replace(demand, requires=loose(demand.requires)) for demand in group.demands)
    other = replace(group, demands=demands)
    may = {node.name for node in pool.able(group)}
    node = _first(pool, other, [one for one in pool.able(other) if one.name not in may])
    if node:
        product = pool.trial.nodes[node].product
        end = f" {product} (node {node})" if text.endswith("allows") else f", so that it may have node {node}"
        yield Remedy(RemedyKind.SETTING, text + end)


def _limits_of_pool(pool: PoolDevices, group: Group) -> Iterator[Remedy]:
    facts = pool.trial.facts
    most = facts.max_servers
    if most is not None and len(pool.trial.servers) >= most:

        def raised(part: Part) -> Part:
            return replace(part, facts=replace(part.facts, max_servers=len(part.facts.current) + 1))

        if _first(pool, group, pool.able(group), raised):
            yield Remedy(
                RemedyKind.SETTING, f"the pool's maxServers (or replicas, where that is set) {most} → {most + 1}"
            )
    limit = facts.max_gpus_per_server
    if limit is None:
        return

    def unlimited(part: Part) -> Part:
        return replace(part, facts=replace(part.facts, max_gpus_per_server=None))

    wider = redivided(group, pool.able(group), facts.headroom, None)
    if node := _first(pool, wider, pool.able(wider), unlimited):
        gpus = sum(max(demand.footprint.gpus, demand.footprint.shares) for demand in wider.demands)
        needed = min(max(limit + 1, gpus), len(pool.of_node(node)))
        yield Remedy(RemedyKind.SETTING, f"the pool's maxGpusPerServer {limit} → {needed}")


def _first(
    pool: PoolDevices, group: Group, nodes: Iterable[Node], change: Callable[[Part], Part] = lambda part: part
) -> str:
    """Return the first node on which a changed part has a place for the group; empty if none of those tried has."""
    names = pool.nearest(group, nodes)[:_TRIED]
    return next((name for name in names if pool.trial.fits(change(pool.trial.part(group, [name])))), "")
