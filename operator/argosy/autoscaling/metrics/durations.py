"""Durations of requests as histograms, and how they vary between readings."""

from dataclasses import dataclass

from .histograms import Histogram

_FEWEST_READINGS = 2
"""Of which a variance follows."""


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


def joined(one: Durations | None, other: Durations | None) -> Durations | None:
    """Return both together; one of them if there is no other."""
    if one is None or other is None:
        return one or other
    return one + other
