"""Models and ensembles that a pool's servers still have, though another pool is to serve them."""

from collections.abc import Callable
from functools import cache

from argosy.api import Ensemble, InferenceModel
from argosy.api.values.identity import PoolKey
from argosy.cluster.cache.pool_view import PoolView
from argosy.controller.resources.store import Declared
from argosy.planning.migration.observed import Observed
from argosy.render.names import service_name


def moved_members(declared: Declared, view: PoolView, pool: Callable[[PoolKey], PoolView]) -> dict[str, bool]:
    """Return by name whether requests reach it in the other pool. `pool` returns the view of a pool by its key."""
    loaded = {(model.declared_name, model.is_ensemble) for member in view.repositories for model in member.models}
    observed = cache(lambda key: Observed.of(pool(key).reports))
    moved = (member for member in declared.of_other_pools if (member.name, isinstance(member, Ensemble)) in loaded)
    return {member.name: _reached(member, observed) for member in moved}


def moved_services(declared: Declared) -> frozenset[str]:
    """Return the identities of Services that another pool takes over as they stand, so that their addresses stay."""
    return frozenset(f"Service {member.namespace}/{service_name(member.name)}" for member in declared.of_other_pools)


def _reached(member: InferenceModel | Ensemble, observed: Callable[[PoolKey], Observed]) -> bool:
    status = member.status
    if status is None or not status.ready or status.observed_generation != member.metadata.generation:
        return False
    there = observed(member.pool_key)
    return any(there.reachable(server, member.name) for server in there.reports)
