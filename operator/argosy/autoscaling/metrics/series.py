"""What one server exposed at one time, model by model, with the metrics' names already understood."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

ModelKey = tuple[str, int]
"""A model's name, as the server knows it, and its version."""


class CounterName(StrEnum):
    """What only grows, until a model or its server starts again. Durations are in seconds."""

    ANSWERED = "answered"
    REQUEST_S = "request time of those answered"
    QUEUE_S = "waiting time of those answered"
    INPUT_S = "time of copying inputs, once for each request"
    INFER_S = "time of inference, once for each request"
    OUTPUT_S = "time of copying outputs, once for each request"
    ROWS = "rows executed"
    EXECUTIONS = "executions"
    EXECUTING_S = "time of executions, once for each"
    BUSY_S = "time that instances spent executing"
    CACHE_HITS = "requests that the response cache answered"
    CACHE_MISSES = "requests that it did not"
    TOKENS = "tokens generated"
    REJECTED = "refused by a full queue"
    TIMED_OUT = "given up in the queue"
    OUT_OF_MEMORY = "failed for lack of memory"
    CANCELED = "cancelled by their client"
    BACKEND_FAILED = "failed in their model"
    OTHER_FAILED = "failed for other reasons"


class GaugeName(StrEnum):
    """What is so at one time."""

    PENDING = "pending requests"
    RUNNING = "running requests"
    INSTANCES = "instances"
    MAX_BATCH = "most rows of a batch"
    ENGINE_WAITING = "requests that wait in the engine"
    ENGINE_RUNNING = "requests that run in the engine"
    KV_CACHE = "share of the KV cache in use"
    LATENCY_P50 = "latency p50"
    LATENCY_P90 = "latency p90"
    LATENCY_P95 = "latency p95"
    LATENCY_P99 = "latency p99"
    LATENCY_P999 = "latency p999"
    QUEUE_P50 = "queue p50"
    QUEUE_P90 = "queue p90"
    QUEUE_P95 = "queue p95"
    QUEUE_P99 = "queue p99"
    QUEUE_P999 = "queue p999"


class HistogramName(StrEnum):
    """What is counted by how long it took."""

    LATENCY = "latency"
    QUEUE = "queue"
    FIRST_TOKEN = "first token"
    BETWEEN_TOKENS = "between tokens"


@dataclass(frozen=True, slots=True)
class Histogram:
    """`counts` of what took at most each of `bounds` (seconds, rising, the last of them infinite), and the sum."""

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    total_s: float = 0.0

    @property
    def count(self) -> float:
        """All of them."""
        return self.counts[-1] if self.counts else 0.0


@dataclass(frozen=True, slots=True)
class ModelSeries:
    """One version of a model on one server. What is missing was not exposed, or cannot be so."""

    counters: Mapping[CounterName, float] = field(default_factory=dict)
    gauges: Mapping[GaugeName, float] = field(default_factory=dict)
    histograms: Mapping[HistogramName, Histogram] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GpuSeries:
    """One GPU: utilization from 0 to 1, memory in bytes. None: not exposed, or it cannot be so."""

    utilization: float | None = None
    memory_used: int | None = None
    memory_total: int | None = None


@dataclass(frozen=True, slots=True)
class Exposed:
    """All of one server. `at`: seconds of the clock of the read it; `gpus` by UUID."""

    at: float
    models: Mapping[ModelKey, ModelSeries] = field(default_factory=dict)
    gpus: Mapping[str, GpuSeries] = field(default_factory=dict)
