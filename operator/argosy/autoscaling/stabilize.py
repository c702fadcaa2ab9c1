"""What bounds, room, steps and time leave of a recommendation.

Up: at once, within bounds and room, `maxStep` replicas at a time, after the cooldown. Down: only to the largest
recommendation of a whole stabilization window, then the same.
"""

from datetime import datetime, timedelta

from msgspec import Struct, structs

from argosy.api.conditions import Reason
from argosy.autoscaling.decision import SpareCapacity
from argosy.autoscaling.explain import bound
from argosy.autoscaling.memory import Memory, Recommendation
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.recommend import Recommended, ceiling
from argosy.autoscaling.settings import BUCKETS
from argosy.planning.amounts import quantity

_UP, _DOWN = "spec.scaling.scaleUp", "spec.scaling.scaleDown"


class Stabilized(Struct, frozen=True):
    """`replicas` that are to be now, and the `desired` that the load asks for. `reason` and `limited_by` (a field's
    path, what is missing, or `signals`) where something keeps them apart; `why` says what, in words.
    """

    replicas: int
    desired: int
    reason: Reason = Reason.STEADY
    limited_by: str = ""
    why: str = ""


def recorded(policy: Policy, memory: Memory, down: float, rate: float, now: datetime) -> Memory:
    """Return the memory with what is recommended now, without what is older than the window."""
    window = timedelta(seconds=policy.pace.stabilization_s)
    recent = [past for past in memory.recommendations if now - past.at <= window]
    new = Recommendation(now, down, rate)
    if recent and now - recent[-1].at < window / BUCKETS:
        last = recent.pop()
        new = Recommendation(last.at, max(last.replicas, new.replicas), max(last.rate, new.rate))
    return structs.replace(memory, recommendations=(*recent, new))


def stabilized(
    policy: Policy, replicas: int, spare: SpareCapacity, memory: Memory, recommended: Recommended, now: datetime
) -> Stabilized:
    """Return what becomes of `replicas`. `memory` has what is recommended now, too."""
    if recommended.up > replicas:
        return _up(policy, replicas, spare, memory, recommended.up, now)
    window = ceiling(max(past.replicas for past in memory.recommendations))
    result = _down(policy, replicas, memory, recommended.up, min(replicas, max(recommended.up, window)), now)
    if result.why or window <= recommended.up or recommended.up == replicas:
        return result
    because = f"the last {policy.pace.stabilization_s:.0f} s asked for {min(replicas, window)}"
    return structs.replace(result, why=because)


def _up(policy: Policy, now_are: int, spare: SpareCapacity, memory: Memory, desired: int, now: datetime) -> Stabilized:
    bounds, pace = policy.bounds, policy.pace
    replicas, result = desired, Stabilized(desired, desired)
    if replicas > bounds.max_replicas:
        replicas = bounds.max_replicas
        result = Stabilized(replicas, desired, Reason.AT_MAXIMUM, bounds.max_by, bound(bounds.max_by, replicas))
    if spare.replicas is not None and replicas > now_are + spare.replicas:
        why = _little_spare_capacity(spare.replicas, replicas - now_are)
        missing = spare.missing.removesuffix(".")
        replicas, why = now_are + spare.replicas, f"{why}; {missing}" if missing else why
        result = Stabilized(replicas, desired, Reason.LIMITED_BY_CAPACITY, missing or why, why)
    if replicas <= now_are:
        return structs.replace(result, replicas=replicas)
    last = memory.change
    if last is not None and last.after.replicas > last.before.replicas:
        left = pace.cooldown_up_s - (now - last.at).total_seconds()
        if left > 0:
            return Stabilized(now_are, desired, limited_by=f"{_UP}.cooldown", why=f"not before {clock(now, left)}")
    if pace.step_up is not None and replicas > now_are + pace.step_up:
        why = f"{pace.step_up} at once"
        return Stabilized(now_are + pace.step_up, desired, limited_by=f"{_UP}.maxStep", why=why)
    return structs.replace(result, replicas=replicas)


def _little_spare_capacity(more: int, needed: int) -> str:
    verb = "is" if needed == 1 else "are"
    return f"room for {more} more, {needed} {verb} wanted" if more else f"no room for {needed} more"


