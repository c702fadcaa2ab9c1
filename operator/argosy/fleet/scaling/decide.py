"""One member's decision: what was measured, what it asks for, what bounds, pace and room leave of that, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType

from argosy.api.conditions import Reason
from argosy.fleet.scaling.decision import Allocation, Decision, Room, Scaled
from argosy.fleet.scaling.learning import learn, missed
from argosy.fleet.scaling.memory import Memory
from argosy.fleet.scaling.needs import Need
from argosy.fleet.scaling.outofmemory import lowered
from argosy.fleet.scaling.pace import Paced, paced, remembered, seen_whole
from argosy.fleet.scaling.policy import Policy
from argosy.fleet.scaling.setting import in_place
from argosy.fleet.scaling.wanted import wanted
from argosy.fleet.scaling.words import sentence
from argosy.fleet.scaling.zero import to_or_from_zero
from argosy.fleet.signals.signals import Signals

STALE_S = 60.0
"""What was measured longer ago, or so far in the future, is not what is so."""
_NOTHING = "nothing that was measured says how many replicas it needs"
_NO_QUERIES: Mapping[str, float] = MappingProxyType({})


def decide(
    policy: Policy,
    allocation: Allocation,
    signals: Signals | None,
    room: Room,
    memory: Memory,
    now: datetime,
    *,
    queries: Mapping[str, float] = _NO_QUERIES,
    held: int = 0,
) -> tuple[Decision, Memory]:
    """What `allocation` is to become, and what the next decision has to know.

    `queries`: the values of the policy's queries that are to be had, by name. `held`: requests that wait where nothing
    serves the member. Signals that are missing, or not of now, take nothing away.
    """
    case = _Case(policy, allocation, room, now, queries, held)
    why_not = _unusable(signals, now)
    memory = memory.since(now)
    usable = None if why_not else signals
    memory = missed(memory, now) if usable is None else learn(policy, allocation, usable, memory, now)
    zero = to_or_from_zero(policy, allocation.replicas, memory, held, now)
    present = _bounded(policy, allocation)
    if zero is not None:
        pace = Paced(zero.replicas, zero.replicas, zero.reason)
        return _decided(case, replace(present, replicas=zero.replicas), pace, zero.why, None, memory)
    if usable is None:
        pace = Paced(present.replicas, present.replicas, Reason.NO_SIGNALS)
        return _decided(case, present, pace, why_not, None, memory)
    return _by_load(case, present, usable, memory)


@dataclass(frozen=True, slots=True)
class _Case:
    """What a decision is about, beside its signals."""

    policy: Policy
    before: Allocation
    room: Room
    now: datetime
    queries: Mapping[str, float]
    held: int


def _by_load(case: _Case, present: Allocation, signals: Signals, memory: Memory) -> tuple[Decision, Memory]:
    policy, now = case.policy, case.now
    less = lowered(policy, present, signals, memory, now)
    present, memory = less.allocation, less.memory
    found = wanted(policy, present, signals, case.room, memory, case.queries, case.held)
    if found is None:
        why = less.why or _NOTHING
        pace = Paced(present.replicas, present.replicas, Reason.STEADY if less.why else Reason.NO_SIGNALS)
        return _decided(case, present, pace, why, None, memory)
    memory = remembered(policy, memory, found, now)
    pace = paced(policy, present, case.room, memory, found, now)
    serving = min(signals.servers or present.replicas, present.replicas)
    setting = in_place(present, pace.replicas, serving, found, memory, down=seen_whole(policy, memory, now))
    after = replace(present, replicas=pace.replicas, instances=setting.instances, window_s=setting.window_s)
    why = f"{less.why}; {found.need.because}" if less.why else found.need.because
    return _decided(case, after, pace, why, found.need, memory)


def _decided(
    case: _Case, after: Allocation, pace: Paced, why: str, need: Need | None, memory: Memory
) -> tuple[Decision, Memory]:
    """The decision with its words; a change is kept as the newest."""
    message = sentence(case.before, after, why, pace.why)
    reason = _reason(case, after, pace)
    if after != case.before:
        memory = replace(memory, scaled=Scaled(case.now, case.before, after, reason, message))
    decision = Decision(
        after,
        pace.desired,
        reason,
        message,
        need.metric if need is not None else "",
        need.observed if need is not None else None,
        need.target if need is not None else None,
        pace.limited_by,
        memory.scaled,
    )
    return decision, replace(memory, at=case.now)


def _reason(case: _Case, after: Allocation, pace: Paced) -> Reason:
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


def _bounded(policy: Policy, allocation: Allocation) -> Allocation:
    """Within what the spec says now, which may be another than it was."""
    bounds = policy.bounds
    replicas = min(max(allocation.replicas, bounds.min_replicas), bounds.max_replicas)
    instances = min(max(allocation.instances, bounds.min_instances), bounds.max_instances)
    window_s, longest = allocation.window_s, bounds.max_window_s
    window_s = None if longest is None else min(window_s or 0.0, longest)
    return replace(allocation, replicas=replicas, instances=instances, window_s=window_s)


def _unusable(signals: Signals | None, now: datetime) -> str:
    """Why nothing can be decided from these; empty where it can."""
    if signals is None:
        return "nothing is measured"
    age = (now - signals.at).total_seconds()
    if age > STALE_S:
        return f"what was measured is {age:.0f} s old, of more than {STALE_S:g} s it says nothing"
    if age < -STALE_S:
        return f"what was measured is dated {-age:.0f} s ahead of the clock here"
    return ""
