"""A pool, its members and nodes become facts: what the solver is asked."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from argosy.api import ServingPool
from argosy.planning.demand.grouping import Loaded, groups_of
from argosy.planning.demand.members import Members
from argosy.planning.facts import CurrentServer, Node, PoolFacts
from argosy.planning.nodes.selection import selected

LoadedVersions = Mapping[str, Mapping[str, Collection[int]]]
"""By server and model, the versions that are loaded."""


def pool_facts(
    pool: ServingPool,
    members: Members,
    nodes: Sequence[Node],
    current: Sequence[CurrentServer] = (),
    former: Sequence[CurrentServer] = (),
    loaded: LoadedVersions | None = None,
) -> PoolFacts:
    """Return the facts of one valid pool. Groups and models go by their bare names: a pool's are all in its namespace.

    `current` are the servers that run now, `former` those there were, whose names are not given again: a Pod of theirs
    may still be about to end. `loaded` is what each server has.
    """
    spec, has = pool.spec, loaded or {}
    here = selected(pool, nodes, {server.node for server in current})
    has_gpus = uses_gpus(pool, here, (*current, *former))
    models, ensembles = list(members.models.values()), list(members.ensembles.values())
    return PoolFacts(
        pool=pool.key,
        nodes=here,
        groups=groups_of(models, ensembles, _by_model(has), has_gpus, members.shapes, members.engines, members.sizes),
        headroom=spec.memory_headroom,
        max_gpus_per_server=spec.max_gpus_per_server,
        min_servers=spec.fewest_servers,
        max_servers=spec.most_servers,
        suspended=spec.suspend,
        current=tuple(current),
        taken=frozenset(server.name for server in former),
        loaded={server: frozenset(models) for server, models in has.items()},
        runtime=spec.runtime.name,
        max_disruption=spec.max_disruption,
        waiting=tuple(members.engines.waiting[name] for name in sorted(members.engines.waiting)),
    )


def uses_gpus(pool: ServingPool, nodes: Iterable[Node], servers: Iterable[CurrentServer]) -> bool:
    """Return whether models may count on GPUs. Those that servers had count too: a node that is gone for a while must
    not send to the CPU what nobody said may run there.
    """
    if pool.spec.max_gpus_per_server == 0:
        return False
    return any(not gpu.is_cpu for node in nodes for gpu in node.gpus) or any(server.gpus for server in servers)


def _by_model(loaded: LoadedVersions) -> Loaded:
    found: dict[str, list[Collection[int]]] = {}
    for models in loaded.values():
        for name, versions in models.items():
            found.setdefault(name, []).append(versions)
    return found
