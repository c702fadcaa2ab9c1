"""What bounds, room and pace leave of what is wanted."""

from datetime import datetime, timedelta
from math import log2

from msgspec import Struct, structs

from argosy.api.conditions import Reason
from argosy.autoscaling.decision import Allocation, Room
from argosy.autoscaling.learning.memory import Asked, KeptFor, Memory, Steady
from argosy.autoscaling.learning.overdriven import reconsidered
from argosy.autoscaling.learning.returns import hold_s, watched
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.wanted.load import Load
from argosy.autoscaling.wanted.needs import whole
from argosy.autoscaling.wanted.replicas import Wanted
from argosy.autoscaling.words import bound

_QUEUE_S = 15.0
_UP, _DOWN = "spec.scaling.scaleUp", "spec.scaling.scaleDown"
_LITTLE = 1.1
"""Of what replicas hold: so little more than it may be chance, and what it is the next reading tells."""
_SOME, _SOON_S = 1.25, 15.0
"""Of what they hold, and for how long, the same where the load has been the same: that one reading says that it is
another is more likely to be chance then.
"""
_KEPT = 12
"""Parts of a stabilisation window of which the most that was asked for is kept."""
_SAME = 0.1
"""What a replica holds, where it is learnt anew and differs by no more than this, is what it held."""
_FALLEN = 0.88
"""The share of what replicas are kept for, below which less is asked for, and not the same with other noise. So a load
that stays as it is takes nothing away once a window went by, however high its highest moments are later.
"""
_NEW_S, _WORTH, _MOST_WORTH = 300.0, 0.125, 0.25
"""How long a load is new, if what was asked for is not kept for longer: any step down is worth it; then the share of
replicas that it has to save more than, for each time that the load has been the same for twice as long, and at most.
"""
_OLD = 2.0
"""Of the time for which a load is new: after that instances are not taken away either."""


class Paced(Struct, frozen=True):
    """`replicas` that are to be now. `desired`: that the load asks for. `reason` and `limited_by` (a field's path,
    what is missing, or `signals`) where something keeps them apart; `why` says what, in words.
    """

    replicas: int
    desired: int
    reason: Reason = Reason.STEADY
    limited_by: str = ""
    why: str = ""


def doubted(
    policy: Policy, present: Allocation, wanted: Wanted, signals: Signals, memory: Memory, now: datetime
) -> Memory:
    """With what replicas do not hold, where they were there for as much as is expected and more are wanted. A queue
    that is to be worked off says nothing of that.
    """
    if wanted.load.waiting > 0:
        return memory
    return reconsidered(policy, present, wanted.load.expected, wanted.up, signals.window_s, memory, now)


def remembered(policy: Policy, present: Allocation, memory: Memory, wanted: Wanted, now: datetime) -> Memory:
    """With what is asked for now; what is older than is kept is forgotten."""
    load, expected = wanted.load, wanted.load.expected
    memory = watched(policy, memory, expected / load.rows, now)
    window = timedelta(seconds=hold_s(policy, memory, now))
    kept = [each for each in memory.asked if now - each.at <= window]
    new = Asked(now, wanted.down, expected, expected if wanted.up <= present.replicas else 0.0)
    if kept and now - kept[-1].at < window / _KEPT:
        last = kept.pop()
        new = Asked(last.at, max(last.replicas, new.replicas), max(last.rate, new.rate), max(last.covered, new.covered))
    queue = memory.catching_up
    if load.waiting > 0:
        queue = Asked(now, max(wanted.up, _asked_for_queue(memory, now)), load.rate)
    asked = (*kept, new)
    holds = wanted.ladder[-1].rate if wanted.ladder else 0.0
    kept_for = _kept_for(memory, asked, holds, window * (1 + 1 / _KEPT), now)
    short_at = (memory.short_at or memory.measured_at) if wanted.up > present.replicas else None
    return structs.replace(
        memory,
        asked=asked,
        catching_up=queue,
        kept_for=kept_for,
        short_at=short_at,
        steady=_steady(policy, memory, load, now),
        policy=policy,
        expected=load.rate / load.rows,
        holds=holds / load.rows if holds else None,
    )


