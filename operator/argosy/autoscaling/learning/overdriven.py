"""What the model of the queue is wrong about: replicas that were found not to hold what it says they hold.

That is so where latencies are over their target, queues grow, or what is known of executions says anew that more
replicas are needed, while no more requests come than there were replicas for. Such a rate is not asked of a replica
again for a while, and for twice as long each time that it was so again: so a load that stays is not answered by
replicas that go and come.
"""

from collections.abc import Mapping
from datetime import datetime
from math import inf

from msgspec import structs

from argosy.autoscaling.decision import Allocation
from argosy.autoscaling.learning.memory import Memory, Overdriven
from argosy.autoscaling.metrics.signals import Distribution, Signals
from argosy.autoscaling.policy import Policy

ALMOST = 0.9
"""Of a rate that was found to be too fast: a replica is not given more."""
_WAITS = 0.1
"""The share of a latency below which waiting is not what makes it long."""
_QUEUE_S = 10.0
_KEEPS_UP = 0.95
"""The share of arrivals that are answered, from which on a queue is not growing: it is one server's, of before."""
_FORGET_S = 1800.0
_OF_ALL = 0.2
"""Of a percentile's target, the mean from which on all servers are late: waits that fall off exponentially have 0.22 of
their 99th percentile for a mean. A queue that one server has makes a percentile late, and hardly the mean.
"""
OVER_S = 120.0
"""A latency over its target for shorter may be chance, or the end of a queue that one server alone had."""


def overdriven(policy: Policy, allocation: Allocation, signals: Signals, memory: Memory, now: datetime) -> Memory:
    """At which rate a target is missed though the model of the queue says that it is held."""
    demand, known = memory.demand, memory.overdriven
    if demand is None:
        return memory
    if known is not None and (now - known.at).total_seconds() > _FORGET_S * 2**known.times:
        memory = structs.replace(memory, overdriven=structs.replace(known, rate=inf))
    queue = memory.queued_at == now
    if not queue and not _over(policy, signals) and not _first_token_over(policy, signals, memory):
        return memory if memory.over_since is None else structs.replace(memory, over_since=None)
    if memory.over_since is None:
        memory = structs.replace(memory, over_since=now)
    if not _unexpected(policy, signals, memory, queue=queue, now=now):
        return memory
    return _found(allocation, max(demand.level, signals.completions or 0.0), memory, now)


def _unexpected(policy: Policy, signals: Signals, memory: Memory, *, queue: bool, now: datetime) -> bool:
    """It lasts, the present allocation is not new, and it was made for as many requests as come now."""
    since, demand = memory.over_since, memory.demand
    if since is None or demand is None:
        return False
    calm_from = since if queue or memory.drained_at is None else max(since, memory.drained_at)
    if (now - calm_from).total_seconds() < (_QUEUE_S if queue else OVER_S):
        return False
    if not _stood(memory, policy.startup_s + signals.window_s, now):
        return False
    foreseen = max((each.covered for each in memory.asked if each.at < since), default=0.0)
    if queue:
        grows = (signals.completions or 0.0) < _KEEPS_UP * (signals.arrivals or 0.0)
        return grows and foreseen >= demand.level * memory.rows > 0
    return True


def reconsidered(
    policy: Policy, allocation: Allocation, expected: float, wanted: int, window_s: float, memory: Memory, now: datetime
) -> Memory:
    """More replicas are `wanted`, for no more rows a second than these were there for: they do not hold them. Where it
    is known already what they do not hold, that is what asks for more.
    """
    demand, seen, known = memory.demand, memory.seen_from, memory.overdriven
    if known is not None and known.rate < inf:
        return memory
    if wanted <= allocation.replicas or demand is None or demand.level <= 0 or seen is None:
        return memory
    new_s = policy.startup_s + window_s
    queued = memory.drained_at is not None and (now - memory.drained_at).total_seconds() < new_s
    if queued or (now - seen).total_seconds() < new_s or not _stood(memory, new_s, now):
        return memory
    foreseen = max((each.covered for each in memory.asked if (now - each.at).total_seconds() > window_s), default=0.0)
    return _found(allocation, demand.level, memory, now) if foreseen >= expected else memory


def _found(allocation: Allocation, level: float, memory: Memory, now: datetime) -> Memory:
    known = memory.overdriven
    rate = level / max(1, allocation.replicas)
    if known is not None and known.instances == allocation.instances:
        rate = min(rate, known.rate)
    times = 0 if known is None else known.times + (known.rate == inf)
    return structs.replace(memory, overdriven=Overdriven(now, rate, allocation.instances, times))


def _stood(memory: Memory, seconds: float, now: datetime) -> bool:
    """Whether there is the same allocation for so long."""
    return memory.scaled is None or (now - memory.scaled.at).total_seconds() >= seconds


def waiting(signals: Signals) -> float:
    """Return requests in queues, those inside of engines among them."""
    return (signals.pending or 0.0) + (signals.engine_waiting or 0.0)


def waiting_too_long(policy: Policy, signals: Signals, rate: float, to_come: float = 0.0) -> float:
    """Of them, and of those that are about to, those beyond what may be there with every target held."""
    targets = policy.targets
    limits = (*targets.latency.values(), *targets.queue_delay.values(), *targets.first_token.values())
    return max(0.0, waiting(signals) + to_come - rate * min(limits, default=1.0))


def _over(policy: Policy, signals: Signals) -> bool:
    """Whether a percentile of latency is over its target, unless more replicas would not help: requests hardly wait."""
    alone, queue, latency = signals.execution or 0.0, signals.queue.mean, signals.latency.mean
    if queue is not None and latency is not None and queue < _WAITS * latency:
        return False
    return _is_missed(policy.targets.latency, signals.latency, alone)


def _first_token_over(policy: Policy, signals: Signals, memory: Memory) -> bool:
    """The same of an engine's first tokens, which wait for slots and for others' prompts."""
    engine, mean = memory.engine, signals.first_token.mean
    if engine is None or mean is None:
        return False
    felt = {name: target for name, target in policy.targets.first_token.items() if mean >= _OF_ALL * target}
    return _is_missed(felt, signals.first_token, engine.prompt_s)


def _is_missed(targets: Mapping[str, float], measured: Distribution, alone: float) -> bool:
    for name, target in targets.items():
        observed = measured.percentile(name)
        if observed is not None and observed > target > alone:
            return True
    return False
