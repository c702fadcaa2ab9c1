"""Successive readings of one server, and the increases between them.

Counters restart with their model or server, clocks jump, and metrics may be missing. None of these adds a wrong number:
after a restart counters are taken to have begun at zero, a jump begins a new window, and the increase of a metric that
is missing at either end is NaN.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf, nan

from .durations import Durations
from .histograms import Histogram
from .names import Counter, Failure, Gauge, HistogramName, Routed
from .signals import GpuSignals

ModelKey = tuple[str, int]
"""A model's name, as its server has it, and its version."""
WINDOW_S = 30.0
"""Shortest time that rates are over; it is longer where readings are further apart."""
GAP_S = 300.0
"""Longest time between two readings of one window, since beyond it the clock may have jumped."""
READING_STALE_S = 60.0
"""Age after which a reading is stale, or three intervals between readings, if that is longer."""
_COUNTERS = tuple(source for counter in (*Counter, *Routed, *Failure) for source in counter.value)


@dataclass(frozen=True, slots=True)
class ModelSeries:
    """One version of a model: values by source and histograms by name, as they are or as they grew in `span_s`."""

    values: Mapping[str, float] = field(default_factory=dict)
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    span_s: float = 0.0

    def value(self, metric: Counter | Routed | Failure | Gauge, default: float = nan) -> float:
        """Return the value of the first source that is there."""
        return next((self.values[source] for source in metric.value if source in self.values), default)

    def histogram(self, name: HistogramName) -> Histogram | None:
        """Return the histogram of the first source that is there."""
        return next((self.histograms[source] for source in name.value if source in self.histograms), None)

    def durations_since(self, then: "ModelSeries", name: HistogramName) -> Durations | None:
        """Return the durations that were added since an earlier reading; None if there are none."""
        before, after = then.histogram(name), self.histogram(name)
        if before is None or after is None or before.bounds != after.bounds:
            return None
        return Durations.read(after - before)


@dataclass(frozen=True, slots=True)
class Exposed:
    """A reading of one server, `at` seconds of the reader's clock. `gpus` in order of their UUIDs."""

    at: float
    models: Mapping[ModelKey, ModelSeries] = field(default_factory=dict)
    gpus: tuple[GpuSignals, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerWindow:
    """The newest readings of one server, oldest first."""

    readings: tuple[Exposed, ...] = ()

    @property
    def latest(self) -> Exposed:
        """The newest reading."""
        return self.readings[-1]

    def after(self, reading: Exposed, keep: float = inf) -> "ServerWindow":
        """Return the window with a reading added. An older reading is dropped; after a gap a new window begins.

        Readings from the time `keep` on stay, however old: of several that come at once, each has yet to be counted.
        """
        if not self.readings or abs(reading.at - self.latest.at) > GAP_S:
            return ServerWindow((reading,))
        if reading.at <= self.latest.at:
            return self
        begins = min(reading.at - WINDOW_S, keep)
        oldest = max((i for i, old in enumerate(self.readings) if old.at <= begins), default=0)
        return ServerWindow((*self.readings[oldest:], _shared(reading, self.latest)))

    def is_fresh(self, clock: float) -> bool:
        """Return whether the newest reading is not stale."""
        return abs(clock - self.latest.at) <= max(READING_STALE_S, 3 * (self.latest.at - self.readings[-2:][0].at))


def _shared(reading: Exposed, before: Exposed) -> Exposed:
    """Return the reading with the earlier one's series of models that did not change, which then cost no memory."""
    old = before.models
    models = {key: old[key] if old.get(key) == series else series for key, series in reading.models.items()}
    return replace(reading, models=models)


def increase(readings: Sequence[Exposed], key: ModelKey) -> ModelSeries:
    """Return the increases of a model's metrics over the readings. The last reading must have the model."""
    series = [reading.models.get(key) for reading in readings]
    steps = [_step(then, now) for then, now in pairwise(series) if now is not None and now is not then]
    latest = readings[-1].models[key]
    return ModelSeries(
        {source: sum(step.values.get(source, 0.0) for step in steps) for source in latest.values},
        {
            name: sum((step.histograms[name] for step in steps if name in step.histograms), histogram - histogram)
            for name, histogram in latest.histograms.items()
        },
        readings[-1].at - readings[0].at,
    )


def _step(then: ModelSeries | None, now: ModelSeries) -> ModelSeries:
    """Return the increases between two readings; the full values if the model was loaded or restarted in between."""
    if then is None or any(now.values.get(name, inf) < then.values.get(name, 0.0) for name in _COUNTERS):
        return now
    sources = now.values.keys() | then.values.keys()
    histograms = now.histograms.keys() & then.histograms.keys()
    return ModelSeries(
        {source: now.values.get(source, nan) - then.values.get(source, nan) for source in sources},
        {name: now.histograms[name] - then.histograms[name] for name in histograms},
    )
