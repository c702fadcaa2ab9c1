"""Which servers are sent nothing for a while: those whose queue alone is longer than targets allow, while others have
room. Envoy calls it ejection.

Whatever balances requests sends every server as many as any other. So a queue that grew before new replicas were ready
stays where it is, gets its share of what comes, and makes that late, too, however many replicas there are by then.
"""

from argosy.autoscaling.capacity.queueing import Replica
from argosy.autoscaling.decision import NOBODY, Allocation, Ejection
from argosy.autoscaling.learning.memory import Memory
from argosy.autoscaling.learning.variation import largest_batch
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.wanted.load import may_wait
from argosy.autoscaling.wanted.needs import whole

_LONG, _SHORT = 1.0, 0.4
"""Of what a request may wait: the queue by which a server is ejected, and the one from which on it is not any more."""


def ejection_of(policy: Policy, allocation: Allocation, signals: Signals, memory: Memory) -> Ejection:
    """Return the servers whose queues are too long, and how many of all what comes now cannot do without."""
    queues = sorted((each for each in signals.queues if each.waiting), key=lambda each: (-each.waiting, each.server))
    if not queues or memory.demand is None:
        return NOBODY
    longest, rate = may_wait(policy, allocation, memory), _rate(policy, allocation, memory)
    if longest <= 0 or rate <= 0:
        return NOBODY
    servers = tuple(
        each.server
        for each in queues
        if each.waiting / rate > (_SHORT if each.server in memory.ejection.servers else _LONG) * longest
    )
    return Ejection(servers, max(1, whole(memory.demand.level / rate))) if servers else NOBODY


def _rate(policy: Policy, allocation: Allocation, memory: Memory) -> float:
    """Requests a second that a server works off: with full batches, since requests wait."""
    if memory.service is None:
        return 0.0
    if memory.engine is not None:
        return memory.holds or 0.0
    batch = largest_batch(policy, allocation)
    replica = Replica(memory.service, allocation.instances, policy.bounds.devices, batch)
    return replica.most / memory.rows
