"""How unevenly requests come to a replica, found by what latencies are beside those that are foreseen.

Replicas that are taken in turn see evener arrivals than replicas taken by chance, and clients that send all at once
uneven ones. Nobody measures that; but of all that a latency follows from it is what is not measured.
"""

from math import exp, inf, log

from msgspec import structs

from argosy.autoscaling.capacity.queueing import Replica
from argosy.autoscaling.capacity.settings import SHARES
from argosy.autoscaling.decision import Allocation
from argosy.autoscaling.learning.memory import Memory
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.policy import Policy

LEAST, MOST = 0.5, 4.0
_STEP = 0.5
"""How far one look goes, as a share of what the two latencies differ by."""
_SAME = 0.2
"""What is reckoned with stays, until what is found differs by more."""
_LOADED = 0.35
"""Below this share of what a replica can do hardly anybody waits, and latencies tell nothing of arrivals."""
_ENOUGH = 100.0
"""Requests, of which a percentile's own must be at least one."""


def felt(policy: Policy, allocation: Allocation, signals: Signals, memory: Memory) -> Memory:
    """With what latencies say, which are those of the present allocation in its steady state."""
    service, demand = memory.service, memory.demand
    if service is None or demand is None or not signals.servers or not signals.completions:
        return memory
    found = _observed(policy, signals)
    if found is None:
        return memory
    share, observed = found
    bounds = policy.bounds
    instances = max(1, round((signals.instances or 1.0) / (signals.servers * bounds.devices)))
    batch, window = largest_batch(policy, allocation), allocation.window_s or 0.0
    replica = Replica(service, instances, bounds.devices, batch, window, memory.varies)
    rate = demand.level * memory.rows / signals.servers
    foreseen = replica.latency(rate, share) if replica.load(rate) >= _LOADED else inf
    if foreseen == inf:
        return memory
    varies = memory.varies * exp(_STEP * (log(observed) - log(foreseen)))
    varies = min(max(varies, LEAST), MOST)
    far = abs(varies - memory.variation) > _SAME * memory.variation
    return structs.replace(memory, varies=varies, variation=varies if far else memory.variation)


def _observed(policy: Policy, signals: Signals) -> tuple[float, float] | None:
    """Of the percentiles that are targets the highest of which enough was measured: its share, and its seconds."""
    requests = (signals.completions or 0.0) * signals.window_s
    for name in sorted(policy.targets.latency, key=lambda each: SHARES[each], reverse=True):
        seconds = signals.latency.percentile(name)
        if seconds and requests >= max(_ENOUGH, 1 / (1 - SHARES[name])):
            return SHARES[name], seconds
    return None


def largest_batch(policy: Policy, allocation: Allocation) -> int:
    """Rows; 1 without batching."""
    most = policy.bounds.max_batch
    return max(1, min(allocation.max_batch or most, most))
