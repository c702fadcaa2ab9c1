"""What a decision learns of new signals, before it decides anything."""

from dataclasses import replace
from datetime import datetime, timedelta

from argosy.fleet.scaling.decision import Allocation
from argosy.fleet.scaling.demand import Demand
from argosy.fleet.scaling.memory import Memory
from argosy.fleet.scaling.policy import Policy
from argosy.fleet.scaling.service import Service
from argosy.fleet.scaling.variation import felt
from argosy.fleet.signals.signals import Signals

GAP_S = 60.0
"""Without anything new for longer, nobody knows what was meanwhile."""
_SAME = 0.05
"""Service times that differ by less are the same: what follows from them stays, too."""
_ROWS_FOLLOW = 0.2
_WAITS = 0.1
_OVER_S = 30.0
"""A latency over its target for shorter may be chance, or the end of a queue."""


def learn(policy: Policy, allocation: Allocation, signals: Signals, memory: Memory, now: datetime) -> Memory:
    """The memory after usable signals; those that it had already teach nothing."""
    before = memory.measured_at
    if before is not None and signals.at <= before:
        return replace(memory, seen_from=memory.seen_from or now)
    elapsed = (signals.at - before).total_seconds() if before is not None else 0.0
    gap = before is None or elapsed > GAP_S
    memory = replace(
        memory,
        measured_at=signals.at,
        seen_from=now if gap or memory.seen_from is None else memory.seen_from,
        demand=_demand(None if gap else memory.demand, signals, elapsed),
        active_at=now if memory.active_at is None or _active(signals) else memory.active_at,
    )
    if memory.demand is not None and waiting_too_long(policy, signals, memory.demand.level) > 0:
        memory = replace(memory, queued_at=now)
    memory = _served(policy, signals, memory, signals.window_s if gap else elapsed, now)
    if settled(policy, memory, signals.window_s, now):
        memory = felt(policy, allocation, signals, memory)
    return _overdriven(policy, allocation, signals, memory, now)


def missed(memory: Memory, now: datetime) -> Memory:
    """Without usable signals: what is known of what was asked for has a hole, once that lasts."""
    last = memory.at or now
    measured = memory.measured_at or last
    if max(now - last, now - measured) > timedelta(seconds=GAP_S):
        return replace(memory, seen_from=None, over_since=None)
    return memory


def settled(policy: Policy, memory: Memory, window_s: float, now: datetime) -> bool:
    """Whether what is measured is of the present allocation, and no queue of before is left in it."""
    started = memory.scaled is None or now - memory.scaled.at >= timedelta(seconds=policy.startup_s + window_s)
    return started and (memory.queued_at is None or now - memory.queued_at > timedelta(seconds=window_s))


def _demand(before: Demand | None, signals: Signals, elapsed: float) -> Demand | None:
    if signals.arrivals is None:
        return before
    if before is None:
        return Demand.of(signals.arrivals)
    newest = signals.arrivals if signals.recent is None else signals.recent
    return before.after(newest, elapsed, counted_s(signals))


def counted_s(signals: Signals) -> float:
    """The seconds over which the newest arrivals were counted."""
    return max(1.0, signals.window_s if signals.recent is None else signals.recent_s)


def _active(signals: Signals) -> bool:
    """What nobody measured may have been a request."""
    return signals.arrivals is None or signals.arrivals > 0 or bool(signals.pending) or bool(signals.running)


def _served(policy: Policy, signals: Signals, memory: Memory, elapsed: float, now: datetime) -> Memory:
    """Service times, and the rows of a request."""
    if not (signals.execution and signals.busy and signals.instances and signals.servers):
        return memory
    batch = signals.batch or 1.0
    rate = signals.busy * signals.instances / signals.execution
    on_device = signals.instances / (signals.servers * policy.bounds.devices)
    busy = 1 + max(0.0, on_device - 1) * signals.busy
    experience = memory.experience.learnt(batch, signals.execution, busy, rate * elapsed)
    rows = memory.rows
    steady = settled(policy, memory, signals.window_s, now)
    if steady and signals.completions and policy.bounds.max_batch > 0:
        measured = max(1.0, batch * rate / signals.completions)
        rows += _ROWS_FOLLOW * (measured - rows)
    service = _in_use(policy, memory.service, experience.service())
    too_fast = memory.too_fast if service is memory.service else None
    return replace(memory, experience=experience, service=service, rows=rows, too_fast=too_fast)


def _in_use(policy: Policy, used: Service | None, learnt: Service | None) -> Service | None:
    if used is None or learnt is None:
        return learnt or used
    bounds = policy.bounds
    full = max(1, bounds.max_batch)
    return used if learnt.near(used, full, bounds.max_instances, _SAME) else learnt


def _overdriven(policy: Policy, allocation: Allocation, signals: Signals, memory: Memory, now: datetime) -> Memory:
    """Whether a latency is over its target though the model of the queue says that it is held: at which rate."""
    if memory.queued_at == now or not over(policy, signals):
        return replace(memory, over_since=None, too_fast=_still_too_fast(allocation, memory))
    since = memory.over_since or now
    memory = replace(memory, over_since=since)
    long = now - since >= timedelta(seconds=_OVER_S + signals.window_s)
    if not long or memory.demand is None or not settled(policy, memory, signals.window_s, now):
        return memory
    rate = memory.demand.level / max(1, allocation.replicas)
    return replace(memory, too_fast=min(rate, memory.too_fast or rate))


def waiting_too_long(policy: Policy, signals: Signals, rate: float) -> float:
    """Requests in queues beyond those that may be there with every target held."""
    longest = min((*policy.targets.latency.values(), *policy.targets.queue_delay.values()), default=1.0)
    return max(0.0, (signals.pending or 0.0) - rate * longest)


def over(policy: Policy, signals: Signals) -> str:
    """The latency percentile that is over its target; none if all are held, or more replicas would not help: requests
    hardly wait.
    """
    alone, queue, latency = signals.execution or 0.0, signals.queue.mean, signals.latency.mean
    if queue is not None and latency is not None and queue < _WAITS * latency:
        return ""
    for name, target in policy.targets.latency.items():
        observed = signals.latency.percentile(name)
        if observed is not None and observed > target > alone:
            return name
    return ""


def _still_too_fast(allocation: Allocation, memory: Memory) -> float | None:
    """What was too fast is not, once more than that is held."""
    if memory.too_fast is None or memory.demand is None:
        return memory.too_fast
    rate = memory.demand.level / max(1, allocation.replicas)
    return None if rate > 1.1 * memory.too_fast else memory.too_fast
