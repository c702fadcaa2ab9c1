"""What a decision learns of new signals, before it decides anything."""

from datetime import datetime, timedelta

from msgspec import structs

from argosy.autoscaling.capacity.service import Batches, Service
from argosy.autoscaling.decision import Allocation
from argosy.autoscaling.learning.arrivals import NOTHING, Arrivals
from argosy.autoscaling.learning.demand import Demand
from argosy.autoscaling.learning.engines import EngineUse
from argosy.autoscaling.learning.memory import Memory
from argosy.autoscaling.learning.overdriven import overdriven, waiting, waiting_too_long
from argosy.autoscaling.learning.variation import felt
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.policy import Policy

GAP_S = 60.0
"""Without anything new for longer, nobody knows what was meanwhile."""
_NEWER = timedelta(seconds=0.1)
"""By how much more what is measured anew is younger than what was: of one reading two clocks may tell two times."""
_SAME = 0.1
"""Service times that differ by less are the same: what follows from them stays, too."""
_ENOUGH = 1.0
"""Executions of each instance in a window: of fewer those that were cut off at its ends tell too much."""
_ROWS_FOLLOW = 0.2
_REQUESTS = 50.0
"""Answered in a window: of fewer it tells too much which of their executions lie wholly within it."""
_ALL_BUSY = 0.95
"""The share of time from which on no server is less busy than others, wherever a queue of before stands."""


def learn(policy: Policy, allocation: Allocation, signals: Signals, memory: Memory, now: datetime) -> Memory:
    """Return the memory after usable signals; those that it had already teach nothing."""
    before = memory.measured_at
    if before is not None and signals.at - before < _NEWER:
        return structs.replace(memory, anew=False, seen_from=memory.seen_from or now)
    elapsed = (signals.at - before).total_seconds() if before is not None else 0.0
    gap = before is None or elapsed > GAP_S
    memory = structs.replace(
        memory,
        measured_at=signals.at,
        anew=True,
        seen_from=now if gap or memory.seen_from is None else memory.seen_from,
        demand=_demand(None if gap else memory.demand, signals, elapsed),
        arrivals=_arrivals(NOTHING if gap else memory.arrivals, signals, elapsed),
        active_at=now if memory.active_at is None or _active(signals) else memory.active_at,
    )
    memory = _queued(policy, signals, memory, now)
    memory = _served(policy, signals, memory, signals.window_s if gap else elapsed, now)
    if settled(policy, memory, signals.window_s, now):
        memory = felt(policy, allocation, signals, memory)
    return overdriven(policy, allocation, signals, memory, now)


def missed(memory: Memory, now: datetime) -> Memory:
    """Without usable signals: what is known of what was asked for has a hole, once that lasts."""
    memory, last = structs.replace(memory, anew=False), memory.at or now
    measured = memory.measured_at or last
    if max(now - last, now - measured) > timedelta(seconds=GAP_S):
        return structs.replace(memory, seen_from=None, over_since=None)
    return memory


def settled(policy: Policy, memory: Memory, window_s: float, now: datetime) -> bool:
    """Return whether what is measured is of the present allocation, and no queue of before is left in it."""
    return has_stood(policy, memory, window_s, now) and _drained(memory, window_s, now)


def _drained(memory: Memory, window_s: float, now: datetime) -> bool:
    """Whether no queue of before is left in what is measured."""
    return memory.drained_at is None or now - memory.drained_at > timedelta(seconds=window_s)


def has_stood(policy: Policy, memory: Memory, window_s: float, now: datetime) -> bool:
    """Return whether all that is measured is of the present allocation."""
    return memory.scaled is None or now - memory.scaled.at >= timedelta(seconds=policy.startup_s + window_s)


def _queued(policy: Policy, signals: Signals, memory: Memory, now: datetime) -> Memory:
    """With what is known of queues. One of before, on one server perhaps, is there until it becomes no shorter."""
    pending = waiting(signals)
    if memory.demand is not None and waiting_too_long(policy, signals, memory.demand.level) > 0:
        return structs.replace(memory, queued_at=now, drained_at=now, left=pending)
    if pending >= memory.left or _drained(memory, signals.window_s, now):
        return memory
    return structs.replace(memory, drained_at=now, left=pending)


