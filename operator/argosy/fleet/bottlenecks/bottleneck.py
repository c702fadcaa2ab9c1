"""What holds a model's or an ensemble's requests up."""

from dataclasses import dataclass
from enum import StrEnum


class BottleneckKind(StrEnum):
    """The rule that found it."""

    STARVED_STAGE = "StarvedStage"
    COLLAPSED_BATCHES = "CollapsedBatches"
    WINDOW_TOO_LONG = "WindowTooLong"
    SATURATED_GPU = "SaturatedGpu"
    IDLE_GPU = "IdleGpu"
    SERIALISED_ENSEMBLE = "SerialisedEnsemble"
    MEMORY_PRESSURE = "MemoryPressure"
    LOW_CACHE_HIT_RATE = "LowCacheHitRate"
    SLOW_AROUND_ENGINE = "SlowAroundEngine"
    SLO_BELOW_COMPUTE = "SloBelowCompute"


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """`stage`: a model's name, or `queue`, `compute` or another part of a request's way. `evidence` has the numbers and
    their thresholds in words; `advice` what to do, and whether Argosy does it by itself. `share`: how much of a
    request's time it takes, in thousandths, where that can be told.
    """

    stage: str
    kind: BottleneckKind
    evidence: str
    advice: str
    share: int | None = None
