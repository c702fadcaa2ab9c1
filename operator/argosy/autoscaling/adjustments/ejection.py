"""Ejection, as in Envoy: servers whose queues exceed the targets are sent no requests for a while, as long as others
have capacity.

A load balancer distributes requests evenly. So a queue that grew before new replicas were ready stays on its server,
and delays the new requests that are sent there.
"""

from argosy.autoscaling.capacity.options import limits_of
from argosy.autoscaling.capacity.queueing import Replica
from argosy.autoscaling.decision import NO_EJECTION, Ejection
from argosy.autoscaling.recommend import ceiling
from argosy.autoscaling.settings import READMITTED
from argosy.autoscaling.stage import Stage


def ejection_of(stage: Stage) -> Ejection:
    """Return the servers whose queues are too long, and the number of servers that the present load needs."""
    waiting = {queue.server: queue.waiting for queue in stage.signals.queues if queue.waiting} if stage.signals else {}
    if not waiting or not stage.memory.forecast.readings:
        return NO_EJECTION
    longest_s, rate = _limits(stage)
    if longest_s <= 0 or rate <= 0:
        return NO_EJECTION
    ejected = stage.memory.ejection.servers
    servers = tuple(
        server
        for server in sorted(waiting, key=lambda server: (-waiting[server], server))
        if waiting[server] / rate > longest_s * (READMITTED if server in ejected else 1.0)
    )
    return Ejection(servers, max(1, ceiling(stage.memory.forecast.level / rate))) if servers else NO_EJECTION


def _limits(stage: Stage) -> tuple[float, float]:
    """Return the seconds that a request may wait and still meet every target, and the requests per second that a server
    completes with full batches.
    """
    estimates, targets, batch = stage.memory.estimates, stage.policy.targets, stage.largest_batch
    if estimates.service is None:
        return 0.0, 0.0
    if estimates.engine is not None:
        return min(targets.first_token.values(), default=0.0), stage.memory.holds or 0.0
    executed_s = estimates.service.seconds(batch)
    limits = limits_of(targets, estimates.service)
    waits = [limit.seconds if limit.waiting else limit.seconds - executed_s for limit in limits]
    replica = Replica(estimates.service, stage.allocation.instances, stage.policy.bounds.devices, batch)
    return max(0.0, min(waits, default=0.0)), replica.most / estimates.rows
