"""What came of a trace."""

from dataclasses import dataclass

import numpy as np

from argosy.autoscaling.decision import Allocation
from argosy.simulation.traces import Floats


@dataclass(frozen=True, slots=True)
class Change:
    """When what was asked for became what, and why."""

    at: float
    before: Allocation
    after: Allocation
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """How it went, a row for each look at the member: seconds of the trace; replicas asked for and ready, instances on
    a replica, requests that wait, arrivals per second, and the 99th percentile of the latency since the row before
    (NaN where nothing was answered).
    """

    at: Floats
    desired: Floats
    ready: Floats
    instances: Floats
    queued: Floats
    arrivals: Floats
    p99: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What came of one member. `violating`: the requests that took longer than the budget, answered or not; `gpu_s`:
    the seconds that its replicas had GPUs, starting and draining among them. `reason`: its autoscaler's last sentence.
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
        """Of the latency, in seconds; NaN without requests."""
        return float(np.percentile(self.latency, percent)) if len(self.latency) else float("nan")
