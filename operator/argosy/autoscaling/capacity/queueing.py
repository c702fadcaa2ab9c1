"""Queueing model of one replica with dynamic batching: waiting time and latency at a given rate of rows.

A request that finds all instances busy (Erlang C) waits until one is free. The requests that arrive meanwhile form its
batch, so batches grow with the rate. Requests that do not fit into the next batch wait longer, in a queue of full
batches. Formulas and sources: docs/scaling.md.
"""

from collections.abc import Callable
from functools import lru_cache
from math import inf, log, sqrt
from statistics import NormalDist

from msgspec import Struct

from argosy.autoscaling.capacity.service import Service

_HALVINGS = 14
_NEGLIGIBLE = 1e-18
"""A probability that is below what a float resolves of another one."""


def highest(most: float, fits: Callable[[float], bool]) -> float:
    """Return the highest rate, up to `most`, that fits where all lower ones do."""
    if fits(most):
        return most
    low, high = 0.0, most
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def erlang_c(servers: int, offered: float) -> float:
    """Return the share of arrivals that find all of `servers` busy; `offered`: the mean number that would be busy.

    By Erlang B, whose inverse is the sum of the probabilities of fewer and fewer busy servers, each over that of all.
    They rise up to about `offered` and fall from there, so that thousands of servers take a few hundred of them.
    """
    if offered >= servers:
        return 1.0
    if offered <= 0:
        return 0.0
    total = term = 1.0
    for number in range(servers, 0, -1):
        term *= number / offered
        total += term
        if term < _NEGLIGIBLE * total or total > 1 / _NEGLIGIBLE:
            break
    blocked = 1 / total
    return servers * blocked / (servers - offered * (1 - blocked))


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
        """Maximum throughput in rows per second, with full batches."""
        return self.servers * self.max_batch / self.seconds(self.max_batch)

    def seconds(self, rows: float) -> float:
        """Return the seconds of one execution while all instances are busy."""
        return self.service.seconds(rows, self.instances)

    def rows(self, rate: float) -> float:
        """Return the mean rows of a batch: those that arrive while all instances are busy, or during its window."""
        slow = 1 + self.service.contention * (self.instances - 1)
        left = self.servers - rate * self.service.per_row * slow
        natural = rate * self.service.fixed * slow / left if left > 0 else inf
        return min(float(self.max_batch), max(1.0, natural, 1 + rate * self.window_s))

    def latency(self, rate: float, share: float, *, waiting: bool = False) -> float:
        """Return the quantile `share` of latency, or of the waiting time, in seconds; infinite beyond `most`."""
        load = rate / self.most
        if load >= 1:
            return inf
        rows, largest = self._rows(rate, share)
        until_free = self._until_free(rate, share, rows, self.seconds(largest))
        waits = max(until_free, self._beyond(load, share)) + self.window_s
        return waits if waiting else waits + self.seconds(largest)

    def _rows(self, rate: float, share: float) -> tuple[float, float]:
        """Return the rows of a batch: the mean, and the quantile `share`.

        A long batch is followed by a larger one, so batch sizes vary more than arrivals do.
        """
        rows = self.rows(rate)
        come = rate * max(self.window_s, self.seconds(rows) / self.servers)
        follows = rate * self.service.per_row / self.servers
        most = come + deviations(share) * sqrt(come / max(1 - follows * follows, 0.1))
        return rows, min(float(self.max_batch), max(rows, most))

    def _until_free(self, rate: float, share: float, rows: float, largest_s: float) -> float:
        """Return the quantile `share` of the seconds until an instance is free, if all run batches of `largest_s`."""
        busy = erlang_c(self.servers, rate * self.seconds(rows) / rows)
        if self.max_batch == 1 or busy <= 1 - share:
            return 0.0
        return float(largest_s * (1 - ((1 - share) / busy) ** (1 / self.servers)))

    def _beyond(self, load: float, share: float) -> float:
        """Return the quantile `share` of the seconds that requests wait for space in a batch.

        By Cramér and Lundberg's exponent for even service times, within 8 % from a tenth of the load on.
        """
        full = erlang_c(self.servers, load * self.servers)
        until_all_s = load ** (1 / 3) / (2 * self.most * (1 - load))
        return until_all_s * log(full / (1 - share)) if full > 1 - share else 0.0

    def within(self, limit_s: float, share: float, most: float, *, waiting: bool = False) -> float:
        """Return the highest rate, up to `most`, at which `share` of the requests take (or wait) at most `limit_s`."""
        return highest(most, lambda rate: self.latency(rate, share, waiting=waiting) <= limit_s)
