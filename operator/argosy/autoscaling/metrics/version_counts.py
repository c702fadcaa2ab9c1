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
_FEWEST_READINGS = 2
"""Of which a variance follows."""


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
class Durations:
    """Durations of requests as a histogram, and how they vary between readings.

    `squares`: for each bound, the sum over `readings` of the squared number of durations above it, by all durations of
    the reading.
    """

    histogram: Histogram
    squares: tuple[float, ...]
    readings: int = 1

    @classmethod
    def read(cls, histogram: Histogram) -> "Durations | None":
        """Return the durations of one reading; None if there are none."""
        total = histogram.counts[-1]
        if not total:
            return None
        return cls(histogram, tuple((total - count) ** 2 / total for count in histogram.counts))

    def __add__(self, other: "Durations") -> "Durations":
        """Return the durations of both, at the bounds that both have."""
        histogram = self.histogram + other.histogram
        squares = (dict(zip(one.histogram.bounds, one.squares, strict=True)) for one in (self, other))
        one, two = squares
        return Durations(
            histogram, tuple(one[bound] + two[bound] for bound in histogram.bounds), self.readings + other.readings
        )

    @property
    def count(self) -> float:
        """The number of durations."""
        return self.histogram.counts[-1]

    def above(self, index: int) -> float:
        """Return the number of durations above a bound, by its index."""
        return self.count - self.histogram.counts[index]

    def design_effect(self, index: int) -> float:
        """Return how many times the variance of the number above a bound is that of independent durations.

        It is more than 1 where slow requests come together, as in one batch or behind one queue.
        """
        above, count = self.above(index), self.count
        if self.readings < _FEWEST_READINGS or not 0 < above < count:
            return 1.0
        variance = (self.squares[index] - above * above / count) / (self.readings - 1)
        return max(1.0, variance / (above / count * (1 - above / count)))


@dataclass(frozen=True, slots=True)
class VersionSignals:
    """What all servers of one version counted, in `seconds` of all of them together.

    Requests that were `answered`, of which `errors` got an error that the model returned, and those that failed by
    reason. `instances_lost` while they served, and `failed_loads`. The `latency` of requests that succeeded, and its
    part in the `queue`; None where there is none. `executions` by the largest size of their batches;
    `queue_delay_s`: the longest time that a batch waits for more requests. `routed`: requests without a version that it
    was sent.
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

    @property
    def failed(self) -> float:
        """Requests that the version failed."""
        return self.errors + sum(self.failures.get(reason, 0.0) for reason in OWN_FAILURES)

    @property
    def requests(self) -> float:
        """Requests that the version answered or failed."""
        return max(self.answered, self.errors) + sum(self.failures.get(reason, 0.0) for reason in OWN_FAILURES)

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
            self.routed + other.routed,
        )


def _both(one: Durations | None, other: Durations | None) -> Durations | None:
    if one is None or other is None:
        return one or other
    return one + other
