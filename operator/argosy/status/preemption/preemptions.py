"""What lost its place to what, as the statuses of both have it until the loser has one again."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from argosy.api import Ensemble, InferenceModel
from argosy.api.status import EnsembleStatus, InferenceModelStatus
from argosy.api.statusparts import PreemptionStatus
from argosy.api.values.identity import PoolKey
from argosy.api.values.times import timestamp
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
    lacking = {one.group for one in plan.unplaced} | {name for key, name in decided.ranked.shortfalls if key == pool}
    if not lacking:
        return Preemptions()
    lost_to, taken_from = dict[str, PreemptionStatus](), dict[str, tuple[PreemptionStatus, ...]]()
    for name, group, before in _members(decided, pool):
        loss = next((_loss(decided, plan, lost) for lost in plan.lost if lost.group == group), None)
        loss = loss or (before.preempted_by if before is not None and group in lacking else None)
        if loss is not None:
            lost_to[name] = loss
        gains = {gain.name: gain for gain in (before.preempted if before is not None else ()) if gain.name in lacking}
        gains |= {lost.group: _gain(decided, plan, lost) for lost in plan.lost if lost.winner == group}
        if gains:
            taken_from[name] = tuple(gains.values())[-_MOST:]
    return Preemptions(lost_to, taken_from)


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
    """Return what a status has of a lost place: the other one's name and priority."""
    seconds = _drain_seconds(decided, plan, lost)
    return PreemptionStatus(name=name, priority=priority, time=timestamp(decided.now), drain_seconds=seconds)


def _drain_seconds(decided: DecidedRound, plan: PoolPlan, lost: LostPlacement) -> int:
    """Return how long the loser has on its server; 0 where that restarts at once."""
    migration = decided.migrations[plan.pool]
    drains = any(step.plan.name == lost.server and step.drain_since for step in migration.steps)
    return int(migration.drain_period.total_seconds()) if drains else 0


def loss_clause(loss: PreemptionStatus, priority: int) -> str:
    """Return what a loser's condition says of its loss."""
    return (
        f"{loss.name} took its place at {loss.time} by priority {loss.priority}, its own is {priority}, and it had "
        f"{loss.drain_seconds} s to end its requests. "
    )
