"""What all servers of one version of a member counted in some time."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from .durations import Durations, joined
from .names import Failure
from .shadow_counts import ShadowSignals, together
from .unanswered import UnansweredRequests

OWN_FAILURES: Final = (Failure.BACKEND, Failure.OUT_OF_MEMORY)
"""Failures of requests that the version caused. Clients cause CANCELED and INVALID ones, load REJECTED and TIMED_OUT
ones, and the server the OTHER ones, as while a model is unloaded.
"""
_FEWEST_READINGS = 2
"""Of which a variance follows."""
_FEW_READINGS: Final = 5
"""With fewer, the variance is uncertain, and the failures of one reading count as one."""


@dataclass(frozen=True, slots=True)
class Executions:
    """Executions of batches of similar size: how many, and their rows and seconds together.

    `squares`: the sum over `readings` of the squared seconds of each by its executions, from which their variance
    follows.
    """

    count: float = 0.0
    rows: float = 0.0
    seconds: float = 0.0
    squares: float = 0.0
    readings: int = 0

    @classmethod
    def read(cls, count: float, rows: float, seconds: float) -> "Executions":
        """Return the executions of one reading."""
        return cls(count, rows, seconds, seconds * seconds / count, 1)

    def __add__(self, other: "Executions") -> "Executions":
        """Return the executions of both."""
        return Executions(
            self.count + other.count,
            self.rows + other.rows,
            self.seconds + other.seconds,
            self.squares + other.squares,
            self.readings + other.readings,
        )

    @property
    def variance(self) -> float | None:
        """The variance of the seconds of an execution, between readings; None of one reading."""
        if self.readings < _FEWEST_READINGS:
            return None
        return max(0.0, self.squares - self.seconds * self.seconds / self.count) / (self.readings - 1)


@dataclass(frozen=True, slots=True)
class VersionSignals:
    """What all servers of one version counted, in `seconds` of all of them together.

    Requests that were `answered`, of which `errors` got an error that the model returned, and those that failed by
    reason. `instances_lost` while they served, and `failed_loads`. The `latency` of requests that succeeded, and its
    part in the `queue`; None where there is none. `executions` by the largest size of their batches;
    `queue_delay_s`: the longest time that a batch waits for more requests. `routed`: requests without a version that it
    was sent, of which `by_weight` those whose version neither a key nor a sequence decided. `shadow`: of requests that
    were mirrored to it, which are none of the others; None if there are none.
    `failed_squares`: the sum over `readings` with requests of the squared number of failed ones by all. `unanswered`:
    requests that were canceled or timed out, of all.
    """

    seconds: float = 0.0
    answered: float = 0.0
    errors: float = 0.0
    failures: Mapping[Failure, float] = field(default_factory=dict)
    instances_lost: float = 0.0
    failed_loads: float = 0.0
    latency: Durations | None = None
    queue: Durations | None = None
    executions: Mapping[float, Executions] = field(default_factory=dict)
    queue_delay_s: float = 0.0
    routed: float = 0.0
    shadow: ShadowSignals | None = None
    failed_squares: float = 0.0
    readings: int = 0
    unanswered: UnansweredRequests = field(default_factory=UnansweredRequests)
    by_weight: float = 0.0

    @property
    def failed(self) -> float:
        """Requests that the version failed."""
        return self.errors + sum(self.failures.get(reason, 0.0) for reason in OWN_FAILURES)

    @property
    def requests(self) -> float:
        """Requests that the version answered or failed."""
        return max(self.answered, self.errors) + sum(self.failures.get(reason, 0.0) for reason in OWN_FAILURES)

    @property
    def failure_design_effect(self) -> float:
        """How many times the variance of the number of failed requests is that of independent ones.

        It is more than 1 where requests fail together, as all of one batch do.
        """
        failed, requests = self.failed, self.requests
        least = max(1.0, failed / self.readings) if 0 < self.readings < _FEW_READINGS else 1.0
        if self.readings < _FEWEST_READINGS or not 0 < failed < requests:
            return least
        variance = (self.failed_squares - failed * failed / requests) / (self.readings - 1)
        return max(least, variance / (failed / requests * (1 - failed / requests)))

    def as_reading(self) -> "VersionSignals":
        """Return the signals as those of one reading, whose failures came together."""
        requests = self.requests
        silent = sum(self.failures.get(reason, 0.0) for reason in (Failure.CANCELED, Failure.TIMED_OUT))
        reading = replace(self, unanswered=UnansweredRequests.read(silent, requests + silent))
        return replace(reading, failed_squares=self.failed**2 / requests, readings=1) if requests else reading

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
            joined(self.latency, other.latency),
            joined(self.queue, other.queue),
            {size: self.executions.get(size, none) + other.executions.get(size, none) for size in sizes},
            max(self.queue_delay_s, other.queue_delay_s),
            self.routed + other.routed,
            together(self.shadow, other.shadow),
            self.failed_squares + other.failed_squares,
            self.readings + other.readings,
            self.unanswered + other.unanswered,
            self.by_weight + other.by_weight,
        )
