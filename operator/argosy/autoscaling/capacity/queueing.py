"""How long a request waits and takes in one replica, at a rate of rows: batches of what waits, several instances.

Three parts. A request that finds all instances busy (Erlang C) waits until one is free; what came meanwhile is its
batch, so batches grow with the rate. What does not fit into the next batch waits on: full batches are customers of a
queue of their own, with arrivals in groups and even service times; the tail of their wait is known. Formulas and
sources: docs/scaling.md.
"""

from functools import lru_cache
from math import inf, log, log1p, sqrt
from statistics import NormalDist

from msgspec import Struct

from argosy.autoscaling.capacity.service import Service

_NEWTON_STEPS = 3
_HALVINGS = 14


def erlang_c(servers: int, offered: float) -> float:
    """Return the share of arrivals that find all of `servers` busy; `offered`: the mean number that would be busy."""
    if offered >= servers:
        return 1.0
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = offered * blocked / (number + offered * blocked)
    return servers * blocked / (servers - offered * (1 - blocked))


def decay(load: float) -> float:
    """Return how fast the tail of the wait falls where service times are even: by `e` in `1/y` of the mean time between
    two arrivals, with `load · y = ln(1 + y)` (Cramér and Lundberg's exponent).
    """
    y = 2 * (1 - load) / load
    if load > 0.999:  # the first terms of the series are as right, and rounding spoils Newton's method
        return y * (1 + (1 - load) / 3)
    for _ in range(_NEWTON_STEPS):
        y -= (load * y - log1p(y)) / (load - 1 / (1 + y))
    return y


@lru_cache(maxsize=64)
def deviations(share: float) -> float:
    """Return the standard deviations above the mean below which `share` of a normal distribution lies."""
    return NormalDist().inv_cdf(share)


class Replica(Struct, frozen=True):
    """One replica: `instances` of each of `devices`, batches of at most `max_batch` rows (1: no batching) that wait
    `window_s` for more.
    """

    service: Service
    instances: int = 1
    devices: int = 1
    max_batch: int = 1
    window_s: float = 0.0

    @property
    def servers(self) -> int:
        """Executions at once."""
        return self.instances * self.devices

    @property
    def most(self) -> float:
        """Rows a second beyond which it never catches up."""
        return self.servers * self.max_batch / self.seconds(self.max_batch)

    def seconds(self, rows: float) -> float:
        """Return the seconds of one execution while all instances are busy."""
        return self.service.seconds(rows, self.instances)

    def rows(self, rate: float) -> float:
        """Return a batch's mean rows: what comes while instances are busy, or while the batch waits for more."""
        slow = 1 + self.service.contention * (self.instances - 1)
        left = self.servers - rate * self.service.per_row * slow
        natural = rate * self.service.fixed * slow / left if left > 0 else inf
        return min(float(self.max_batch), max(1.0, natural, 1 + rate * self.window_s))

    def latency(self, rate: float, share: float, *, waiting: bool = False) -> float:
        """Return seconds that `share` of the requests take at most, or only wait; infinite if it cannot keep up."""
        load = rate / self.most
        if load >= 1:
            return inf
        largest_s, until_free = self._batches(rate, share)
        waits = max(until_free, self._beyond(rate, load, share)) + self.window_s
        return waits if waiting else waits + largest_s

    def _batches(self, rate: float, share: float) -> tuple[float, float]:
        """Return seconds that a large batch is executed for, and that one waits until an instance is free.

        A long batch has a larger one come after it, so their number varies more than that of arrivals.
        """
        if self.max_batch == 1:
            return self.seconds(1.0), 0.0
        rows = self.rows(rate)
        seconds = self.seconds(rows)
        come = rate * max(self.window_s, seconds / self.servers)
        follows = rate * self.service.per_row / self.servers
        most = come + deviations(share) * sqrt(come / max(1 - follows * follows, 0.1))
        largest_s = self.seconds(min(float(self.max_batch), max(rows, most)))
        busy = erlang_c(self.servers, rate * seconds / rows)
        free = largest_s * (1 - ((1 - share) / busy) ** (1 / self.servers)) if busy > 1 - share else 0.0
        return largest_s, free

    def _beyond(self, rate: float, load: float, share: float) -> float:
        """Return seconds until what did not fit into a batch has a place in one."""
        full = erlang_c(self.servers, load * self.servers)
        return log(full / (1 - share)) / (rate * decay(load)) if full > 1 - share else 0.0

    def within(self, limit_s: float, share: float, most: float, *, waiting: bool = False) -> float:
        """Return the highest rate, up to `most`, at which `share` of the requests take (or wait) at most `limit_s`."""
        if self.latency(most, share, waiting=waiting) <= limit_s:
            return most
        low, high = 0.0, most
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.latency(middle, share, waiting=waiting) <= limit_s else (low, middle)
        return low
