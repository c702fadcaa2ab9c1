"""Stabilization: a recommendation limited by bounds, spare capacity, steps and time.

Up: immediately, within bounds and spare capacity, by at most `maxStep` replicas, after the cooldown. Down: to the
largest recommendation of a full stabilization window, by at most `maxStep` replicas, after the cooldown. The strictest
limit decides.
"""

from collections.abc import Iterator
from datetime import timedelta

from msgspec import Struct, structs

from argosy.api.conditions import Reason
from argosy.autoscaling.explain import bound, clock
from argosy.autoscaling.memory import NEVER, Memory, Recommendation
from argosy.autoscaling.recommend import Need, ceiling
from argosy.autoscaling.settings import BUCKETS
from argosy.autoscaling.stage import Stage
from argosy.planning.amounts import quantity

_UP, _DOWN = "spec.scaling.scaleUp", "spec.scaling.scaleDown"


class Stabilized(Struct, frozen=True):
    """The stabilized `replicas`, and the `desired` ones that the load needs. Where they differ, `reason`, `limited_by`
    (a path of a field, a missing resource, or `signals`) and `why` (in words) have the limit.
    """

    replicas: int
    desired: int
    reason: Reason = Reason.STEADY
    limited_by: str = ""
    why: str = ""


def recorded(stage: Stage, down: float, rate: float) -> Memory:
    """Return the memory with this recommendation added, and those older than the window removed."""
    memory, now, window = stage.memory, stage.now, timedelta(seconds=stage.policy.pace.stabilization_s)
    recent = [past for past in memory.recommendations if now - past.at <= window]
    new = Recommendation(now, down, rate)
    if recent and now - recent[-1].at < window / BUCKETS:
        last = recent.pop()
        new = Recommendation(last.at, max(last.replicas, down), max(last.rate, rate))
    return structs.replace(memory, recommendations=(*recent, new))


def stabilized(stage: Stage, need: Need) -> Stabilized:
    """Return the stage's stabilized replicas. Its memory must already contain the present recommendation."""
    replicas, desired = stage.allocation.replicas, need.up
    if desired > replicas:
        result = Stabilized(desired, desired)
        for limit in _limits_up(stage, desired):
            result = limit if limit.replicas < result.replicas else result
        return result
    window = ceiling(max(past.replicas for past in stage.memory.recommendations))
    result = _least(stage, desired, min(replicas, max(desired, window)))
    for limit in _limits_down(stage, desired):
        result = limit if limit.replicas > result.replicas else result
    if result.why or window <= desired or desired == replicas:
        return result
    because = f"the last {stage.policy.pace.stabilization_s:.0f} s asked for {min(replicas, window)}"
    return structs.replace(result, why=because)


def _limits_up(stage: Stage, desired: int) -> Iterator[Stabilized]:
    """Yield each limit on scaling up to `desired`."""
    replicas, bounds, pace = stage.allocation.replicas, stage.policy.bounds, stage.policy.pace
    most, more, missing = bounds.max_replicas, stage.spare.replicas, stage.spare.missing.removesuffix(".")
    yield Stabilized(most, desired, Reason.AT_MAXIMUM, bounds.max_by, bound(bounds.max_by, most))
    if more is not None:
        lacking = min(desired, most) - replicas
        enough = f"room for {more} more, {lacking} {'is' if lacking == 1 else 'are'} wanted"
        why = enough if more else f"no room for {lacking} more"
        why = f"{why}; {missing}" if missing else why
        yield Stabilized(replicas + more, desired, Reason.LIMITED_BY_CAPACITY, missing or why, why)
    change = stage.memory.change
    if change is not None and change.after.replicas > change.before.replicas:
        yield from _cooldown(stage, desired, _UP, pace.cooldown_up_s)
    if pace.step_up is not None:
        yield Stabilized(replicas + pace.step_up, desired, limited_by=f"{_UP}.maxStep", why=f"{pace.step_up} at once")