def _kept_for(memory: Memory, asked: tuple[Asked, ...], holds: float, window: timedelta, now: datetime) -> KeptFor:
    """The most that was asked for; once it was that of a whole window with the same replicas, less noise."""
    most = KeptFor(now, max(each.replicas for each in asked), max(each.rate for each in asked), holds)
    before = memory.kept_for
    if before is None or (memory.scaled is not None and memory.scaled.at > before.since):
        return most
    if abs(holds - before.holds) > _SAME * before.holds:
        return most
    if now - before.since <= window:
        return KeptFor(before.since, most.replicas, most.rate, before.holds)
    if most.replicas < _FALLEN * before.replicas or most.rate < _FALLEN * before.rate:
        return most
    return KeptFor(before.since, max(most.replicas, before.replicas), max(most.rate, before.rate), before.holds)


def _steady(policy: Policy, memory: Memory, load: Load, now: datetime) -> Steady | None:
    demand = memory.demand
    if demand is None or memory.at is None:
        return None
    if memory.steady is None or memory.policy != policy:
        return Steady(now, demand.level)
    return memory.steady.after(demand.level, load.noise / load.rows, memory.at, now)


def _worth(policy: Policy, memory: Memory, now: datetime) -> float:
    """The share of replicas that one step down has to save: the more, the longer the load has been what it is, since
    who looks often enough finds by chance, or by what was learnt since, that a few less might do.
    """
    steady_s, new_s = memory.steady_s(now), _new_s(policy, memory, now)
    return min(_MOST_WORTH, _WORTH * log2(steady_s / new_s)) if steady_s > new_s else 0.0


def fewer_instances(policy: Policy, memory: Memory, now: datetime) -> bool:
    """Return whether instances may be taken away: a whole stabilisation window was seen, and the load has not been the
    same for long. One too many costs no GPU time, and what was learnt since is no reason that lasts.
    """
    seen_whole = memory.anew and _unseen(policy, memory, now) <= 0
    return seen_whole and memory.steady_s(now) <= _OLD * _new_s(policy, memory, now)


def _new_s(policy: Policy, memory: Memory, now: datetime) -> float:
    return max(_NEW_S, hold_s(policy, memory, now))


def _asked_for_queue(memory: Memory, now: datetime) -> int:
    """The replicas that a queue asked for a moment ago: it is not over because one look finds it short."""
    queue = memory.catching_up
    return whole(queue.replicas) if queue is not None and (now - queue.at).total_seconds() <= _QUEUE_S else 0


def _for_the_newest(memory: Memory, wanted: Wanted) -> int:
    """The replicas for what was measured last: be it chance that so much came, it is no moment to take one away."""
    best = wanted.ladder[-1].rate if wanted.ladder else 0.0
    return whole(memory.demand.last * wanted.load.rows / best) if memory.demand is not None and best > 0 else 0


def paced(policy: Policy, allocation: Allocation, room: Room, memory: Memory, wanted: Wanted, now: datetime) -> Paced:
    """`memory` has what is asked for now, too."""
    now_are = allocation.replicas
    if wanted.up > now_are:
        if _may_be_chance(memory, wanted, now_are, now):
            return Paced(now_are, wanted.up, why="so little more may be chance, which the next readings tell")
        return _up(policy, now_are, room, memory, wanted, now)
    kept = memory.kept_for
    of_late = whole(wanted.down if kept is None else kept.replicas)
    lowest = min(now_are, max(wanted.up, of_late, _asked_for_queue(memory, now), _for_the_newest(memory, wanted)))
    worth = _worth(policy, memory, now) if wanted.by_rate else 0.0
    if (1 - worth) * now_are <= lowest < now_are:
        why = f"the load has been the same for long, so that {worth:.0%} fewer are not worth a change"
        return Paced(now_are, wanted.up, why=why)
    found = _down(policy, now_are, memory, wanted.up, lowest, now)
    if found.why or of_late <= wanted.up or wanted.up == now_are:
        return found
    return structs.replace(found, why=f"the last {hold_s(policy, memory, now):.0f} s asked for {min(now_are, of_late)}")


def _may_be_chance(memory: Memory, wanted: Wanted, now_are: int, now: datetime) -> bool:
    """Whether only the newest reading asks for more, and hardly more than there is; of a load that has been the same
    for long, whether only the newest few do, and not much more.
    """
    load, short_at = wanted.load, memory.short_at
    held = now_are * wanted.ladder[-1].rate if wanted.by_rate else 0.0
    if 0 < load.rate <= _LITTLE * held and short_at in (None, memory.measured_at):
        return True
    same = memory.steady_s(now) > _NEW_S and load.waiting == 0 and 0 < load.rate <= _SOME * held
    return same and (short_at is None or (now - short_at).total_seconds() < _SOON_S)


