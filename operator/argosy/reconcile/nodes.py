"""The nodes of a round: of which GPUs pools may be planned, and which pool has which of them."""

from collections.abc import Mapping
from datetime import datetime

from argosy.api.servingpool import ServingPool
from argosy.api.status import ServingPoolStatus
from argosy.api.values.identity import PoolKey
from argosy.planning.builds.scheduling import withhold
from argosy.planning.facts import Node
from argosy.planning.nodes.cordons import Cordons, cordons, with_cordons
from argosy.planning.nodes.pool_nodes import PoolNodes
from argosy.planning.nodes.selection import with_readiness
from argosy.planning.validation.accept import Accepted
from argosy.snapshot import FleetSnapshot


def pool_cordons(snapshot: FleetSnapshot, now: datetime) -> dict[PoolKey, Cordons]:
    """Return the cordons of each pool, from what its servers report and from its status."""
    cordons_of: dict[PoolKey, Cordons] = {}
    for pool in snapshot.resources:
        if isinstance(pool, ServingPool):
            observed, status = snapshot.pool(pool.key), snapshot.status(pool)
            errors = observed.device_errors.after(observed.servers, observed.reports, now)
            before = status if isinstance(status, ServingPoolStatus) else None
            cordons_of[pool.key] = cordons(pool, before, errors, snapshot.nodes, now)
    return cordons_of


def available_nodes(snapshot: FleetSnapshot, cordoned: Mapping[PoolKey, Cordons], now: datetime) -> tuple[Node, ...]:
    """Return the nodes as they count now: GPUs of running builds and cordoned GPUs are withheld."""
    builds = [build for pool in snapshot.pools.values() for build in pool.builds.values()]
    gone = {(gpu.node, gpu.gpu) for of_pool in cordoned.values() for gpu in of_pool.gpus} | snapshot.cordoned
    return with_cordons(withhold(with_readiness(snapshot.nodes, now), builds, snapshot.servers), gone)


def pool_nodes(snapshot: FleetSnapshot, accepted: Accepted, nodes: tuple[Node, ...]) -> dict[PoolKey, PoolNodes]:
    """Return the nodes and servers of each valid pool."""
    return {
        pool.key: PoolNodes.of(pool, nodes, snapshot.pool(pool.key).servers, snapshot.pool(pool.key).answering)
        for pool in accepted.valid
        if isinstance(pool, ServingPool)
    }
