"""One model version as the metrics describe it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from argosy_runtime.scheduling.variants.crossovers import ObservedCrossover

from .engines import EngineLoad
from .statistics import ModelStatistics


@dataclass(frozen=True, slots=True)
class VariantSeries:
    """One variant of a routed model. `state` is Ready, Asleep, Waking or Absent.

    `requests`: those that it was sent; `moved`: those that it lost to another variant. `regime_s`: seconds since it
    became the regime's variant, None where it is not. `max_concurrency`: its crossover, None without one.
    `observed`: the crossover that the traffic shows.
    """

    name: str
    in_flight: int
    requests: int
    moved: int
    state: str
    regime_s: float | None
    max_concurrency: int | None
    observed: ObservedCrossover | None = None


@dataclass(frozen=True, slots=True)
class InService:
    """The state of a version that serves. `instances` is None for an ensemble, `engine` for a model without one.

    `running`: requests that are being executed; `max_batch_size`: rows that requests are put together to, 0: it does
    not batch.
    """

    running: int
    instances: int | None
    decoupled: bool
    max_batch_size: int
    max_queue_delay_us: int
    engine: EngineLoad | None = None
    variants: Sequence[VariantSeries] = ()


@dataclass(frozen=True, slots=True)
class VersionShare:
    """The share of a version in the requests that name none: its weight in millionths, and those that it was sent by
    what decided (`weight`, `key`, `sequence`).
    """

    weight: int
    routed: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ModelSeries:
    """One model version with its labels (`metric_tags` included) and the number of its failed loads, at a time `now`.

    `service` is None where it does not serve, `traffic` where the requests without a version are not divided.
    `has_failures` is False where no configuration could be read: Triton then counts nothing.
    """

    labels: Mapping[str, str]
    statistics: ModelStatistics
    failed_loads: int = 0
    service: InService | None = None
    traffic: VersionShare | None = None
    now: int = 0
    has_failures: bool = True
