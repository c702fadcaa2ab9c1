"""Durations and tokens counted in buckets, so that percentiles of many servers can be computed.

All durations of all models have the same bounds, because only equal buckets can be added up. Between 1 ms and 10 s,
where latency budgets of inference lie, a bound is at most twice the one below it, which bounds a percentile's error.
The same holds for tokens.
"""

from bisect import bisect_left
from typing import Final

_BOUNDS_MS: Final = (
    *(0.1, 0.2, 0.5, 1, 2, 3, 5, 7.5, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750),
    *(1000, 1500, 2000, 3000, 5000, 7500, 10_000, 20_000, 30_000, 60_000),
)
DURATION_BOUNDS: Final[list[int]] = [round(bound * 1_000_000) for bound in _BOUNDS_MS]
"""Upper bounds of the buckets in nanoseconds, inclusive; a last bucket counts what is above all of them."""

TOKEN_BOUNDS: Final[list[int]] = [1 << power for power in range(19)]
"""Upper bounds of the buckets of tokens of a request, inclusive: 1 to 262144; a last bucket counts the others."""


class DurationHistogram:
    """How many durations fell into each bucket, and their sum. All in nanoseconds."""

    __slots__ = ("bounds", "counts", "ns")

    def __init__(self, bounds: list[int] = DURATION_BOUNDS) -> None:
        self.bounds = bounds
        self.counts: list[int] = [0] * (len(bounds) + 1)
        self.ns = 0

    def add(self, ns: int) -> None:
        """Count one duration."""
        self.counts[bisect_left(self.bounds, ns)] += 1
        self.ns += ns

    def with_all(self, other: "DurationHistogram") -> "DurationHistogram":
        """Return the sum of both, to be read only; the bounds have to be the same."""
        if not any(other.counts):
            return self
        both = DurationHistogram(self.bounds)
        both.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        both.ns = self.ns + other.ns
        return both

    def counts_in(self, bounds: list[int]) -> list[int]:
        """Return the counts in fewer buckets; each of their bounds has to be a bound of this histogram."""
        counts = [0] * (len(bounds) + 1)
        for bound, count in zip(self.bounds, self.counts, strict=False):
            counts[bisect_left(bounds, bound)] += count
        counts[-1] += self.counts[-1]
        return counts


class TokenHistogram:
    """How many requests had up to so many tokens, and the sum of all tokens."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts: list[int] = [0] * (len(TOKEN_BOUNDS) + 1)
        self.total = 0

    def add(self, tokens: int) -> None:
        """Count one request."""
        self.counts[bisect_left(TOKEN_BOUNDS, tokens)] += 1
        self.total += tokens
