"""What is sent when: levels of load, arrivals, and the order of trials."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

_LEAD_SHARE = 8
"""In an open loop one request for each 8 measured ones leads in, and one follows them."""


@dataclass(frozen=True, slots=True)
class Level:
    """A load: so many requests in flight at any time (closed loop), or so many arrivals a second (open loop)."""

    concurrency: int = 0
    rate: float = 0.0

    def __str__(self) -> str:
        return f"{self.concurrency} at once" if self.concurrency else f"{self.rate:g}/s"


@dataclass(frozen=True, slots=True)
class Extent:
    """Requests of a trial, in the order in which they are sent: the first `lead` and the last `tail` are not measured.

    They keep the load of the measured ones constant: in a closed loop all of these run while no client has ended.
    """

    lead: int
    measured: int
    tail: int

    @property
    def total(self) -> int:
        """Requests that are sent."""
        return self.lead + self.measured + self.tail


def extent(level: Level, requests: int) -> Extent:
    """Return the requests of a trial with at least `requests` measured ones, and two for each client."""
    if level.concurrency:
        return Extent(level.concurrency, max(requests, 2 * level.concurrency), level.concurrency - 1)
    margin = max(1, requests // _LEAD_SHARE)
    return Extent(margin, requests, margin)


def arrivals(rate: float, count: int, seed: str) -> list[float]:
    """Return the arrival times of a Poisson process in seconds, the first at 0. One seed always gives the same."""
    random = Random(seed)
    times = [0.0]
    while len(times) < count:
        times.append(times[-1] + random.expovariate(rate))
    return times[:count]


@dataclass(frozen=True, slots=True)
class TrialKey:
    """One measurement of one endpoint."""

    level: Level
    repetition: int
    endpoint: int

    def seed(self, seed: int) -> str:
        """Return the seed of prompts and arrivals: equal for all endpoints, so that they get the same requests."""
        return f"{seed}/{self.level}/{self.repetition}"


def trials(levels: Sequence[Level], endpoints: int, repetitions: int) -> Iterator[TrialKey]:
    """Yield the trials in order. Endpoints alternate as A B B A, so that a drift of the machine affects all alike."""
    for level in levels:
        for repetition in range(repetitions):
            order = range(endpoints)
            for endpoint in reversed(order) if repetition % 2 else order:
                yield TrialKey(level, repetition, endpoint)
