"""Crossovers as the traffic of a routed model shows them: how fast its variants are with the same requests in flight.

Each request that a variant answers while no other one is busy counts at its level, the mean number of requests in
flight at the variant meanwhile. Two variants are compared at the levels that both have had: around the crossover, where
the hysteresis lets either answer. So this says whether a declared crossover fits, not what the curves are elsewhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, log2, sqrt
from typing import Final

FEWEST_REQUESTS: Final = 30
"""Requests of each variant at a level, without which the level is not compared."""
_STEPS: Final = 4
"""Levels for each doubling of the requests in flight."""
_HALF_LIFE_NS: Final = 1_800_000_000_000
"""After half an hour a request counts half: traffic, and what it is measured on, change."""
_NOTICEABLE, _CERTAIN = 0.03, 3.0
"""A declared crossover does not fit if a variant is slower by 3 % where it is used, by 3 standard errors."""


@dataclass(frozen=True, slots=True)
class ObservedCrossover:
    """The crossover of two variants: it is at least `low` and at most `high` requests in flight, None without a bound.

    `requests`: those compared, of the variant with fewer. `fits`: whether the declared crossover is one by them; None
    without a declared one.
    """

    low: float | None
    high: float | None
    requests: int
    fits: bool | None


@dataclass(slots=True)
class _Speed:
    """The logarithm of a request's seconds for each unit of its work: mean, and sum of squares, by weights."""

    weight: float = 0.0
    mean: float = 0.0
    squares: float = 0.0
    at: int = 0

    def add(self, value: float, now: int) -> None:
        """Add a request."""
        left = _left(self.at, now)
        before = self.weight * left
        self.weight, self.squares, self.at = before + 1.0, self.squares * left, now
        delta = value - self.mean
        self.mean += delta / self.weight
        self.squares += delta * delta * before / self.weight

    def weight_at(self, now: int) -> float:
        """Return the number of requests that count now."""
        return self.weight * _left(self.at, now)

    @property
    def variance(self) -> float:
        """The variance of the mean."""
        return self.squares / max(self.weight - 1.0, 1.0) / self.weight


@dataclass(frozen=True, slots=True)
class _Difference:
    """How much slower the second variant is than the first at a level, as a logarithm, with its variance."""

    concurrency: float
    mean: float
    variance: float


class ObservedCrossovers:
    """The speeds of the variants of one routed model. Times are nanoseconds of any monotonic clock."""

    def __init__(self, count: int) -> None:
        self._speeds: list[dict[int, _Speed]] = [{} for _ in range(count)]

    def add(self, variant: int, in_flight: float, duration: int, work: int, now: int) -> None:
        """Add a request: the mean requests in flight at its variant, its duration, and its tokens or rows."""
        if duration > 0 and work > 0 and in_flight >= 1:
            level = round(log2(in_flight) * _STEPS)
            self._speeds[variant].setdefault(level, _Speed()).add(log(duration / work), now)

    def observed(self, variant: int, limit: int | None, now: int) -> ObservedCrossover | None:
        """Return the crossover of a variant and the next one; None if too few requests can be compared.

        `limit`: the declared one.
        """
        if variant + 1 >= len(self._speeds):
            return None
        first, second = self._speeds[variant], self._speeds[variant + 1]
        levels = [level for level in sorted(first.keys() & second.keys()) if _enough(first, second, level, now)]
        if not levels:
            return None
        differences = [_difference(level, first[level], second[level]) for level in levels]
        low, high = _crossing(differences)
        compared = [sum(speeds[level].weight_at(now) for level in levels) for speeds in (first, second)]
        fits = None if limit is None else not _is_contradicted(differences, limit)
        return ObservedCrossover(low, high, round(min(compared)), fits)


def _left(since: int, now: int) -> float:
    return float(0.5 ** (max(now - since, 0) / _HALF_LIFE_NS))


def _enough(first: Mapping[int, _Speed], second: Mapping[int, _Speed], level: int, now: int) -> bool:
    return min(first[level].weight_at(now), second[level].weight_at(now)) >= FEWEST_REQUESTS


def _difference(level: int, first: _Speed, second: _Speed) -> _Difference:
    return _Difference(2.0 ** (level / _STEPS), second.mean - first.mean, first.variance + second.variance)


def _crossing(differences: Sequence[_Difference]) -> tuple[float | None, float | None]:
    """Return the levels between which the crossover is, None where all levels are on one side of it.

    The first variant is to be faster at the lower ones, the second at the higher ones: the division that gains most.
    """
    gains = [
        sum(one.mean for one in differences[:index]) - sum(one.mean for one in differences[index:])
        for index in range(len(differences) + 1)
    ]
    best = gains.index(max(gains))
    low = differences[best - 1].concurrency if best else None
    return low, differences[best].concurrency if best < len(differences) else None


def _is_contradicted(differences: Sequence[_Difference], limit: int) -> bool:
    """Return whether a variant is certainly slower where the declared crossover uses it."""
    edge = limit * 2.0 ** (0.5 / _STEPS)
    below = [one for one in differences if one.concurrency <= edge]
    above = [one for one in differences if one.concurrency > edge]
    # Next to the crossover first: far from it the better variant may hide that it lies elsewhere.
    return any(
        _is_slower(part[:count], sign)
        for part, sign in ((below[::-1], -1), (above, 1))
        for count in range(1, len(part) + 1)
    )


def _is_slower(differences: Sequence[_Difference], sign: int) -> bool:
    mean = sign * sum(one.mean for one in differences) / len(differences)
    error = sqrt(sum(one.variance for one in differences)) / len(differences)
    return mean > _NOTICEABLE and mean > _CERTAIN * error
