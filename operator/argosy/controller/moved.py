"""What a pool's servers still have though another pool is to serve it by now."""

from collections.abc import Callable
from functools import cache

from argosy.api import Ensemble, InferenceModel
from argosy.api.values.identity import PoolKey
from argosy.cluster.cache.pool_view import PoolView
from argosy.controller.resources.store import Declared
from argosy.planning.migration.observed import Observed
from argosy.render.names import service_name


def elsewhere(declared: Declared, view: PoolView, pool: Callable[[PoolKey], PoolView]) -> dict[str, bool]:
    """By name, whether requests reach it in the other pool. `pool` gives what is known of one by its key."""
    held = {(model.declared_name, model.is_ensemble) for each in view.repositories for model in each.models}
    observed = cache(lambda key: Observed.of(pool(key).reports))
    moved = (each for each in declared.elsewhere if (each.name, isinstance(each, Ensemble)) in held)
    return {each.name: _reached(each, observed) for each in moved}


def services_elsewhere(declared: Declared) -> frozenset[str]:
    """Return the identities of Services that another pool takes over as they stand, so that their addresses stay."""
    return frozenset(f"Service {each.namespace}/{service_name(each.name)}" for each in declared.elsewhere)


def _reached(member: InferenceModel | Ensemble, observed: Callable[[PoolKey], Observed]) -> bool:
    status = member.status
    if status is None or not status.ready or status.observed_generation != member.metadata.generation:
        return False
    there = observed(member.pool_key)
    return any(there.reachable(server, member.name) for server in there.reports)
