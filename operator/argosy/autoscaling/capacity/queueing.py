"""How long a request waits and takes in one replica, at a rate of rows: batches of what waits, several instances.

Three parts. Who finds all instances busy (Erlang C) waits until one is free; what came meanwhile is its batch, so
batches grow with the rate. What does not fit into the next batch waits on: full batches are customers of a queue of
their own, with arrivals in groups (their variation falls with the size of the group) and even service times; the tail
of their wait is known. Formulas and sources: docs/scaling.md.
"""

from functools import lru_cache
from math import inf, log, log1p, sqrt
from statistics import NormalDist

from msgspec import Struct

from argosy.autoscaling.capacity.service import Service

_EXACT = 1e-4
"""To which share of itself a rate is found. What it follows from was measured, and is not known to a hundredth."""
_MOST_FOLLOWS = 0.9
_TOGETHER = 0.5
"""Who waits longest for an instance is seldom who waits longest for a place in a batch, too."""
_STEPS = 3
"""Of Newton's method, after which it is right to four millionths at any load."""
_FULL = 0.999
"""The load from which on the first terms of its series are as right, and rounding spoils Newton's method."""
_RARELY_BOTH = 0.75
"""Nor do the largest batches come after each other."""


def erlang_c(servers: int, offered: float) -> float:
    """Return the share of those who come and find all of `servers` busy; `offered`: the mean number that
    would be busy.
    """
    if offered >= servers:
        return 1.0
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = offered * blocked / (number + offered * blocked)
    return servers * blocked / (servers - offered * (1 - blocked))


def decay(load: float) -> float:
    """Return how fast the tail of the wait falls where service times are even: by `e` in `1/y` of the mean time between
    two arrivals, times their variation, with `load · y = ln(1 + y)` (Cramér and Lundberg's exponent).
    """
    y = 2 * (1 - load) / load
    if load > _FULL:
        return y * (1 + (1 - load) / 3)
    for _ in range(_STEPS):
        y -= (load * y - log1p(y)) / (load - 1 / (1 + y))
    return y


@lru_cache(maxsize=64)
def deviations(share: float) -> float:
    """Standard deviations above the mean below which `share` of a normal distribution lies."""
    return NormalDist().inv_cdf(share)


class Replica(Struct, frozen=True):
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
        return self.servers * self.max_batch / self.seconds(self.max_batch)

    def load(self, rate: float) -> float:
        """Return the share of what it can do with full batches."""
        return rate / self.most

    def latency(self, rate: float, share: float) -> float:
        """Return seconds that `share` of the requests take at most, waiting and being executed."""
        return Curve(self, share).at(rate)

    def seconds(self, rows: float) -> float:
        """Of one execution while all instances are busy."""
        return self.service.seconds(rows, self.instances)


class Curve:
    """How long `share` of one replica's requests take, or only wait, over the rate of rows: thousands of points of it
    are asked for when an operator starts, so what is the same at all of them is reckoned once.
    """

    __slots__ = ("_full_s", "_late", "_peak", "_replica", "_servers", "_slow", "_spread", "_waiting", "_window_full")

    def __init__(self, replica: Replica, share: float, *, waiting: bool = False) -> None:
        self._replica, self._waiting, self._servers = replica, waiting, replica.servers
        self._slow = 1 + replica.service.contention * (replica.instances - 1)
        self._full_s = replica.seconds(replica.max_batch)
        self._late = 1 - share
        self._spread = _RARELY_BOTH * deviations(share)
        self._window_full = replica.max_batch / replica.window_s if replica.window_s > 0 else inf
        self._peak = -1.0

    def rows(self, rate: float) -> float:
        """Return a batch's mean rows: what comes while instances are busy, or while the batch waits for more."""
        replica, service = self._replica, self._replica.service
        left = self._servers - rate * service.per_row * self._slow
        natural = rate * service.fixed * self._slow / left if left > 0 else inf
        return min(float(replica.max_batch), max(1.0, natural, 1 + rate * replica.window_s))

    def at(self, rate: float) -> float:
        """Return seconds at a rate; infinite if the replica cannot keep up."""
        load = rate * self._full_s / (self._servers * self._replica.max_batch)
        if load >= 1:
            return inf
        largest_s, until_free = self._batches(rate)
        beyond = self._beyond(rate, load)
        waits = beyond + _TOGETHER * until_free if beyond > until_free else until_free + _TOGETHER * beyond
        waits += self._window(rate)
        return waits if self._waiting else waits + largest_s

    def up_to(self, rate: float) -> float:
        """Return the most seconds at this rate or any lower one. Once the rate fills batches before their window is
        over it makes them wait less, so that the longest may be where it just does.
        """
        if rate <= self._window_full:
            return self.at(rate)
        if self._peak < 0:
            self._peak = self.at(self._window_full)
        return max(self._peak, self.at(rate))

    def _batches(self, rate: float) -> tuple[float, float]:
        """Seconds that a large batch is executed for, and that one waits until an instance is free. A long batch has a
        larger one come after it, the more of its time is its rows'; so their number varies more than that of arrivals.
        """
        replica, service, servers = self._replica, self._replica.service, self._servers
        if replica.max_batch == 1:
            return self._full_s, 0.0
        rows = self.rows(rate)
        seconds = (service.fixed + service.per_row * rows) * self._slow
        come = rate * max(replica.window_s, seconds / servers)
        follows = min(_MOST_FOLLOWS, rate * service.per_row / servers)
        most = come + self._spread * sqrt(replica.variation * come / (1 - follows * follows))
        largest = min(float(replica.max_batch), max(rows, most))
        largest_s = (service.fixed + service.per_row * largest) * self._slow
        busy = erlang_c(servers, rate * seconds / rows)
        until_free = largest_s * (1 - (self._late / busy) ** (1 / servers)) if busy > self._late else 0.0
        return largest_s, until_free

    def _window(self, rate: float) -> float:
        """Nobody waits longer for a batch than it takes to fill."""
        return self._replica.window_s if rate <= self._window_full else self._replica.max_batch / rate

    def _beyond(self, rate: float, load: float) -> float:
        """Seconds until what did not fit into a batch has a place in one."""
        full = erlang_c(self._servers, load * self._servers)
        if full <= self._late:
            return 0.0
        return self._replica.variation / (rate * decay(load)) * log(full / self._late)


def within(curve: Curve, longest: float, most: float, least: float = 0.0) -> float:
    """Return the rate, from `least` to `most`, up to which it is at most `longest` seconds, to a ten-thousandth of the
    rate and not above it; 0 where it is more at `least` already.
    """
    if (below := _margin(curve.up_to(least), longest)) < 0:
        return 0.0
    if (above := _margin(curve.up_to(most), longest)) >= 0:
        return most
    low, high, halved = least, most, True
    while (width := high - low) > _EXACT * max(low, _EXACT * most):
        # A straight line's guess; half of the interval after one that cut little off.
        guess = low + width * (below / (below - above) if halved else 0.5)
        guess = min(max(guess, low + _EXACT / 4 * high), high - _EXACT / 4 * high)
        found = _margin(curve.up_to(guess), longest)
        if found >= 0:
            low, below = guess, found
        else:
            high, above = guess, found
        halved = high - low <= width / 2
    return low


def _margin(seconds: float, longest: float) -> float:
    """From 1 to -1, above 0 what is within: what a straight line between two points meets best."""
    if seconds <= 0 or seconds == inf:
        return 1.0 if seconds <= longest else -1.0
    return (longest - seconds) / (longest + seconds)
