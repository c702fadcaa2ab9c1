"""What is measured against what a model says: replicas that hold a load, though a model of the queue asks for more."""

from collections.abc import Iterator
from datetime import datetime

from argosy.autoscaling.capacity.queueing import Replica
from argosy.autoscaling.decision import Allocation
from argosy.autoscaling.learning.learn import has_stood
from argosy.autoscaling.learning.memory import Memory
from argosy.autoscaling.learning.overdriven import OVER_S
from argosy.autoscaling.learning.variation import largest_batch
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.wanted.ladder import engine_of, limited
from argosy.autoscaling.wanted.load import Load

_LONG_S = 600.0
"""A load that has been the same for so long is held by what there is for it, or it is measured that it is not."""


def is_held(
    policy: Policy, allocation: Allocation, signals: Signals, memory: Memory, load: Load, now: datetime
) -> bool:
    """Return whether the load has been the same for long, and the present replicas hold every target, as measured."""
    steady = memory.steady
    if steady is None or memory.steady_s(now) < _LONG_S or load.waiting > 0 or signals.unmeasured:
        return False
    if not steady.is_about(load.rate / load.rows, load.noise / load.rows):
        return False
    stood = has_stood(policy, memory, signals.window_s, now)
    return stood and _in_time(policy, signals, memory, now) and _not_too_busy(policy, allocation, signals, memory, load)


def _in_time(policy: Policy, signals: Signals, memory: Memory, now: datetime) -> bool:
    """Whether all that has a limit is measured, and within it; latencies may be over theirs for a moment."""
    if memory.over_since is not None and (now - memory.over_since).total_seconds() >= OVER_S:
        return False
    felt, waits = list(_felt(policy, signals, memory)), list(_waits(policy, signals))
    waited = all(observed is not None and observed <= limit for observed, limit in waits)
    return bool(felt or waits) and waited and all(observed is not None for observed in felt)


def _waits(policy: Policy, signals: Signals) -> Iterator[tuple[float | None, float]]:
    """What is measured of waiting, each with its limit."""
    targets, queue, latency = policy.targets, signals.queue, signals.latency
    yield from ((queue.percentile(name), limit) for name, limit in targets.queue_delay.items())
    if targets.queue_share is not None:
        yield queue.mean / latency.mean if queue.mean is not None and latency.mean else None, targets.queue_share


def _felt(policy: Policy, signals: Signals, memory: Memory) -> Iterator[float | None]:
    """The percentiles that replicas can hold within their targets, as measured."""
    latency = limited(policy, signals, memory)
    return (latency.measured.percentile(name) for name in latency.within_reach)


def _not_too_busy(policy: Policy, allocation: Allocation, signals: Signals, memory: Memory, load: Load) -> bool:
    """Whether no more of what they can do is in use than may be."""
    high, replicas, service, engine = policy.targets.busy_high, allocation.replicas, memory.service, engine_of(memory)
    if engine is not None:
        return (signals.engine_running or 0.0) <= high * engine.slots * replicas
    if service is None:
        return False
    replica = Replica(service, allocation.instances, policy.bounds.devices, largest_batch(policy, allocation))
    return load.rate <= high * replica.most * replicas
