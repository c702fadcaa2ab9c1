"""The fleet that caches of a cluster have, as one snapshot of all pools. Pure."""

from collections.abc import Mapping, Sequence

from argosy.api.values.identity import PoolKey
from argosy.cluster.cache.pool_view import PoolView
from argosy.controller.ports import Cache
from argosy.controller.resources.store import Store
from argosy.controller.rounds.inputs import Memory, RoundInputs, moved_members, round_snapshot
from argosy.controller.rounds.rollouts import RolloutMemories
from argosy.planning.builds.images import BuildImages
from argosy.planning.facts import Device, Node, OtherPools
from argosy.planning.nodes.device_errors import failing
from argosy.planning.nodes.reported.lost_gpus import GpuUse, answering
from argosy.planning.nodes.reported.present import present
from argosy.planning.nodes.reservations import devices, reserved
from argosy.scaling import Decided
from argosy.snapshot import FleetSnapshot


def observed_snapshot(store: Store, cache: Cache) -> FleetSnapshot:
    """Return the fleet of all pools: what is declared, the nodes, and the servers that run.

    Scaling has measured nothing here: each model has the amounts that its status reports.
    """
    views = {key: cache.pool(key) for key in sorted(store.pools | cache.pools())}
    rollouts = RolloutMemories(store)
    snapshots = [_of_pool(key, view, store, cache, rollouts) for key, view in views.items()]
    return _joined(snapshots, _nodes(cache, views, frozenset[Device]().union(*store.cordoned().values())))


def _of_pool(key: PoolKey, view: PoolView, store: Store, cache: Cache, rollouts: RolloutMemories) -> FleetSnapshot:
    declared = store.of_pool(key)
    inputs = RoundInputs(key, declared, view, Memory(), moved_members(declared, view, cache.pool))
    return round_snapshot(
        inputs,
        nodes=(),
        servers=view.current,
        reports=view.reports,
        others=OtherPools(),
        cordoned=frozenset(),
        conflicts=(),
        scaling=Decided(),
        rollouts=rollouts.of(declared.members),
        build_images=BuildImages(),
    )


def _nodes(cache: Cache, views: Mapping[PoolKey, PoolView], cordoned: frozenset[Device]) -> tuple[Node, ...]:
    """Return the nodes, without GPUs that they lost, and with those withheld that Pods of others use."""
    servers = [server for view in views.values() for server in view.current]
    held = devices(servers)

    def use() -> GpuUse:
        heard = (answering(view.current, view.reports) for view in views.values())
        faulty = (failing(view.current, view.reports) for view in views.values())
        return GpuUse(held, frozenset().union(*heard), cordoned.union(*faulty))

    return reserved(present(cache.nodes(), held, use), servers, {}, cache.foreign_gpus())


def _joined(snapshots: Sequence[FleetSnapshot], nodes: tuple[Node, ...]) -> FleetSnapshot:
    """Return the snapshots of single pools as one."""
    return FleetSnapshot(
        resources=tuple(resource for one in snapshots for resource in one.resources),
        nodes=nodes,
        pools=dict(pool for one in snapshots for pool in one.pools.items()),
        problems=tuple(problem for one in snapshots for problem in one.problems),
        faulty=tuple(resource for one in snapshots for resource in one.faulty),
        statuses=dict(status for one in snapshots for status in one.statuses.items()),
        valid=dict(resource for one in snapshots for resource in one.valid.items()),
        rollouts=dict(rollout for one in snapshots for rollout in one.rollouts.items()),
    )
