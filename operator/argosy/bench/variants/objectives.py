"""The objectives of a model's `slo` that a load test measures."""

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter

from argosy.api.model.scaling.slo import PERCENTILES, Slo
from argosy.api.values.quantity import format_duration
from argosy.bench.variants.curves import Latency, Point

_MEASURED: dict[str, tuple[str, Latency]] = {
    "latency": ("latency", attrgetter("latency")),
    "time_to_first_token": ("timeToFirstToken", attrgetter("time_to_first_token")),
    "inter_token_latency": ("interTokenLatency", attrgetter("inter_token_latency")),
}
_UNMEASURED_PERCENTILE = "p999"
_MS = 1000


@dataclass(frozen=True, slots=True)
class Objective:
    """A limit of a percentile of a latency, in seconds."""

    name: str
    latency: Latency
    percentile: str
    limit: float

    def miss(self, point: Point) -> str:
        """Return by how much a load misses it, as text; empty if it is met."""
        value = point.value(self.latency, self.percentile)
        if value is None:
            return f"{self.name} {self.percentile} was not measured"
        if value <= self.limit:
            return ""
        limit = format_duration(round(self.limit * _MS))
        return f"{self.name} {self.percentile} is {value * _MS:.3g} ms, more than {limit}"


def objectives(slo: Slo | None) -> list[Objective]:
    """Return the objectives that results can be held against."""
    return list(_objectives(slo)) if slo is not None else []


def _objectives(slo: Slo) -> Iterator[Objective]:
    for field, (name, latency) in _MEASURED.items():
        limits = getattr(slo, field)
        for percentile in PERCENTILES:
            limit = getattr(limits, percentile, None)
            if limit is not None and percentile != _UNMEASURED_PERCENTILE:
                yield Objective(name, latency, percentile, limit / _MS)


def unmeasured(slo: Slo | None) -> list[str]:
    """Return the objectives that a load test does not measure, by their fields."""
    if slo is None:
        return []
    names = ["slo.queueDelay"] if slo.queue_delay is not None else []
    names += ["slo.errorRate"] if slo.error_rate is not None else []
    return names + [
        f"slo.{name}.{_UNMEASURED_PERCENTILE}"
        for field, (name, _) in _MEASURED.items()
        if getattr(getattr(slo, field), _UNMEASURED_PERCENTILE, None) is not None
    ]