def _up(policy: Policy, now_are: int, room: Room, memory: Memory, wanted: Wanted, now: datetime) -> Paced:
    bounds, pace, desired = policy.bounds, policy.pace, wanted.up_to
    replicas, found = desired, Paced(desired, desired)
    if replicas > bounds.max_replicas:
        replicas = bounds.max_replicas
        found = Paced(replicas, desired, Reason.AT_MAXIMUM, bounds.max_by, bound(bounds.max_by, replicas))
    if room.replicas is not None and replicas > now_are + room.replicas:
        why = _little_room(room.replicas, replicas - now_are)
        missing = room.missing.removesuffix(".")
        replicas, why = now_are + room.replicas, f"{why}; {missing}" if missing else why
        found = Paced(replicas, desired, Reason.LIMITED_BY_CAPACITY, missing or why, why)
    if replicas <= now_are:
        return structs.replace(found, replicas=replicas)
    last = memory.scaled
    if last is not None and last.after.replicas > last.before.replicas:
        left = pace.cooldown_up_s - (now - last.at).total_seconds()
        if left > 0:
            return Paced(now_are, desired, limited_by=f"{_UP}.cooldown", why=f"not before {clock(now, left)}")
    if pace.step_up is not None and replicas > now_are + pace.step_up:
        return Paced(now_are + pace.step_up, desired, limited_by=f"{_UP}.maxStep", why=f"{pace.step_up} at once")
    return structs.replace(found, replicas=replicas)


def _little_room(more: int, wanted: int) -> str:
    verb = "is" if wanted == 1 else "are"
    return f"room for {more} more, {wanted} {verb} wanted" if more else f"no room for {wanted} more"


def _down(policy: Policy, now_are: int, memory: Memory, desired: int, lowest: int, now: datetime) -> Paced:
    pace = policy.pace
    found = _least(policy, now_are, desired, lowest)
    if found.replicas >= now_are:
        return found
    last = memory.scaled
    if last is not None and last.after.replicas > last.before.replicas:
        starting = policy.startup_s - (now - last.at).total_seconds()
        if starting > 0:
            return Paced(
                now_are, desired, limited_by="startup", why=f"the newest still start, down after {clock(now, starting)}"
            )
    unseen = _unseen(policy, memory, now)
    if unseen > 0:
        why = f"down at {clock(now, unseen)} at the earliest"
        return Paced(now_are, desired, limited_by=f"{_DOWN}.stabilizationWindow", why=why)
    if not memory.anew:
        return Paced(now_are, desired, limited_by="signals", why="nothing new was measured")
    left = pace.cooldown_down_s - (now - memory.scaled.at).total_seconds() if memory.scaled is not None else 0.0
    if left > 0:
        return Paced(now_are, desired, limited_by=f"{_DOWN}.cooldown", why=f"not before {clock(now, left)}")
    if pace.step_down is not None and found.replicas < now_are - pace.step_down:
        return Paced(now_are - pace.step_down, desired, limited_by=f"{_DOWN}.maxStep", why=f"{pace.step_down} at once")
    return found


def _least(policy: Policy, now_are: int, desired: int, lowest: int) -> Paced:
    """The `lowest`, or what bounds ask for above it. Zero is for what has been idle for long alone."""
    bounds = policy.bounds
    fewest = max(bounds.min_replicas, 1) if bounds.max_replicas > 0 else 0
    if lowest >= fewest and now_are > fewest:
        return Paced(lowest, desired)
    least = Reason.AT_MINIMUM if desired <= fewest and bounds.min_replicas < bounds.max_replicas else Reason.STEADY
    found = Paced(max(fewest, lowest), max(desired, 0), least)
    if lowest >= fewest or (bounds.min_replicas and not bounds.min_by):
        return found
    if bounds.min_replicas:
        return structs.replace(found, limited_by=bounds.min_by, why=bound(bounds.min_by, fewest))
    why = f"to zero once no request came for {policy.pace.idle_s:g} s"
    return structs.replace(found, limited_by="spec.scaling.idleTimeout", why=why)


def _unseen(policy: Policy, memory: Memory, now: datetime) -> float:
    """Seconds until a whole stabilisation window was seen."""
    if memory.seen_from is None:
        return policy.pace.stabilization_s
    return policy.pace.stabilization_s - (now - memory.seen_from).total_seconds()


def clock(now: datetime, seconds: float) -> str:
    """Return the time of day in so many seconds."""
    return f"{now + timedelta(seconds=seconds):%H:%M:%S}"
