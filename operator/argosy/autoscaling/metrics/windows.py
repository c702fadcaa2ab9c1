"""What one server's models did lately, from what it exposed one time after another.

Counters begin again with their model or server; clocks jump; a metric is there at one time and not at another. Each of
these costs knowledge, never more: what was counted again is counted from zero, over a jump nothing is said, and of what
is missing at either end the increase is NaN, which no sum turns into a number.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import nan

from . import histograms
from .series import CounterName, Exposed, GaugeName, Histogram, HistogramName, ModelKey, ModelSeries

WINDOW_S = 30.0
"""What rates are over, at least: the time between two readings where that is more."""
GAP_S = 300.0
"""Two readings that are further apart say nothing of the time between: the clock may have jumped."""


@dataclass(frozen=True, slots=True)
class Increase:
    """What was added; a histogram to which nothing was may be left out. `backlog`: requests that wait or run, now less
    than then where it is negative.
    """

    counters: Mapping[CounterName, float] = field(default_factory=dict)
    histograms: Mapping[HistogramName, Histogram] = field(default_factory=dict)
    backlog: float = 0.0


@dataclass(frozen=True, slots=True)
class Step:
    """What came between two readings, at seconds of one clock; models of which nothing came are left out."""

    since: float
    until: float
    increases: Mapping[ModelKey, Increase]


@dataclass(frozen=True, slots=True)
class ServerWindow:
    """What is remembered of one server: the newest it exposed, and the steps that led there, oldest first."""

    latest: Exposed
    steps: tuple[Step, ...] = ()

    @property
    def span_s(self) -> float:
        """The time that the steps are over; 0 while there is only one reading."""
        return self.latest.at - self.steps[0].since if self.steps else 0.0

    def after(self, exposed: Exposed, window_s: float = WINDOW_S) -> "ServerWindow":
        """With one reading more. An older one is passed over, one that is far older or newer begins again."""
        passed = exposed.at - self.latest.at
        if abs(passed) > GAP_S:
            return ServerWindow(exposed)
        if passed <= 0:
            return self
        steps = (*self.steps, Step(self.latest.at, exposed.at, _increases(self.latest, exposed)))
        return ServerWindow(exposed, _within(steps, exposed.at - window_s))

    def newest(self) -> "ServerWindow":
        """Return the last step alone."""
        return ServerWindow(self.latest, self.steps[-1:])

    def increase(self, key: ModelKey) -> Increase:
        """Return all that a model, which it has now, did in the window."""
        steps = [step.increases[key] for step in self.steps if key in step.increases]
        now = self.latest.models[key]
        return Increase(
            {name: sum(one.counters.get(name, 0.0) for one in steps) for name in now.counters},
            {
                name: grown
                for name in now.histograms
                if (grown := _histogram(name, steps, now.histograms[name])) is not None
            },
            sum(one.backlog for one in steps),
        )


def _histogram(which: HistogramName, steps: Iterable[Increase], now: Histogram) -> Histogram | None:
    """Of the steps those whose bounds are today's; None where none has any."""
    parts = (one.histograms[which] for one in steps if which in one.histograms)
    return histograms.together(part for part in parts if part.bounds == now.bounds)


def _within(steps: tuple[Step, ...], since: float) -> tuple[Step, ...]:
    """Return the newest steps that together reach back to `since`."""
    first = next((index for index in reversed(range(len(steps))) if steps[index].since <= since), 0)
    return steps[first:]


def _increases(before: Exposed, after: Exposed) -> dict[ModelKey, Increase]:
    """Of a model that was not there before all of it came since: it was loaded meanwhile."""
    steps: dict[ModelKey, Increase] = {}
    for key, now in after.models.items():
        then = before.models.get(key)
        if then is None:
            steps[key] = _restarted(now)
        elif now != then:
            steps[key] = _restarted(now) if _shrank(then, now) else _grown(then, now)
    return steps


def _shrank(then: ModelSeries, now: ModelSeries) -> bool:
    return any(value < then.counters.get(name, value) for name, value in now.counters.items())


def _restarted(now: ModelSeries) -> Increase:
    return Increase(now.counters, now.histograms, backlog(now))


def _grown(then: ModelSeries, now: ModelSeries) -> Increase:
    either = then.counters.keys() | now.counters.keys()
    both = then.histograms.keys() & now.histograms.keys()
    return Increase(
        {name: now.counters.get(name, nan) - then.counters.get(name, nan) for name in either},
        {name: histograms.increase(then.histograms[name], now.histograms[name]) for name in both},
        backlog(now) - backlog(then),
    )


def backlog(series: ModelSeries) -> float:
    """Return the requests that wait or run; NaN where nothing says how many wait."""
    return series.gauges.get(GaugeName.PENDING, nan) + series.gauges.get(GaugeName.RUNNING, 0.0)
