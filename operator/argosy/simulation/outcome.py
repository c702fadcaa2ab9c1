"""The outcome of a simulation."""

from dataclasses import dataclass

import numpy as np

from argosy.autoscaling.decision import Allocation
from argosy.simulation.traces import Floats


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a member's allocation: when, from what to what, and why."""

    at: float
    before: Allocation
    after: Allocation
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """A row for each decision on a member: seconds of the trace; replicas desired and ready, instances of a replica,
    queued requests, arrivals per second, and the 99th percentile of the latency since the row before (NaN if no request
    was answered).
    """

    at: Floats
    desired: Floats
    ready: Floats
    instances: Floats
    queued: Floats
    arrivals: Floats
    p99: Floats


@dataclass(frozen=True, slots=True, eq=False)
class SimulationOutcome:
    """The outcome of one member. `violating`: the requests that took longer than the budget, answered or not; `gpu_s`:
    the seconds that its replicas had GPUs, starting and draining ones included. `reason`: its autoscaler's last.
    """

    name: str
    requests: int
    violating: int
    latency: Floats
    gpu_s: float
    changes: tuple[Change, ...]
    timeline: Timeline
    reason: str

    @property
    def violations(self) -> float:
        """Share of the requests that took longer than the budget (0 to 1)."""
        return self.violating / self.requests if self.requests else 0.0

    @property
    def gpu_hours(self) -> float:
        """Hours that its replicas held GPUs."""
        return self.gpu_s / 3600

    def percentile(self, percent: float) -> float:
        """Return a percentile of the latency, in seconds; NaN without requests."""
        return float(np.percentile(self.latency, percent)) if len(self.latency) else float("nan")
