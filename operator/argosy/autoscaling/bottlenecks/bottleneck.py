"""What holds a model's or an ensemble's requests up."""

from dataclasses import dataclass
from enum import StrEnum


class BottleneckKind(StrEnum):
    """The rule that found it."""

    SLO_BELOW_COMPUTE = "SloBelowCompute"
    OUT_OF_MEMORY = "OutOfMemory"
    MEMORY_PRESSURE = "MemoryPressure"
    SERIALISED_ENSEMBLE = "SerialisedEnsemble"
    STARVED_STAGE = "StarvedStage"
    SATURATED_GPU = "SaturatedGpu"
    COLLAPSED_BATCHES = "CollapsedBatches"
    WINDOW_TOO_LONG = "WindowTooLong"
    SLOW_AROUND_ENGINE = "SlowAroundEngine"
    LOW_CACHE_HIT_RATE = "LowCacheHitRate"
    IDLE_GPU = "IdleGpu"


Key = tuple[BottleneckKind, str]
"""Of a bottleneck what stays the same while its numbers change: its kind and its stage."""


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """`stage`: the model, by its resource's name, that holds requests up: itself, or a step's of an ensemble.

    `evidence` has the numbers and their thresholds in words; `advice` what to do, and whether Argosy does it by itself.
    `share`: how much of a request's time passes there, in thousandths, where that can be told.
    """

    stage: str
    kind: BottleneckKind
    evidence: str
    advice: str
    share: int | None = None

    @property
    def key(self) -> Key:
        """What stays the same while its numbers change."""
        return self.kind, self.stage
