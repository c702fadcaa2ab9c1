"""The ResourceClaimTemplates that stay though they are not rendered. Pure."""

from collections.abc import Iterable

from argosy.api.servingpool import ServingPool
from argosy.api.values.identity import Identity
from argosy.planning.facts import CurrentServer
from argosy.render.repositories import RenderedServer
from argosy.render.workloads import claim_identity, has_claim


def retained_claims(
    pool: ServingPool, servers: Iterable[RenderedServer], current: Iterable[CurrentServer]
) -> frozenset[Identity]:
    """Return the templates of servers as they are to be and as they were last applied.

    A device that is no longer published cannot be rendered, and a Pod that is made again needs its template; so does
    one whose Deployment is not changed yet.
    """
    planned = [(server.plan.name, server.plan.gpus) for server in servers]
    names = {name for name, _ in planned}
    before = [(server.name, server.gpus) for server in current if server.name in names]
    return frozenset(claim_identity(pool, name, gpus) for name, gpus in (*planned, *before) if has_claim(gpus))
