"""Closed-loop clients of two engines in virtual time: requests in progress share an engine's throughput."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from argosy_common.regimes import Regimes, VariantState

SECOND = 1_000_000_000
Curve = Callable[[int], float]
"""The requests a second that an engine completes, by the number in progress."""


def compiled(running: int) -> float:
    """Fast alone, and soon full."""
    return 10.0 * running / (1 + running / 6)


def dynamic(running: int) -> float:
    """Slower alone, and full late: better from 13 requests on."""
    return 7.0 * running / (1 + running / 10.9)


CURVES: Sequence[Curve] = (compiled, dynamic)


@dataclass
class Loop:
    """`clients` requests are always in flight; each one that ends is followed by the next."""

    regimes: Regimes
    curves: Sequence[Curve] = CURVES
    states: Sequence[VariantState] = (VariantState.READY, VariantState.READY)
    now: int = 0
    running: list[list[float]] = field(default_factory=list)
    variants: list[int] = field(default_factory=list)
    regimes_seen: list[int] = field(default_factory=list)

    def run(self, clients: int, seconds: float) -> float:
        """Return the requests a second that were completed with so many clients."""
        end, completed = self.now + round(seconds * SECOND), 0
        while len(self.variants) < clients:
            self._begin(len(self.variants) + 1)
        while self.now < end:
            counts = [self.variants.count(index) for index in range(len(self.curves))]
            rates = [curve(count) / count if count else 0.0 for curve, count in zip(self.curves, counts, strict=True)]
            left = [work[0] / rates[variant] for work, variant in zip(self.running, self.variants, strict=True)]
            step = min(left)
            for work, variant in zip(self.running, self.variants, strict=True):
                work[0] -= step * rates[variant]
            self.now += max(1, round(step * SECOND))
            done = left.index(step)
            del self.running[done], self.variants[done]
            completed += 1
            self.regimes.advance(len(self.variants), self.states, self.now)
            while len(self.variants) < clients:
                self._begin(len(self.variants) + 1)
        return completed / seconds

    def _begin(self, in_flight: int) -> None:
        self.regimes.advance(in_flight, self.states, self.now)
        chosen = self.regimes.choose(self.states)
        assert chosen is not None
        # Works differ, so that requests do not end in lockstep.
        self.running.append([0.5 + 0.1 * (len(self.regimes_seen) * 7 % 11)])
        self.regimes_seen.append(chosen)
        self.variants.append(chosen)