def _demand(before: Demand | None, signals: Signals, elapsed: float) -> Demand | None:
    if signals.arrivals is None:
        return before
    if before is None:
        return Demand.of(signals.arrivals)
    newest = signals.arrivals if signals.recent is None else signals.recent
    return before.after(newest, elapsed, counted_s(signals))


def _arrivals(before: Arrivals, signals: Signals, elapsed: float) -> Arrivals:
    newest = signals.arrivals if signals.recent is None else signals.recent
    return before if newest is None else before.after(newest, elapsed)


def counted_s(signals: Signals) -> float:
    """Return the seconds over which the newest arrivals were counted."""
    return max(1.0, signals.window_s if signals.recent is None else signals.recent_s)


def _active(signals: Signals) -> bool:
    """What nobody measured may have been a request."""
    unknown = signals.arrivals is None or signals.unmeasured > 0
    return unknown or bool(signals.arrivals) or bool(signals.pending) or bool(signals.running)


def _served(policy: Policy, signals: Signals, memory: Memory, elapsed: float, now: datetime) -> Memory:
    """Service times, and the rows of a request."""
    queued = not _drained(memory, signals.window_s, now)
    engine = EngineUse.after(memory.engine, signals, elapsed, queued=queued)
    if engine is not memory.engine:
        memory = structs.replace(memory, engine=engine)
    batches = _batches(policy, signals, memory, elapsed, now)
    if batches is not None:
        prompt_s = 0.0 if engine is None else engine.prompt_s
        as_foreseen = memory.experience.as_foreseen(batches, memory.service, prompt_s)
        experience = memory.experience.learnt(batches, prompt_s)
        another = len(experience.batches) < len(memory.experience.batches)
        memory = structs.replace(memory, experience=experience, overdriven=None if another else memory.overdriven)
        if not as_foreseen:
            memory = structs.replace(memory, service=_in_use(policy, memory, experience.service(prompt_s)))
    if policy.bounds.max_batch > 0 and settled(policy, memory, signals.window_s, now):
        more = _rows(signals, memory) - memory.rows
        memory = structs.replace(memory, rows=memory.rows + _ROWS_FOLLOW * more) if more else memory
    return memory


def _batches(policy: Policy, signals: Signals, memory: Memory, elapsed: float, now: datetime) -> Batches | None:
    """What was executed; nothing while some of it was so with other instances."""
    if memory.engine is not None:
        uneven = signals.servers > 1 and not settled(policy, memory, signals.window_s, now)
        return None if memory.service is not None and uneven else memory.engine.batches(signals.window_s, elapsed)
    if not (signals.execution and signals.busy and signals.instances and signals.servers):
        return None
    on_device = signals.instances / (signals.servers * policy.bounds.devices)
    last = memory.scaled
    mixed = last is not None and (now - last.at).total_seconds() < signals.window_s
    if mixed and (policy.bounds.max_instances > 1 or on_device > 1):
        return None
    uneven = signals.servers > 1 and not settled(policy, memory, signals.window_s, now)
    if memory.service is not None and uneven and signals.busy < _ALL_BUSY:
        return None
    rate = signals.busy * signals.instances / signals.execution
    if memory.service is not None and rate * signals.window_s < _ENOUGH * signals.instances:
        return None
    busy = 1 + max(0.0, on_device - 1) * signals.busy
    return Batches(signals.batch or 1.0, busy, signals.execution, rate * elapsed)


def _rows(signals: Signals, memory: Memory) -> float:
    """Of a request: rows that were executed, over requests that were answered."""
    if not (signals.completions and signals.execution and signals.busy and signals.instances and signals.batch):
        return memory.rows
    if signals.completions * signals.window_s < _REQUESTS:
        return memory.rows
    return max(1.0, signals.batch * signals.busy * signals.instances / signals.execution / signals.completions)


def _in_use(policy: Policy, memory: Memory, learnt: Service | None) -> Service | None:
    used, bounds = memory.service, policy.bounds
    if used is None or learnt is None:
        return learnt or used
    full = bounds.max_batch if memory.engine is None else memory.engine.slots
    return used if learnt.near(used, max(1.0, full), bounds.max_instances, _SAME) else learnt
