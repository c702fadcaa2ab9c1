"""The specs that a round acts upon: valid together, with built engines, and with proven versions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count

from argosy.api.documents import Resource
from argosy.api.problems import Problem
from argosy.api.servingpool import RuntimeName, ServingPool
from argosy.api.values.identity import PoolKey
from argosy.api.values.reuse import RoundCache
from argosy.planning import variants
from argosy.planning.builds.engines import EngineFacts
from argosy.planning.builds.pool import PoolEngines, defer_unbuilt, pool_engines
from argosy.planning.facts import Node
from argosy.planning.nodes.pool_nodes import PoolNodes
from argosy.planning.rollouts.facts import LoadedRevisions
from argosy.planning.rollouts.rounds.advance import advance_rollouts
from argosy.planning.rollouts.rounds.rollouts import Rollouts
from argosy.planning.rollouts.unraised import unraised_versions
from argosy.planning.validation.accept import Accepted, accept
from argosy.planning.validation.graph import Invalid
from argosy.planning.validation.releases import release_in
from argosy.reconcile.checks import checked
from argosy.reconcile.memories import rollout_memories
from argosy.reconcile.nodes import pool_nodes
from argosy.snapshot import FleetSnapshot


@dataclass(frozen=True, slots=True)
class AcceptedSpecs:
    """The specs that a round acts upon.

    `accepted`: the resources with these specs: the last valid ones of what does not fit, the last ones whose engines
    are built, the stable ones of rollouts. By the pool's key: valid `pools`, and the `engines` of their models.
    """

    accepted: Accepted
    pools: Mapping[PoolKey, PoolNodes]
    engines: Mapping[PoolKey, PoolEngines]
    rollouts: Rollouts


def accepted_specs(snapshot: FleetSnapshot, nodes: tuple[Node, ...], now: datetime, cache: RoundCache) -> AcceptedSpecs:
    """Return the specs that are acted upon with these nodes. `now` has a time zone."""
    before, invalid = rollout_memories(snapshot), Invalid({one.resource for one in snapshot.problems}, is_error=True)

    problems, call = cache.sort("problems"), count()

    def check(resources: Sequence[Resource]) -> list[Problem]:
        together = checked(next(call), resources, invalid, problems)
        return [*together, *unraised_versions(resources, before)]

    declared = _expanded(accept(snapshot.resources, snapshot.problems, snapshot.valid, check), snapshot)
    pools = pool_nodes(snapshot, declared, nodes)
    engine_facts = _engine_facts(snapshot, declared, pools)
    last: dict[str, Resource] = {resource.identity: resource for resource in variants.expanded(snapshot.valid.values())}
    built = defer_unbuilt(declared, last, engine_facts, check)
    loaded = {key: LoadedRevisions.of(pool.reports, pool.repositories) for key, pool in snapshot.pools.items()}
    rollouts = advance_rollouts(built, before, snapshot.evidence, loaded, now)
    accepted = rollouts.acted_upon(built, last, check)
    return AcceptedSpecs(
        accepted,
        pools if accepted is declared else pool_nodes(snapshot, accepted, nodes),
        pool_engines(declared, accepted, engine_facts),
        rollouts,
    )


def _expanded(accepted: Accepted, snapshot: FleetSnapshot) -> Accepted:
    """Return what is accepted, each model with variants as planning sees it."""
    return replace(
        accepted,
        valid=variants.expanded(accepted.valid, snapshot.statuses),
        out=variants.expanded(accepted.out, snapshot.statuses),
    )


def _engine_facts(
    snapshot: FleetSnapshot, accepted: Accepted, pools: Mapping[PoolKey, PoolNodes]
) -> dict[PoolKey, EngineFacts]:
    """Return the inputs of the decisions on each pool's engines."""
    entries = snapshot.engine_statuses(accepted.valid)
    return {
        key: EngineFacts(
            nodes, snapshot.pool(key).builds, entries, snapshot.build_images, _engine_release(nodes.pool, snapshot)
        )
        for key, nodes in pools.items()
    }


def _engine_release(pool: ServingPool, snapshot: FleetSnapshot) -> str:
    """Return the release of TensorRT-LLM in a pool's server. The bundled server's image builds engines, too."""
    runtime = pool.spec.runtime
    if runtime.name is not RuntimeName.TRITON:
        return ""
    return release_in(runtime.image or snapshot.engine_image)
