"""What a decision learns of new signals, before it decides anything."""

from dataclasses import replace
from datetime import datetime, timedelta
from math import inf

from argosy.fleet.scaling.decision import Allocation
from argosy.fleet.scaling.demand import Demand
from argosy.fleet.scaling.memory import Memory, Overdriven
from argosy.fleet.scaling.policy import Policy
from argosy.fleet.scaling.service import Batches, Service
from argosy.fleet.scaling.variation import felt
from argosy.fleet.signals.signals import Signals

GAP_S = 60.0
"""Without anything new for longer, nobody knows what was meanwhile."""
_SAME = 0.05
"""Service times that differ by less are the same: what follows from them stays, too."""
_ROWS_FOLLOW = 0.2
_WAITS = 0.1
_QUEUE_S = 10.0
_FORGET_S = 1800.0
"""A rate that was too fast is tried again after so long, and after twice as long each time it was so again."""
_OVER_S = 120.0
"""A latency over its target for shorter may be chance, or the end of a queue that one server alone had."""


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
    batches = _batches(policy, signals, memory, elapsed, now)
    if batches is not None:
        as_foreseen = memory.experience.as_foreseen(batches, memory.service)
        experience = memory.experience.learnt(batches)
        another = len(experience.batches) < len(memory.experience.batches)
        memory = replace(memory, experience=experience, overdriven=None if another else memory.overdriven)
        if not as_foreseen:
            memory = replace(memory, service=_in_use(policy, memory.service, experience.service()))
    if policy.bounds.max_batch > 0 and settled(policy, memory, signals.window_s, now):
        memory = replace(memory, rows=memory.rows + _ROWS_FOLLOW * (_rows(signals, memory) - memory.rows))
    return memory


def _batches(policy: Policy, signals: Signals, memory: Memory, elapsed: float, now: datetime) -> Batches | None:
    """What was executed; nothing while some of it was so with other instances."""
    if not (signals.execution and signals.busy and signals.instances and signals.servers):
        return None
    on_device = signals.instances / (signals.servers * policy.bounds.devices)
    last = memory.scaled
    mixed = last is not None and (now - last.at).total_seconds() < signals.window_s
    if mixed and (policy.bounds.max_instances > 1 or on_device > 1):
        return None
    rate = signals.busy * signals.instances / signals.execution
    busy = 1 + max(0.0, on_device - 1) * signals.busy
    return Batches(signals.batch or 1.0, busy, signals.execution, rate * elapsed)


def _rows(signals: Signals, memory: Memory) -> float:
    """Of a request: rows that were executed, over requests that were answered."""
    if not (signals.completions and signals.execution and signals.busy and signals.instances and signals.batch):
        return memory.rows
    return max(1.0, signals.batch * signals.busy * signals.instances / signals.execution / signals.completions)


def _in_use(policy: Policy, used: Service | None, learnt: Service | None) -> Service | None:
    if used is None or learnt is None:
        return learnt or used
    bounds = policy.bounds
    full = max(1, bounds.max_batch)
    return used if learnt.near(used, full, bounds.max_instances, _SAME) else learnt


def _overdriven(policy: Policy, allocation: Allocation, signals: Signals, memory: Memory, now: datetime) -> Memory:
    """At which rate a target is missed though the model of the queue says that it is held."""
    demand, known = memory.demand, memory.overdriven
    if demand is None:
        return memory
    if known is not None and (now - known.at).total_seconds() > _FORGET_S * 2**known.times:
        memory = replace(memory, overdriven=replace(known, rate=inf))
    queue = memory.queued_at == now
    if not queue and not over(policy, signals):
        return replace(memory, over_since=None)
    memory = replace(memory, over_since=memory.over_since or now)
    if not _unexpected(policy, signals, memory, queue=queue, now=now):
        return memory
    rate = demand.level / max(1, allocation.replicas * allocation.instances)
    times = 0 if known is None else known.times + (known.rate == inf)
    return replace(memory, overdriven=Overdriven(now, min(rate, known.rate if known else rate), times))


def _unexpected(policy: Policy, signals: Signals, memory: Memory, *, queue: bool, now: datetime) -> bool:
    """It lasts, the present allocation is not new, and it was made for as many requests as come now."""
    since, demand, last = memory.over_since, memory.demand, memory.scaled
    if since is None or demand is None:
        return False
    calm_from = since if queue or memory.queued_at is None else max(since, memory.queued_at)
    if (now - calm_from).total_seconds() < (_QUEUE_S if queue else _OVER_S):
        return False
    if last is not None and (now - last.at).total_seconds() < policy.startup_s + signals.window_s:
        return False
    foreseen = max((each.rate for each in memory.asked if each.at < since), default=0.0)
    if queue:
        grows = (signals.completions or 0.0) < (signals.arrivals or 0.0)
        return grows and foreseen >= demand.level * memory.rows > 0
    return True


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
