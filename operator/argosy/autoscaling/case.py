"""What is the same in every decision, of a model or of an ensemble: what it is about, and how it is put into words."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from math import inf
from types import MappingProxyType
from typing import Any

from msgspec import Struct, structs

from argosy.api.conditions import Reason
from argosy.autoscaling.decision import NOBODY, Allocation, Decision, Ejection, Room, Scaled
from argosy.autoscaling.learning.learn import learn, missed
from argosy.autoscaling.learning.memory import Memory
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.pace import Paced
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.wanted.needs import Need
from argosy.autoscaling.words import joined, learnt_times, sent_nothing, sentence

NO_QUERIES: Mapping[str, float] = MappingProxyType({})
NOTHING_SAID = "nothing that was measured says how many replicas it needs"
STALE_S = 60.0
"""What was measured longer ago, or so far in the future, is not what is so; where it is measured more seldom, what is
older than three of those times.
"""

_NUMBERS = (
    "arrivals",
    "recent",
    "completions",
    "rejections",
    "timeouts",
    "out_of_memory",
    "pending",
    "running",
    "execution",
    "batch",
    "instances",
    "busy",
    "tokens",
    "engine_waiting",
    "kv_cache",
)


class Case(Struct, frozen=True):
    """What a decision is about, beside its signals."""

    policy: Policy
    before: Allocation
    room: Room
    now: datetime
    queries: Mapping[str, float]
    held: int


def decided(
    case: Case,
    after: Allocation,
    pace: Paced,
    why: str,
    need: Need | None,
    memory: Memory,
    ejection: Ejection = NOBODY,
    away: Collection[str] = (),
) -> tuple[Decision, Memory]:
    """Return the decision with its words; a change is kept as the newest."""
    message = joined(sentence(case.before, after, why, pace.why), sent_nothing(away))
    reason = _reason(case, after, pace)
    if after != case.before:
        memory = structs.replace(memory, scaled=Scaled(case.now, case.before, after, reason, message))
    decision = Decision(
        after,
        pace.desired,
        reason,
        message,
        need.metric if need is not None else "",
        need.observed if need is not None else None,
        need.target if need is not None else None,
        _limited_by(pace, need),
        memory.scaled,
        memory.lowering,
        learnt_times(memory.service, of_engine=memory.engine is not None) if memory.service is not None else "",
        ejection,
    )
    return decision, structs.replace(memory, at=case.now, ejection=ejection)


def _limited_by(pace: Paced, need: Need | None) -> str:
    """A target that nothing reaches says more than that fewer replicas would be as good."""
    if need is not None and pace.reason not in (Reason.AT_MAXIMUM, Reason.LIMITED_BY_CAPACITY):
        return need.limited_by or pace.limited_by
    return pace.limited_by


def _reason(case: Case, after: Allocation, pace: Paced) -> Reason:
    """What limits comes before what changed; who else decides the replicas, before both."""
    if case.policy.bounds.fixed_by:
        return Reason.FIXED_REPLICAS
    if pace.reason in (Reason.NO_SIGNALS, Reason.AT_MAXIMUM, Reason.LIMITED_BY_CAPACITY):
        return pace.reason
    before = case.before
    if (after.replicas, after.instances) > (before.replicas, before.instances):
        return Reason.SCALED_UP
    if (after.replicas, after.instances) < (before.replicas, before.instances):
        return Reason.SCALED_DOWN
    return pace.reason


def bounded(policy: Policy, allocation: Allocation) -> Allocation:
    """Within what the spec says now, which may be another than it was."""
    bounds = policy.bounds
    replicas = min(max(allocation.replicas, bounds.min_replicas), bounds.max_replicas)
    instances = min(max(allocation.instances, bounds.min_instances), bounds.max_instances)
    window_s, longest = allocation.window_s, bounds.max_window_s
    window_s = None if longest is None else min(window_s or 0.0, longest)
    found = Allocation(replicas, instances, window_s, allocation.max_batch)
    return allocation if found == allocation else found


def learnt(
    policy: Policy, allocation: Allocation, signals: Signals | None, memory: Memory, now: datetime, held: int = 0
) -> tuple[Memory, Signals | None]:
    """Return the memory after these signals, and what of them is of use; None where nothing is."""
    if signals is None or unusable(signals, now):
        memory = missed(memory, now)
        return structs.replace(memory, recurrence=memory.recurrence.after(now, held > 0, 0.0)), None
    signals = sensible(signals)
    memory = learn(policy, allocation, signals, memory, now)
    rate = 0.0 if memory.demand is None else memory.demand.level
    active = held > 0 or bool(signals.arrivals) or bool(signals.pending)
    return structs.replace(memory, recurrence=memory.recurrence.after(now, active, rate)), signals


def sensible(signals: Signals) -> Signals:
    """Without what cannot be: what is not finite, or negative, is not known."""
    absurd: dict[str, Any] = {}
    for name in _NUMBERS:
        value = getattr(signals, name)
        if value is not None and not 0 <= value < inf:
            absurd[name] = None
    return replace(signals, **absurd) if absurd else signals


def unusable(signals: Signals | None, now: datetime) -> str:
    """Return why nothing can be decided from these; empty where it can."""
    if signals is None:
        return "nothing is measured"
    age = (now - signals.at).total_seconds()
    stale_s = max(STALE_S, 3 * signals.recent_s)
    if age > stale_s:
        return f"what was measured is {age:.0f} s old, of more than {stale_s:g} s it says nothing"
    if age < -STALE_S:
        return f"what was measured is dated {-age:.0f} s ahead of the clock here"
    return ""