def _down(policy: Policy, now_are: int, memory: Memory, desired: int, lowest: int, now: datetime) -> Stabilized:
    pace = policy.pace
    result = _least(policy, now_are, desired, lowest)
    if result.replicas >= now_are:
        return result
    unseen = unseen_s(policy, memory, now)
    if unseen > 0:
        why = f"down at {clock(now, unseen)} at the earliest"
        return Stabilized(now_are, desired, limited_by=f"{_DOWN}.stabilizationWindow", why=why)
    if not memory.measured.is_new:
        return Stabilized(now_are, desired, limited_by="signals", why="nothing new was measured")
    left = pace.cooldown_down_s - (now - memory.change.at).total_seconds() if memory.change is not None else 0.0
    if left > 0:
        return Stabilized(now_are, desired, limited_by=f"{_DOWN}.cooldown", why=f"not before {clock(now, left)}")
    if pace.step_down is not None and result.replicas < now_are - pace.step_down:
        why = f"{pace.step_down} at once"
        return Stabilized(now_are - pace.step_down, desired, limited_by=f"{_DOWN}.maxStep", why=why)
    return result


def _least(policy: Policy, now_are: int, desired: int, lowest: int) -> Stabilized:
    """Return the `lowest`, or what bounds ask for above it. Zero is for what has been idle for long."""
    bounds = policy.bounds
    fewest = max(bounds.min_replicas, 1) if bounds.max_replicas > 0 else 0
    if lowest >= fewest and now_are > fewest:
        return Stabilized(lowest, desired)
    least = Reason.AT_MINIMUM if desired <= fewest and bounds.min_replicas < bounds.max_replicas else Reason.STEADY
    result = Stabilized(max(fewest, lowest), max(desired, 0), least)
    if lowest >= fewest or (bounds.min_replicas and not bounds.min_by):
        return result
    if bounds.min_replicas:
        return structs.replace(result, limited_by=bounds.min_by, why=bound(bounds.min_by, fewest))
    why = f"to zero once no request came for {policy.pace.idle_s:g} s"
    return structs.replace(result, limited_by="spec.scaling.idleTimeout", why=why)


def unseen_s(policy: Policy, memory: Memory, now: datetime) -> float:
    """Return the seconds until a whole stabilization window was measured without a gap."""
    since = memory.measured.since
    return policy.pace.stabilization_s - ((now - since).total_seconds() if since is not None else 0.0)


def from_or_to_zero(policy: Policy, replicas: int, memory: Memory, queued: int, needed: int) -> Stabilized | None:
    """Return the replicas that there are to be where load does not decide it: at a maximum of zero, at and to zero, and
    back at the first request. `queued`: requests that wait for it; `needed`: the replicas that they ask for.
    """
    bounds = policy.bounds
    if bounds.max_replicas == 0:
        return Stabilized(0, 0, Reason.AT_MAXIMUM, why=bound(bounds.max_by, 0))
    if replicas == 0:
        if not queued and not bounds.min_replicas:
            return Stabilized(0, 0, Reason.AT_MINIMUM, why="no request waits; the first one starts it")
        why = f"{quantity(queued, 'request')} waited for it" if queued else bound(bounds.min_by, bounds.min_replicas)
        woken = min(bounds.max_replicas, max(1, bounds.min_replicas, needed if queued else 0))
        return Stabilized(woken, woken, Reason.SCALED_UP, why=why)
    if bounds.min_replicas > 0 or queued or not _idle(policy, memory):
        return None
    return Stabilized(0, 0, Reason.SCALED_DOWN, why=f"no request came for {policy.pace.idle_s:g} s")


def _idle(policy: Policy, memory: Memory) -> bool:
    """Return whether no request came for long enough, measured without a gap up to the newest signals."""
    measured = memory.measured
    if measured.active_at is None or measured.since is None or measured.at is None or not measured.is_new:
        return False
    idle_from = max(measured.active_at, measured.since)
    if memory.change is not None:
        idle_from = max(idle_from, memory.change.at)
    return (measured.at - idle_from).total_seconds() >= policy.pace.idle_s


def clock(now: datetime, seconds: float) -> str:
    """Return the time of day in so many seconds."""
    return f"{now + timedelta(seconds=seconds):%H:%M:%S}"
