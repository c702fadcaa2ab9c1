"""How long a request waits and takes in one replica, at a rate of rows: batches of what waits, several instances.

Three parts. Who finds all instances busy (Erlang C) waits until one is free; what came meanwhile is its batch, so
batches grow with the rate. What does not fit into the next batch waits on: full batches are customers of a queue of
their own, whose mean wait is Allen and Cunneen's for arrivals in groups (their variation falls with the size of the
group) and even service times. Formulas and sources: docs/scaling.md.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import inf, log, sqrt
from statistics import NormalDist

from argosy.fleet.scaling.capacity.service import Service

_STEPS = 24
"""Halvings of an interval until a rate is known to a ten-millionth of it."""

_MOST_FOLLOWS = 0.9
_TOGETHER = 0.5
"""Who waits longest for an instance is seldom who waits longest for a place in a batch, too."""
_RARELY_BOTH = 0.75
"""Nor do the largest batches come after each other."""


def erlang_c(servers: int, offered: float) -> float:
    """The share of those who come and find all of `servers` busy; `offered`: the mean number that would be busy."""
    if offered >= servers:
        return 1.0
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = offered * blocked / (number + offered * blocked)
    return servers * blocked / (servers - offered * (1 - blocked))


@lru_cache(maxsize=64)
def deviations(share: float) -> float:
    """Standard deviations above the mean below which `share` of a normal distribution lies."""
    return NormalDist().inv_cdf(share)


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica: `instances` of each of `devices`, batches of at most `max_batch` rows (1: no batching) that wait
    `window_s` for more. `variation`: the variance of the time between two requests over its mean squared: 1 where they
    know nothing of each other, less where replicas are taken in turn, more where requests come in bursts.
    """

    service: Service
    instances: int = 1
    devices: int = 1
    max_batch: int = 1
    window_s: float = 0.0
    variation: float = 1.0

    @property
    def servers(self) -> int:
        """Executions at once."""
        return self.instances * self.devices

    @property
    def most(self) -> float:
        """Rows a second beyond which it never catches up."""
        return self.servers * self.max_batch / self._seconds(self.max_batch)

    def load(self, rate: float) -> float:
        """The share of what it can do with full batches."""
        return rate / self.most

    def rows(self, rate: float) -> float:
        """A batch's mean rows: what comes while instances are busy, or while the batch waits for more."""
        slow = 1 + self.service.contention * (self.instances - 1)
        left = self.servers - rate * self.service.per_row * slow
        natural = rate * self.service.fixed * slow / left if left > 0 else inf
        return min(float(self.max_batch), max(1.0, natural, 1 + rate * self.window_s))

    def wait(self, rate: float, share: float) -> float:
        """Seconds that `share` (such as 0.99) of the requests wait at most; infinite if it cannot keep up."""
        load = self.load(rate)
        if load >= 1:
            return inf
        short, long = sorted((self._until_free(rate, share), self._beyond(load, share)))
        return self._window(rate) + long + _TOGETHER * short

    def latency(self, rate: float, share: float) -> float:
        """Seconds that `share` of the requests take at most, waiting and being executed."""
        return self.wait(rate, share) + self._seconds(self._largest(rate, share))

    def rate_within(self, longest: float, share: float, *, waiting: bool = False) -> float:
        """The most rows a second at which `share` take (or only wait) at most `longest` seconds; 0 if none does."""
        measure = self.wait if waiting else self.latency
        low, high = 0.0, self.most
        if measure(0.0, share) > longest:
            return 0.0
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if measure(middle, share) <= longest else (low, middle)
        return low

    def _seconds(self, rows: float) -> float:
        return self.service.seconds(rows, self.instances)

    def _largest(self, rate: float, share: float) -> float:
        """A batch's rows that `share` of the batches do not exceed. A long batch has a larger one come after it, the
        more of its time is its rows'; so their number varies more than that of arrivals does.
        """
        if self.max_batch == 1:
            return 1.0
        rows = self.rows(rate)
        come = rate * max(self.window_s, self._seconds(rows) / self.servers)
        follows = min(_MOST_FOLLOWS, rate * self.service.per_row / self.servers)
        most = come + _RARELY_BOTH * deviations(share) * sqrt(self.variation * come / (1 - follows * follows))
        return min(float(self.max_batch), max(rows, most))

    def _window(self, rate: float) -> float:
        """Nobody waits longer for a batch than it takes to fill."""
        return min(self.window_s, self.max_batch / rate) if rate > 0 else self.window_s

    def _until_free(self, rate: float, share: float) -> float:
        if self.max_batch == 1:
            return 0.0
        seconds = self._seconds(self._largest(rate, share))
        busy = erlang_c(self.servers, rate * self._seconds(self.rows(rate)) / self.rows(rate))
        late = 1 - share
        return seconds / sqrt(self.servers) * (1 - late / busy) if busy > late else 0.0

    def _beyond(self, load: float, share: float) -> float:
        full = erlang_c(self.servers, load * self.servers)
        if full <= 1 - share:
            return 0.0
        seconds = self._seconds(self.max_batch)
        mean = self.variation * seconds / (2 * self.servers * self.max_batch * (1 - load))
        return mean * log(full / (1 - share))
