"""One model version as the metrics have it."""

from collections.abc import Mapping
from dataclasses import dataclass

from .engines import EngineLoad
from .statistics import ModelStatistics


@dataclass(frozen=True, slots=True)
class InService:
    """What a version that serves is now. `instances` is None for an ensemble, which has none, `engine` where there is
    none inside of the instances.

    `running`: requests that are being executed; `max_batch_size`: rows that requests are put together to, 0: it does
    not batch.
    """

    running: int
    instances: int | None
    decoupled: bool
    max_batch_size: int
    max_queue_delay_us: int
    engine: EngineLoad | None = None


@dataclass(frozen=True, slots=True)
class ModelSeries:
    """One model version and its labels (`metric_tags` included); how many times it could not be loaded.

    `service` is None where it does not serve.
    """

    labels: Mapping[str, str]
    statistics: ModelStatistics
    failed_loads: int = 0
    service: InService | None = None
