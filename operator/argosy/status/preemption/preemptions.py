"""What lost its place to what, as the statuses of both have it until the loser has one again."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from argosy.api import Ensemble, InferenceModel
from argosy.api.status import EnsembleStatus, InferenceModelStatus
from argosy.api.statusparts import PreemptionStatus
from argosy.api.values.identity import PoolKey
from argosy.api.values.times import timestamp
from argosy.planning.packing.priorities import lacking_groups
from argosy.planning.plan import LostPlacement, PoolPlan
from argosy.round import DecidedRound

_MOST = 16


@dataclass(frozen=True, slots=True)
class Preemptions:
    """Of each model and ensemble of a pool, by name: what it lost a place `to`, and what lost places to it."""

    to: Mapping[str, PreemptionStatus] = field(default_factory=dict)
    of: Mapping[str, tuple[PreemptionStatus, ...]] = field(default_factory=dict)


def preemptions(decided: DecidedRound, pool: PoolKey) -> Preemptions:
    """Return the preemptions of this round, and those of earlier rounds whose losers still lack a place."""
    plan = next((plan for plan in decided.plan.pools if plan.pool == pool), None)
    if plan is None:
        return Preemptions()
    lacking, outside = lacking_groups(decided.ranked, pool), _lacking_outside(decided, pool)
    if not (lacking or outside or plan.gained):
        return Preemptions()
    lost_to, taken_from = dict[str, PreemptionStatus](), dict[str, tuple[PreemptionStatus, ...]]()
    for name, group, before in _members(decided, pool):
        loss = next((_loss(decided, plan, lost) for lost in plan.lost if lost.group == group), None)
        loss = loss or (before.preempted_by if before is not None and group in lacking else None)
        if loss is not None:
            lost_to[name] = loss
        former = before.preempted if before is not None else ()
        gains = {(gain.pool, gain.name): gain for gain in former if _lacks(gain, lacking, outside)}
        gains |= {("", lost.group): _gain(decided, plan, lost) for lost in plan.lost if _is_own(lost, group)}
        for gain in (_gain(decided, plan, taken) for taken in plan.gained if taken.winner == group):
            gains.setdefault((gain.pool, gain.name), gain)
        if gains:
            taken_from[name] = tuple(gains.values())[-_MOST:]
    return Preemptions(lost_to, taken_from)


def _lacking_outside(decided: DecidedRound, pool: PoolKey) -> frozenset[tuple[str, str]]:
    """Return the groups of other pools that lack a replica, each with its pool."""
    here = (plan.pool for plan in decided.plan.pools if plan.pool != pool)
    planned = ((key, group) for key in here for group in lacking_groups(decided.ranked, key))
    return decided.snapshot.others.lacking.union(planned)


def _lacks(gain: PreemptionStatus, lacking: Collection[str], outside: Collection[tuple[str, str]]) -> bool:
    """Return whether what lost its place has none yet: of another namespace, whether its pool lacks one."""
    if not gain.pool:
        return gain.name in lacking
    return any(pool == gain.pool and gain.name in ("", group) for pool, group in outside)


def _is_own(lost: LostPlacement, winner: str) -> bool:
    return lost.winner == winner and lost.other_pool is None


def _members(
    decided: DecidedRound, pool: PoolKey
) -> Iterator[tuple[str, str, InferenceModelStatus | EnsembleStatus | None]]:
    """Yield each model and ensemble that is planned, its group, and its last status."""
    members = decided.members[pool]
    of_pool = (group for facts in decided.ranked.facts if facts.pool == pool for group in facts.groups)
    groups = {demand.model: group.name for group in of_pool for demand in group.demands}
    for member in (*members.models.values(), *members.ensembles.values()):
        group = next((groups[model] for model in members.models_of(member.name) if model in groups), None)
        if group is not None and isinstance(member, InferenceModel | Ensemble):
            before = decided.snapshot.status(member)
            yield member.name, group, before if isinstance(before, InferenceModelStatus | EnsembleStatus) else None


def _loss(decided: DecidedRound, plan: PoolPlan, lost: LostPlacement) -> PreemptionStatus:
    return _preemption(lost.winner, lost.winner_priority, decided, plan, lost)


def _gain(decided: DecidedRound, plan: PoolPlan, lost: LostPlacement) -> PreemptionStatus:
    return _preemption(lost.group, lost.priority, decided, plan, lost)


def _preemption(
    name: str, priority: int, decided: DecidedRound, plan: PoolPlan, lost: LostPlacement
) -> PreemptionStatus:
    """Return what a status has of a lost place: the other one's name, priority and pool."""
    return PreemptionStatus(
        name=lost.shown_to(plan.pool, name),
        pool=lost.other_pool or "",
        priority=priority,
        time=timestamp(decided.now),
        drain_seconds=_drain_seconds(decided, plan, lost),
    )


def _drain_seconds(decided: DecidedRound, plan: PoolPlan, lost: LostPlacement) -> int:
    """Return how long the loser has on its server; 0 where that restarts at once."""
    migration = decided.migrations[plan.pool]
    drains = any(step.plan.name == lost.server and step.drain_since for step in migration.steps)
    return int(migration.drain_period.total_seconds()) if drains or lost in plan.gained else 0


def loss_clause(loss: PreemptionStatus, priority: int) -> str:
    """Return what a loser's condition says of its loss."""
    return (
        f"{loss.other} took its place at {loss.time} by priority {loss.priority}, its own is {priority}, and it had "
        f"{loss.drain_seconds} s to end its requests. "
    )
