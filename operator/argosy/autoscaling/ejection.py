"""Which servers are sent nothing for a while: those whose queue alone is longer than targets allow, while others have
room. Envoy calls it ejection.

A load balancer sends every server as many requests as any other. So a queue that grew before new replicas were ready
stays where it is, gets its share of new requests and delays them, too, however many replicas there are by then.
"""

from argosy.autoscaling.capacity.options import Limits
from argosy.autoscaling.capacity.queueing import Replica
from argosy.autoscaling.decision import NO_EJECTION, Allocation, Ejection
from argosy.autoscaling.load import largest_batch
from argosy.autoscaling.memory import Memory
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.recommend import ceiling
from argosy.autoscaling.settings import READMITTED


def ejection_of(policy: Policy, allocation: Allocation, signals: Signals, memory: Memory) -> Ejection:
    """Return the servers whose queues are too long, and how many of all the present load cannot do without."""
    queues = sorted((queue for queue in signals.queues if queue.waiting), key=lambda one: (-one.waiting, one.server))
    if not queues or not memory.forecast.readings:
        return NO_EJECTION
    longest, rate = may_wait(policy, allocation, memory), _rate(policy, allocation, memory)
    if longest <= 0 or rate <= 0:
        return NO_EJECTION
    servers = tuple(
        queue.server
        for queue in queues
        if queue.waiting / rate > (READMITTED if queue.server in memory.ejection.servers else 1.0) * longest
    )
    return Ejection(servers, max(1, ceiling(memory.forecast.level / rate))) if servers else NO_EJECTION


def may_wait(policy: Policy, allocation: Allocation, memory: Memory) -> float:
    """Return seconds that a request may wait, for a slot in a batch or in an engine, and yet be in time."""
    service = memory.estimates.service
    if service is None:
        return 0.0
    if memory.estimates.engine is not None:
        return min(policy.targets.first_token.values(), default=0.0)
    limits = Limits.of(policy.targets, service)
    executed = service.seconds(largest_batch(policy, allocation))
    waits = [limit for _, limit in limits.waiting] + [limit - executed for _, limit in limits.latency]
    return max(0.0, min(waits, default=0.0))


def _rate(policy: Policy, allocation: Allocation, memory: Memory) -> float:
    """Return requests a second that a server works off: with full batches, since requests wait."""
    estimates = memory.estimates
    if estimates.service is None:
        return 0.0
    if estimates.engine is not None:
        return memory.holds or 0.0
    batch = largest_batch(policy, allocation)
    return Replica(estimates.service, allocation.instances, policy.bounds.devices, batch).most / estimates.rows
