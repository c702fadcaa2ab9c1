"""The facts of a pool, which the solver plans from: its nodes, its groups of models, its limits."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from argosy.api.values.reuse import Reused
from argosy.planning.demand.divided import may_divide, with_divided
from argosy.planning.demand.grouping import Loaded, groups_of
from argosy.planning.demand.members import Members
from argosy.planning.demand.surges import LoadedVersions, with_candidates
from argosy.planning.facts import Group, PoolFacts
from argosy.planning.nodes.pool_nodes import PoolNodes


def pool_facts(
    nodes: PoolNodes, members: Members, loaded: LoadedVersions | None = None, reused: Reused | None = None
) -> PoolFacts:
    """Return the facts of one valid pool. Groups and models go by their bare names: a pool has one namespace.

    Names of servers that have ended are taken too, since a Pod of theirs may still terminate. `loaded` is what each
    server has; `reused`: the groups of the round before.
    """
    spec, has = nodes.pool.spec, loaded or {}
    groups = groups_of(members, _by_model(has), nodes.has_gpus, spec.runtime.name, reused or Reused())
    every = tuple(_with_further(with_candidates(groups, members, has, spec.runtime.name), members))
    several = {demand.model for group in every for demand in group.demands if demand.instances > 1}
    divisible = {name for name in several & members.models.keys() if may_divide(members.models[name])}
    most = spec.max_gpus_per_server
    return PoolFacts(
        pool=nodes.pool.key,
        nodes=nodes.selected,
        groups=tuple(with_divided(group, divisible, nodes.selected, spec.memory_headroom, most) for group in every),
        headroom=spec.memory_headroom,
        max_gpus_per_server=most,
        min_servers=spec.fewest_servers,
        max_servers=spec.most_servers,
        suspended=spec.suspend,
        current=nodes.running,
        taken=frozenset(server.name for server in nodes.servers),
        loaded={server: frozenset(models) for server, models in has.items()},
        runtime=spec.runtime.name,
        max_disruption=spec.max_disruption,
        preemption=spec.packing.preemption,
        left_out=nodes.left_out,
        waiting=tuple(members.engines.waiting[name] for name in sorted(members.engines.waiting)),
    )


def _with_further(groups: Iterable[Group], members: Members) -> Iterator[Group]:
    """Yield the groups with the further replica that a rollout has on free GPUs: not a required one."""
    further: dict[str, int] = {}
    for name, rollout in members.rollouts.items():
        if rollout.further_replicas:
            for model in members.models_of(name):
                further[model] = max(further.get(model, 0), rollout.further_replicas)
    for group in groups:
        most = max((further.get(demand.model, 0) for demand in group.demands), default=0)
        yield _with_replicas(group, most) if most else group


def _with_replicas(group: Group, further: int) -> Group:
    demands = tuple(replace(demand, replicas=demand.replicas + further) for demand in group.demands)
    return replace(group, demands=demands, replicas=group.replicas + further, minimum=group.needed)


def _by_model(loaded: LoadedVersions) -> Loaded:
    versions_of: dict[str, list[Collection[int]]] = {}
    for models in loaded.values():
        for name, versions in models.items():
            versions_of.setdefault(name, []).append(versions)
    return versions_of
