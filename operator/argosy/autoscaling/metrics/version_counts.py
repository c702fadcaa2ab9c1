"""What all servers of one version of a member counted in some time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from .histograms import Histogram
from .names import Failure

OWN_FAILURES: Final = (Failure.BACKEND, Failure.OUT_OF_MEMORY)
"""Failures of requests that the version caused. Clients cause CANCELED and INVALID ones, load REJECTED and TIMED_OUT
ones, and the server the OTHER ones, as while a model is unloaded.
"""


@dataclass(frozen=True, slots=True)
class Executions:
    """Executions of batches of similar size: how many, and their rows and seconds together."""

    count: float = 0.0
    rows: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: "Executions") -> "Executions":
        """Return the executions of both."""
        return Executions(self.count + other.count, self.rows + other.rows, self.seconds + other.seconds)


@dataclass(frozen=True, slots=True)
class VersionSignals:
    """What all servers of one version counted, in `seconds` of all of them together.

    Requests that were `answered`, of which `errors` got an error that the model returned, and those that failed by
    reason. `instances_lost` while they served, and `failed_loads`. Histograms of `latency` and, of that, `queue`, of
    requests that succeeded; None where it is not measured. `executions` by the largest size of their batches;
    `queue_delay_s`: the longest time that a batch waits for more requests.
    """

    seconds: float = 0.0
    answered: float = 0.0
    errors: float = 0.0
    failures: Mapping[Failure, float] = field(default_factory=dict)
    instances_lost: float = 0.0
    failed_loads: float = 0.0
    latency: Histogram | None = None
    queue: Histogram | None = None
    executions: Mapping[float, Executions] = field(default_factory=dict)
    queue_delay_s: float = 0.0

    @property
    def failed(self) -> float:
        """Requests that the version failed."""
        return self.errors + sum(self.failures.get(reason, 0.0) for reason in OWN_FAILURES)

    @property
    def requests(self) -> float:
        """Requests that the version answered or failed."""
        return self.answered + sum(self.failures.get(reason, 0.0) for reason in OWN_FAILURES)

    def __add__(self, other: "VersionSignals") -> "VersionSignals":
        """Return what both counted."""
        reasons, sizes = self.failures.keys() | other.failures.keys(), self.executions.keys() | other.executions.keys()
        none = Executions()
        return VersionSignals(
            self.seconds + other.seconds,
            self.answered + other.answered,
            self.errors + other.errors,
            {reason: self.failures.get(reason, 0.0) + other.failures.get(reason, 0.0) for reason in reasons},
            self.instances_lost + other.instances_lost,
            self.failed_loads + other.failed_loads,
            _both(self.latency, other.latency),
            _both(self.queue, other.queue),
            {size: self.executions.get(size, none) + other.executions.get(size, none) for size in sizes},
            max(self.queue_delay_s, other.queue_delay_s),
        )


def _both(one: Histogram | None, other: Histogram | None) -> Histogram | None:
    if one is None or other is None:
        return one or other
    return one + other
