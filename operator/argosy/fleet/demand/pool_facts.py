"""Resources and nodes become the facts of each pool: what the solver is asked."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from argosy.api import Ensemble, InferenceModel, Resource, ServingPool
from argosy.fleet.demand.grouping import Loaded, groups_of
from argosy.fleet.facts import CurrentServer, Node, PoolFacts
from argosy.fleet.nodes.selection import selected
from argosy_runtime.agent.contract import RenderedRepository


def fleet_facts(
    resources: Iterable[Resource],
    nodes: Sequence[Node],
    current: Mapping[str, Sequence[CurrentServer]] | None = None,
    former: Mapping[str, Sequence[CurrentServer]] | None = None,
    repositories: Mapping[str, Sequence[RenderedRepository]] | None = None,
) -> tuple[PoolFacts, ...]:
    """The facts of every pool, by key (`namespace/name`).

    `current` maps a pool's key to the servers that run now, `former` to those there were, whose names are not given
    again: a Pod of theirs may still be about to end. `repositories` maps it to what its servers have loaded.
    Resources are taken to be valid; a model or ensemble whose pool is not among them is left out.
    """
    known = list(resources)
    pools = sorted((each for each in known if isinstance(each, ServingPool)), key=lambda pool: pool.key)
    now, before, loaded = current or {}, former or {}, repositories or {}
    return tuple(
        pool_facts(each, known, nodes, now.get(each.key, ()), before.get(each.key, ()), loaded.get(each.key, ()))
        for each in pools
    )


def pool_facts(
    pool: ServingPool,
    resources: Iterable[Resource],
    nodes: Sequence[Node],
    current: Sequence[CurrentServer] = (),
    former: Sequence[CurrentServer] = (),
    repositories: Sequence[RenderedRepository] = (),
) -> PoolFacts:
    """The facts of one pool. Groups and models go by their bare names: a pool's are all in its namespace."""
    known = list(resources)
    models = [each for each in known if isinstance(each, InferenceModel) and _belongs(each, pool)]
    ensembles = [each for each in known if isinstance(each, Ensemble) and _belongs(each, pool)]
    spec = pool.spec
    here = selected(pool, nodes, {server.node for server in current})
    has_gpus = spec.max_gpus_per_server != 0 and _has_gpus(here, (*current, *former))
    return PoolFacts(
        pool=pool.key,
        nodes=here,
        groups=groups_of(models, ensembles, _loaded(repositories), has_gpus),
        headroom=spec.memory_headroom,
        max_gpus_per_server=spec.max_gpus_per_server,
        min_servers=spec.fewest_servers,
        max_servers=spec.most_servers,
        suspended=spec.suspend,
        current=tuple(current),
        taken=frozenset(server.name for server in former),
        loaded={each.server: frozenset(m.name for m in each.models if not m.is_ensemble) for each in repositories},
    )


def _has_gpus(nodes: Iterable[Node], servers: Iterable[CurrentServer]) -> bool:
    """Whether models may count on GPUs. Those that servers had count too: a node that is gone for a while must not
    send to the CPU what nobody said may run there.
    """
    return any(not gpu.is_cpu for node in nodes for gpu in node.gpus) or any(server.gpus for server in servers)


def _belongs(member: InferenceModel | Ensemble, pool: ServingPool) -> bool:
    """Whether the model or ensemble asks for this pool."""
    return member.pool_key == pool.key


def _loaded(repositories: Sequence[RenderedRepository]) -> Loaded:
    found: dict[str, list[Collection[int]]] = {}
    for repository in repositories:
        for model in repository.models:
            found.setdefault(model.name, []).append(model.versions.keys())
    return found