def _limits_down(stage: Stage, desired: int) -> Iterator[Stabilized]:
    """Yield each limit on scaling down."""
    replicas, pace = stage.allocation.replicas, stage.policy.pace
    unseen = unseen_s(stage)
    if unseen > 0:
        why = f"down at {clock(stage.now, unseen)} at the earliest"
        yield Stabilized(replicas, desired, limited_by=f"{_DOWN}.stabilizationWindow", why=why)
    if not stage.memory.measured.is_new:
        yield Stabilized(replicas, desired, limited_by="signals", why="nothing new was measured")
    yield from _cooldown(stage, desired, _DOWN, pace.cooldown_down_s)
    if pace.step_down is not None:
        why = f"{pace.step_down} at once"
        yield Stabilized(replicas - pace.step_down, desired, limited_by=f"{_DOWN}.maxStep", why=why)


def _cooldown(stage: Stage, desired: int, field: str, cooldown_s: float) -> Iterator[Stabilized]:
    left = cooldown_s - stage.memory.since_change_s(stage.now)
    if left > 0:
        why = f"not before {clock(stage.now, left)}"
        yield Stabilized(stage.allocation.replicas, desired, limited_by=f"{field}.cooldown", why=why)


def _least(stage: Stage, desired: int, lowest: int) -> Stabilized:
    """Return `lowest`, or the lower bound if that is larger. Only the idle timeout scales to zero."""
    bounds, idle_s = stage.policy.bounds, stage.policy.pace.idle_s
    fewest = max(bounds.min_replicas, min(1, bounds.max_replicas))
    if lowest >= fewest and stage.allocation.replicas > fewest:
        return Stabilized(lowest, desired)
    reason = Reason.AT_MINIMUM if desired <= fewest and bounds.min_replicas < bounds.max_replicas else Reason.STEADY
    field, why = bounds.min_by, bound(bounds.min_by, fewest) if bounds.min_by else ""
    if not bounds.min_replicas:
        field, why = "spec.scaling.idleTimeout", f"to zero once no request came for {idle_s:g} s"
    is_limiting = lowest < fewest
    return Stabilized(max(fewest, lowest), desired, reason, field if is_limiting else "", why if is_limiting else "")


def unseen_s(stage: Stage) -> float:
    """Return the seconds until a full stabilization window has been measured without a gap; at most 0 once it has."""
    since = stage.memory.measured.since
    return stage.policy.pace.stabilization_s - ((stage.now - since).total_seconds() if since is not None else 0.0)


def from_or_to_zero(stage: Stage, replicas: int, needed: int) -> Stabilized | None:
    """Return the replicas where the load does not decide: with a maximum of zero, with no replicas, after the idle
    timeout, and at the first request after it. Return None otherwise. `replicas`: the present ones; `needed`: those
    that the waiting requests need.
    """
    bounds, queued = stage.policy.bounds, stage.queued
    if bounds.max_replicas == 0:
        return Stabilized(0, 0, Reason.AT_MAXIMUM, why=bound(bounds.max_by, 0))
    if replicas == 0:
        if not queued and not bounds.min_replicas:
            return Stabilized(0, 0, Reason.AT_MINIMUM, why="no request waits; the first one starts it")
        why = f"{quantity(queued, 'request')} waited for it" if queued else bound(bounds.min_by, bounds.min_replicas)
        woken = min(bounds.max_replicas, max(1, bounds.min_replicas, needed if queued else 0))
        return Stabilized(woken, woken, Reason.SCALED_UP, why=why)
    if bounds.min_replicas > 0 or queued or not _idle(stage):
        return None
    return Stabilized(0, 0, Reason.SCALED_DOWN, why=f"no request came for {stage.policy.pace.idle_s:g} s")


def _idle(stage: Stage) -> bool:
    """Return whether no request arrived during the idle timeout, measured without a gap up to the newest signals."""
    measured, change = stage.memory.measured, stage.memory.change
    if measured.since is None or not measured.is_new:
        return False
    idle_from = max(measured.active_at, measured.since, change.at if change is not None else NEVER)
    return (measured.at - idle_from).total_seconds() >= stage.policy.pace.idle_s
