"""Which GPUs each pool holds, needs, claims, and leaves to others."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from argosy.api.values.identity import PoolKey
from argosy.controller.ports import Cache
from argosy.planning.builds.build import JobState, ScheduledBuild
from argosy.planning.facts import (
    Claim,
    CurrentServer,
    Device,
    Node,
    OtherPools,
    PoolFacts,
    PreemptibleGpu,
    ServerReport,
    highest_claims,
)
from argosy.planning.nodes.device_errors import failing
from argosy.planning.nodes.dra.partitions import Offers
from argosy.planning.nodes.reported.holds import CountHolds
from argosy.planning.nodes.reported.lost_gpus import GpuUse, answering
from argosy.planning.nodes.reported.present import present
from argosy.planning.nodes.reservations import conceded, devices, needed_gpus, reserved
from argosy.planning.packing.priorities import RankedPlan, lacking_groups
from argosy.planning.packing.shared_nodes.preemptible import preemptible_gpus, protected_gpus
from argosy.planning.plan import PoolPlan


@dataclass(slots=True)
class _Pool:
    """A pool's servers and builds. `decided`: its servers as last decided; `standing`: earlier ones whose objects may
    still exist. `builds`: those that should run. Of its plan: the GPUs that it claims, those that it leaves to others'
    claims (`preempted`) or would leave to them (`preemptible`), and the groups that lack a replica. `plans`: the plan
    with its facts.
    """

    decided: tuple[CurrentServer, ...]
    standing: tuple[CurrentServer, ...]
    claims: Mapping[Device, Claim] = field(default_factory=dict)
    preempted: frozenset[Device] = frozenset()
    preemptible: Mapping[Device, PreemptibleGpu] = field(default_factory=dict)
    lacking: frozenset[str] = frozenset()
    waiting: bool = False
    builds: tuple[ScheduledBuild, ...] = ()
    plans: tuple[tuple[PoolFacts, PoolPlan], ...] = ()

    @property
    def holdings(self) -> tuple[CurrentServer, ...]:
        """Servers whose GPUs count as held: a GPU that a server gives up is free once its objects are changed."""
        return (*self.decided, *self.standing)


class Reservations:
    """Decided and applied servers, by the pool's key. `decided` and `applied` return pools to reconcile again."""

    def __init__(self, cluster: Cache) -> None:
        self._cluster = cluster
        self._pools: dict[PoolKey, _Pool] = {}
        self._holds, self._offers = CountHolds(), Offers()

    def of(
        self,
        key: PoolKey,
        reports: Sequence[ServerReport],
        cordoned: Mapping[PoolKey, frozenset[Device]],
        now: datetime,
    ) -> tuple[tuple[Node, ...], tuple[CurrentServer, ...], OtherPools]:
        """Return the nodes as the pool may plan with them, its servers, and what other pools say of GPUs. `reports`
        are what its servers say, `cordoned` the GPUs that each pool has cordoned.
        """
        reserved_pool = self._pools.get(key)
        own = reserved_pool.decided if reserved_pool is not None else self._cluster.pool(key).current
        pools = (other for other in self._cluster.pools() | self._pools.keys() if other != key)
        others = {other: (*self._holdings(other), *self._building(other)) for other in pools}
        servers, reported = {**others, key: tuple(own)}, {key: reports}
        left = self._left(servers, reported, frozenset[Device]().union(*cordoned.values()), now)
        preempted = frozenset[Device]().union(*(self._pools[other].preempted for other in self._others(key)))
        nodes = reserved(left, own, others, self._cluster.foreign_gpus(), conceded(own, reports, now), preempted)
        return nodes, tuple(own), self._other_pools(key)

    def _other_pools(self, key: PoolKey) -> OtherPools:
        pools = {other: self._pools[other] for other in sorted(self._others(key))}
        return OtherPools(
            highest_claims(pool.claims for pool in pools.values()),
            {device: gpu for pool in pools.values() for device, gpu in pool.preemptible.items()},
            frozenset((other, group) for other, pool in pools.items() for group in pool.lacking),
            self._protected(key),
        )

    def _protected(self, key: PoolKey) -> dict[Device, PreemptibleGpu]:
        """Return the GPUs that other pools keep from higher priorities, for a pool that lacks something: to look takes
        time in a large fleet.
        """
        if key not in self._pools or not self._waits(key):
            return {}
        plans = (plan for other in sorted(self._others(key)) for plan in self._pools[other].plans)
        return {device: gpu for plan in plans for device, gpu in protected_gpus(*plan).items()}

    def _left(
        self,
        servers: Mapping[PoolKey, Sequence[CurrentServer]],
        reports: Mapping[PoolKey, Sequence[ServerReport]],
        cordoned: frozenset[Device],
        now: datetime,
    ) -> tuple[Node, ...]:
        """Return the nodes without the GPUs that they have lost. Other pools' reports are read only where one has."""
        nodes = self._cluster.nodes()
        self._holds = self._holds.after(nodes, now)
        reserved_gpus = devices(server for of_pool in servers.values() for server in of_pool)

        def use() -> GpuUse:
            reported = {key: reports.get(key) or self._cluster.pool(key).reports for key in servers}
            heard = (answering(of_pool, reported[key]) for key, of_pool in servers.items())
            faulty = (failing(of_pool, reported[key]) for key, of_pool in servers.items())
            return GpuUse(reserved_gpus, frozenset().union(*heard), cordoned.union(*faulty))

        return present(nodes, reserved_gpus, use, self._holds, self._offers)

    def next_hold_end(self, now: datetime) -> datetime | None:
        """Return when the GPUs of a node whose number of them changed count as it reports them, if one's are held."""
        return self._holds.next_end(now)

    def decided(
        self, key: PoolKey, servers: Sequence[CurrentServer], ranked: RankedPlan, builds: Iterable[ScheduledBuild] = ()
    ) -> set[PoolKey]:
        """Store a pool's decided servers, its plan and its builds. Return pools of which it newly claims GPUs, those
        that left it GPUs which it no longer claims, and those that lack some and may take what it newly would give up.
        """
        before = self._pools.get(key) or _Pool((), ())
        plans = [(facts, plan) for facts, plan in zip(ranked.facts, ranked.plans(), strict=True) if plan.pool == key]
        now = _Pool(
            decided=tuple(servers),
            standing=_former(self._holdings(key), servers),
            claims={device: claim for _, plan in plans for device, claim in plan.claims.items()},
            preempted=frozenset(device for _, plan in plans for device in plan.preempted),
            preemptible={device: gpu for one in plans for device, gpu in preemptible_gpus(*one).items()},
            lacking=lacking_groups(ranked, key),
            waiting=any(plan.unplaced for _, plan in plans),
            builds=tuple(build for build in builds if build.start),
            plans=tuple(plans),
        )
        self._pools[key] = now
        newly_claimed = {device for device, claim in now.claims.items() if before.claims.get(device) != claim}
        claimed = {other for other in self._others(key) if newly_claimed & devices(self._holdings(other))}
        withdrawn = before.claims.keys() - now.claims.keys() - devices(now.holdings)
        claimed |= {other for other in self._others(key) if withdrawn & self._pools[other].preempted}
        offers = any(before.preemptible.get(device) != gpu for device, gpu in now.preemptible.items())
        return claimed | {other for other in self._others(key) if offers and self._waits(other)}

    def defer(self, key: PoolKey, servers: Collection[str]) -> None:
        """Keep these servers where they are for now; the next round decides on them again."""
        pool, standing = self._pools[key], {server.name: server for server in self._cluster.pool(key).current}
        pool.decided = tuple(
            standing.get(server.name, server) if server.name in servers else server for server in pool.decided
        )

    def applied(self, key: PoolKey, unchanged: Callable[[str], bool]) -> set[PoolKey]:
        """Note that objects are as decided, but for `unchanged` servers. Return pools that wait for freed GPUs."""
        pool = self._pools[key]
        before = pool.holdings
        pool.standing = tuple(server for server in pool.standing if unchanged(server.name))
        freed = _reserved_and_needed(before) - _reserved_and_needed(pool.holdings)
        return {other for other in self._others(key) if freed and self._waits(other)}

    def forget(self, key: PoolKey) -> None:
        """Remove a pool."""
        self._pools.pop(key, None)

    def _others(self, key: PoolKey) -> Iterator[PoolKey]:
        return (other for other in self._pools if other != key)

    def _waits(self, key: PoolKey) -> bool:
        return self._pools[key].waiting

    def _holdings(self, key: PoolKey) -> tuple[CurrentServer, ...]:
        reserved_pool = self._pools.get(key)
        return reserved_pool.holdings if reserved_pool is not None else tuple(self._cluster.pool(key).current)

    def _building(self, key: PoolKey) -> Iterator[CurrentServer]:
        """Yield the GPUs of a pool's builds that have no counted Pod yet, as if they were servers."""
        reserved_pool, views = self._pools.get(key), self._cluster.pool(key).builds
        for name, view in views.items() if reserved_pool is None else ():
            if view.observed.job is JobState.ACTIVE and not view.observed.withheld:
                yield CurrentServer(name, view.observed.node, view.observed.gpus)
        for build in reserved_pool.builds if reserved_pool is not None else ():
            if build.name not in views or not views[build.name].observed.withheld:
                yield CurrentServer(build.name, build.node, build.gpus)


def _former(holdings: Iterable[CurrentServer], servers: Iterable[CurrentServer]) -> tuple[CurrentServer, ...]:
    """Return the held servers that differ from the decided ones, one for each name and node."""
    now = {server.name: server for server in servers}
    former: dict[tuple[str, str], CurrentServer] = {}
    for server in holdings:
        if server != now.get(server.name):
            earlier = former.setdefault((server.name, server.node), server)
            gpus = tuple(sorted({*earlier.gpus, *server.gpus}))
            former[server.name, server.node] = replace(earlier, gpus=gpus, placed={**earlier.placed, **server.placed})
    return tuple(former.values())


def _reserved_and_needed(servers: Collection[CurrentServer]) -> set[tuple[Device, bool]]:
    """Return the GPUs that are held (False) and those that are needed (True)."""
    return {(device, False) for device in devices(servers)} | {(device, True) for device in needed_gpus(servers)}
