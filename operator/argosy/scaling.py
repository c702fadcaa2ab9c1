"""The scaling rounds of all pools, for every shell: a pool's signals become decisions, apart from its reconciles.

A reconcile takes the decisions as facts, and tells afterwards what became of them. It is asked for only where something
material was decided, so what is measured costs no planning.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from argosy.api import Ensemble, InferenceModel, Resource
from argosy.api.values.identity import PoolKey
from argosy.autoscaling.bottlenecks.diagnose import BottleneckReport
from argosy.autoscaling.bottlenecks.diagnose import Memory as BottleneckMemory
from argosy.autoscaling.decision import Decision
from argosy.autoscaling.memory import MemberMemory, Memory
from argosy.autoscaling.metrics.signals import PoolSignals
from argosy.autoscaling.pool.inputs import PoolInputs, PoolMemory
from argosy.autoscaling.pool.pool_round import decide_pool
from argosy.autoscaling.pool.restored import restored
from argosy.autoscaling.pool.scaled_resources import policies
from argosy.autoscaling.pool.served import served
from argosy.reconcile import Outcome
from argosy.status.findings import bottleneck

Member = InferenceModel | Ensemble


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Holding:
    """Requests that wait for what has no replica, by resource name; `error`: why nothing would keep them, in words;
    empty where something does.
    """

    queued: Mapping[str, int] = field(default_factory=dict)
    error: str = "nothing holds requests here"


@dataclass(slots=True)
class _Pool:
    """One pool: what is decided from, what is remembered, and for whom that was begun.

    `inputs`: None until it was reconciled; `resources`: what its policies are of.
    """

    inputs: PoolInputs | None = None
    resources: tuple[Resource, ...] = ()
    signals: PoolSignals = field(default_factory=PoolSignals)
    memory: PoolMemory = field(default_factory=PoolMemory)
    begun: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Decided:
    """What a reconcile is to act upon, by identity."""

    decisions: Mapping[str, Decision] = field(default_factory=dict)
    bottlenecks: Mapping[str, BottleneckReport] = field(default_factory=dict)


class Scaling:
    """`holding` tells who waits for a pool, `changed` is told of a pool whose reconcile is due."""

    def __init__(
        self,
        holding: Callable[[PoolKey], Holding],
        changed: Callable[[PoolKey], None] = lambda _: None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._holding, self._changed, self._clock = holding, changed, clock
        self._pools: dict[PoolKey, _Pool] = {}

    def measured(self, key: PoolKey, signals: PoolSignals) -> None:
        """Decide on what was measured of a pool, or on that it could not be."""
        pool = self._pools.get(key)
        if pool is not None and self._decide(pool, replace(signals, queued=self._holding(key).queued)):
            self._changed(key)

    async def heard(self, key: PoolKey, signals: PoolSignals) -> None:
        """`measured` on a thread of its own: of a thousand models a decision takes a while.

        What was decided otherwise meanwhile counts, and the next measurement is soon there.
        """
        pool = self._pools.get(key)
        if pool is None or pool.inputs is None:
            return
        before, inputs, now = pool.memory, self._inputs(pool, pool.inputs), self._clock()
        signals = replace(signals, queued=self._holding(key).queued)
        try:
            after = await asyncio.to_thread(decide_pool, inputs, signals, before, now)
        except Exception:  # a fault of ours ends neither measuring nor the operator: what there is stays
            log.exception("pool %s: nothing can be decided on what was measured", key)
            return
        if pool.memory is before:
            pool.signals, pool.memory = signals, after
            if _differ(before, after):
                self._changed(key)

    def before(self, key: PoolKey, members: Iterable[Member]) -> Decided:
        """Return what a reconcile that begins now is to act upon. `members`: the pool's, with their statuses."""
        pool = self._pools.setdefault(key, _Pool())
        self._begin(pool, members)
        queued = self._holding(key).queued
        if queued != pool.signals.queued:  # who waits is not kept waiting for the next measurement
            self._decide(pool, replace(pool.signals, queued=queued))
        return Decided(pool.memory.decisions, pool.memory.reported_bottlenecks)

    def after(self, key: PoolKey, outcome: Outcome) -> None:
        """Take what a reconcile decided: what the next scaling rounds start from."""
        pool = self._pools.setdefault(key, _Pool())
        members = [member for member in outcome.valid.values() if isinstance(member, InferenceModel | Ensemble)]
        holding, pool.resources = self._holding(key), tuple(outcome.valid.values())
        pool.inputs = PoolInputs(
            members=tuple(member for member in members if member.pool_key == key),
            policies=policies(pool.resources, self._clock()),
            allocations=outcome.allocations,
            grants=outcome.grants,
            served=served(members, outcome.statuses, outcome.grants),
            servers=outcome.servers(key),
            unheld=holding.error,
        )
        if holding.queued != pool.signals.queued and self._decide(pool, replace(pool.signals, queued=holding.queued)):
            self._changed(key)

    def estimated(self) -> list[tuple[Member, Memory]]:
        """Return each model and ensemble that scales with what is known of it. It may be asked on another thread."""
        pools = [(pool.inputs.members, pool.memory) for pool in list(self._pools.values()) if pool.inputs is not None]
        return [member for members, memory in pools for member in memory.estimated(members)]

    def forget(self, key: PoolKey) -> None:
        """Forget a pool that was deleted."""
        self._pools.pop(key, None)

    def _decide(self, pool: _Pool, signals: PoolSignals) -> bool:
        """Decide again, once there is something to decide on. Whether anything material came of it."""
        if pool.inputs is None:
            return False
        pool.signals = signals
        before = pool.memory
        pool.memory = decide_pool(self._inputs(pool, pool.inputs), signals, before, self._clock())
        return _differ(before, pool.memory)

    def _inputs(self, pool: _Pool, inputs: PoolInputs) -> PoolInputs:
        """With the policies of this moment, where schedules make them."""
        if any(_has_schedules(member) for member in inputs.members):
            return replace(inputs, policies=policies(pool.resources, self._clock()))
        return inputs

    def _begin(self, pool: _Pool, members: Iterable[Member]) -> None:
        """Recall what statuses tell of what another process knew, once for each member."""
        new = {member.identity: member for member in members if member.identity not in pool.begun}
        if not new:
            return
        pool.begun |= new.keys()
        now, memory = self._clock(), pool.memory
        memories: dict[str, Memory] = {
            name: restored(member.status.scaling) for name, member in new.items() if member.status is not None
        }
        pool.memory = replace(
            memory,
            members={**memory.members, **_members(new.values(), memories)},
            bottlenecks={
                **memory.bottlenecks,
                **{
                    name: _restored_bottleneck(member, now) for name, member in new.items() if member.status is not None
                },
            },
        )


def _members(members: Iterable[Member], memories: Mapping[str, Memory]) -> dict[str, MemberMemory]:
    """Return the `memories` of members, by identity: of ensembles with that of all models, which may be theirs."""
    restorable = [member for member in members if member.identity in memories]
    models = {member.name: memories[member.identity] for member in restorable if isinstance(member, InferenceModel)}
    return {
        member.identity: MemberMemory(memories[member.identity], models if isinstance(member, Ensemble) else {})
        for member in restorable
    }


def _restored_bottleneck(member: Member, now: datetime) -> BottleneckMemory:
    return bottleneck.restored(member.status.bottleneck if member.status is not None else None, now)


def _differ(before: PoolMemory, after: PoolMemory) -> bool:
    """Whether a reconcile would do something about it, or a status say it."""
    return after.reports != before.reports or after.reported_bottlenecks != before.reported_bottlenecks


def _has_schedules(member: Member) -> bool:
    return bool(member.spec.scaling and member.spec.scaling.schedules)
