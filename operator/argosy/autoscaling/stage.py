"""The inputs of a decision on one model or ensemble: policy, allocation, measurements and memory."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

from msgspec import Struct

from argosy.autoscaling.capacity.engine import Engine
from argosy.autoscaling.decision import Allocation, SpareCapacity
from argosy.autoscaling.memory import NEVER, Memory
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.policy import Policy

ANYWHERE = SpareCapacity()
NO_QUERIES: Mapping[str, float] = MappingProxyType({})


class Stage(Struct, frozen=True):
    """The inputs of a decision. `signals` are None where they are missing or stale; `error` has the reason. `queued`:
    requests that the activator holds while no server has it. `queries`: the available values of the queries, by name.

    For a model of an ensemble the caller sets the first four fields. Of its policy the instances, the window and the
    targets other than latency apply; its replicas are the ensemble's, and `spare` counts its own instances.
    """

    policy: Policy
    allocation: Allocation
    signals: Signals | None
    spare: SpareCapacity = ANYWHERE
    memory: Memory = Memory()
    now: datetime = NEVER
    queued: int = 0
    queries: Mapping[str, float] = NO_QUERIES
    error: str = ""

    @property
    def engine(self) -> Engine | None:
        """The engine that batches by itself; None before enough of it was measured."""
        estimates = self.memory.estimates
        return estimates.engine.engine(estimates.service) if estimates.engine is not None else None

    @property
    def largest_batch(self) -> int:
        """The most rows of a batch; 1 without batching."""
        most = self.policy.bounds.max_batch
        return max(1, min(self.allocation.max_batch or most, most))

    @property
    def most_instances(self) -> int:
        """The most instances on one device that the spec, GPU memory and spare capacity allow."""
        limits = [self.policy.bounds.max_instances]
        if self.memory.lowering is not None and self.memory.lowering.most_instances is not None:
            limits.append(self.memory.lowering.most_instances)
        if self.spare.instances is not None:
            limits.append(self.allocation.instances + self.spare.instances)
        return max(self.policy.bounds.min_instances, min(limits))
