"""Rates of models, from two readings of their statistics."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from argosy_agent.sync.control import Tally

NS_PER_MS = 1e6
WINDOW_S = 5.0
Key = tuple[str, str, int]
"""Server, model, version."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Requests and failures per second, and the mean time that a request queued and computed, in milliseconds.

    Times are 0 where there was no request.
    """

    requests: float = 0.0
    failures: float = 0.0
    queue_ms: float = 0.0
    compute_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Reading:
    """All tallies at one time, in seconds."""

    at: float = 0.0
    tallies: Mapping[Key, Tally] = field(default_factory=dict)


def reading(at: float, tallies: Mapping[str, Iterable[Tally]]) -> Reading:
    """Return a reading of tallies by server."""
    return Reading(at, {(server, t.model, t.version): t for server, every in tallies.items() for t in every})


class Meter:
    """Rates over the last `window_s` seconds."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._readings: deque[Reading] = deque()

    def rates(self, latest: Reading) -> dict[str, Rate]:
        """Add the `latest` reading. Return each model's rate since the oldest reading within the window."""
        self._readings.append(latest)
        while len(self._readings) > 2 and latest.at - self._readings[1].at >= self._window_s:
            self._readings.popleft()
        return rates(self._readings[0], latest)


def rates(before: Reading, after: Reading) -> dict[str, Rate]:
    """Return each model's rate between two readings, summed over its servers and versions."""
    seconds = after.at - before.at
    models = sorted({model for _, model, _ in after.tallies})
    if seconds <= 0:
        return dict.fromkeys(models, Rate())
    return {model: _rate(_done(before, after, model), seconds) for model in models}


def _done(before: Reading, after: Reading, model: str) -> list[Tally]:
    return [_less(tally, before.tallies.get(key)) for key, tally in after.tallies.items() if key[1] == model]


def _less(now: Tally, then: Tally | None) -> Tally:
    """Return the difference of two tallies. A server that restarted counts from zero."""
    if then is None or now.requests < then.requests or now.failures < then.failures:
        return now
    return Tally(
        now.model,
        now.version,
        now.requests - then.requests,
        now.failures - then.failures,
        now.queue_ns - then.queue_ns,
        now.compute_ns - then.compute_ns,
    )


def _rate(done: list[Tally], seconds: float) -> Rate:
    requests = sum(tally.requests for tally in done)
    per_request = NS_PER_MS * max(requests, 1)
    return Rate(
        requests=requests / seconds,
        failures=sum(tally.failures for tally in done) / seconds,
        queue_ms=sum(tally.queue_ns for tally in done) / per_request,
        compute_ms=sum(tally.compute_ns for tally in done) / per_request,
    )
