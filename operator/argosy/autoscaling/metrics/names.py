"""The metrics that are read of servers: by the names of Argosy's, Triton's, vLLM's and TensorRT-LLM's.

Each has one or more sources, of which the first that a server exposes counts. `name{value}` is the metric `name` with
this value of the one label that distinguishes its samples.
"""

from enum import Enum


def _failures(reason: str) -> tuple[str, ...]:
    """Return ours before Triton's, which has fewer reasons."""
    return f"argosy_request_failures_total{{{reason}}}", f"nv_inference_request_failure{{{reason}}}"


class Counter(Enum):
    """Values that grow until their model or server restarts. Durations are summed over requests, or over executions."""

    ANSWERED = ("nv_inference_request_success",)
    REQUEST = ("nv_inference_request_duration_us",)
    QUEUE = ("nv_inference_queue_duration_us",)
    INPUT = ("nv_inference_compute_input_duration_us",)
    INFER = ("nv_inference_compute_infer_duration_us",)
    OUTPUT = ("nv_inference_compute_output_duration_us",)
    ROWS = ("nv_inference_count",)
    EXECUTIONS = ("nv_inference_exec_count",)
    EXECUTING = ("argosy_execution_seconds_total",)
    BUSY = ("argosy_instance_busy_seconds_total",)
    CACHE_HITS = ("nv_cache_num_hits_per_model",)
    CACHE_MISSES = ("nv_cache_num_misses_per_model",)
    TOKENS = ("argosy_tokens_total", "vllm:generation_tokens_total")
    PROMPT_TOKENS = ("argosy_prompt_tokens_total", "vllm:prompt_tokens_total")
    CACHED_TOKENS = ("argosy_cached_tokens_total", "vllm:prefix_cache_hits_total")
    PREEMPTIONS = ("argosy_engine_preemptions_total", "vllm:num_preemptions_total")
    MODEL_ERRORS = ("argosy_model_errors_total",)
    INSTANCES_LOST = ("argosy_instances_lost_total",)
    FAILED_LOADS = ("argosy_model_load_failure_count",)


class Routed(Enum):
    """Counters of the requests without a version that a version was sent, by what decided."""

    BY_WEIGHT = ("argosy_version_requests_total{weight}",)
    BY_KEY = ("argosy_version_requests_total{key}",)
    BY_SEQUENCE = ("argosy_version_requests_total{sequence}",)


class Failure(Enum):
    """Counters of requests that were not answered, by reason."""

    REJECTED = _failures("REJECTED")
    TIMED_OUT = _failures("TIMEOUT")
    OUT_OF_MEMORY = _failures("OUT_OF_MEMORY")
    CANCELED = _failures("CANCELED")
    INVALID = ("argosy_request_failures_total{INVALID}",)
    BACKEND = _failures("BACKEND")
    OTHER = _failures("OTHER")


class Gauge(Enum):
    """Values of the present."""

    PENDING = ("nv_inference_pending_request_count",)
    RUNNING = ("argosy_running_requests",)
    INSTANCES = ("argosy_instances",)
    MAX_BATCH = ("argosy_max_batch_size",)
    QUEUE_DELAY = ("argosy_max_queue_delay_seconds",)
    ENGINE_WAITING = (
        "argosy_engine_waiting_requests",
        "vllm:num_requests_waiting",
        "nv_trt_llm_request_metrics{waiting}",
    )
    ENGINE_RUNNING = (
        "argosy_engine_running_requests",
        "vllm:num_requests_running",
        "nv_trt_llm_request_metrics{active}",
    )
    HOST_MEMORY = ("argosy_model_memory_bytes{CPU}",)
    GPU_MEMORY = ("argosy_model_memory_bytes{GPU}",)
    MEMORY_TIME = ("argosy_model_memory_time_seconds",)
    KV_CACHE = (
        "argosy_kv_cache_utilization",
        "vllm:kv_cache_usage_perc",
        "vllm:gpu_cache_usage_perc",
        "nv_trt_llm_kv_cache_block_metrics{fraction}",
    )


class PerVariant(Enum):
    """Values of each variant of a routed model, by the label `variant`: a counter, and values of the present."""

    REQUESTS = ("argosy_variant_requests_total",)
    IN_FLIGHT = ("argosy_variant_in_flight_requests",)
    REGIME = ("argosy_variant_regime",)
    REGIME_S = ("argosy_variant_regime_seconds",)
    READY = ("argosy_variant_ready",)
    ASLEEP = ("argosy_variant_asleep",)
    CROSSOVER_LOW = ("argosy_variant_crossover_low",)
    CROSSOVER_HIGH = ("argosy_variant_crossover_high",)
    COMPARED = ("argosy_variant_compared_requests",)
    CROSSOVER_FITS = ("argosy_variant_crossover_fits",)


class PerSize(Enum):
    """Counters of executions by the size of their batches, in the label `rows`."""

    ROWS = ("argosy_batched_rows_total",)
    SECONDS = ("argosy_batch_seconds_total",)


SEPARATOR = "\x1f"
"""What separates the labels of a source that has several; no request's id needs it."""


class PerShadow(Enum):
    """Counters and gauges of the candidate of a shadow, with the labels that distinguish their samples."""

    OUTCOMES = ("argosy_shadow_requests_total", "outcome")
    FAILURES = ("argosy_shadow_failures_total", "reason")
    OBSTACLES = ("argosy_shadow_uncompared_total", "reason")
    DIFFERENT = ("argosy_shadow_output_different_total", "output")
    ROWS = ("argosy_shadow_rows_total", "output")
    AGREEING = ("argosy_shadow_rows_agreeing_total", "output")
    LARGEST = ("argosy_shadow_difference_max", "output")
    EXAMPLE = ("argosy_shadow_example", "output", "request_id", "kind")
    CALLS = ("argosy_shadow_calls_total",)

    @property
    def source(self) -> str:
        """The metric's name."""
        return str(self.value[0])

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels' names."""
        return tuple(self.value[1:])


class HistogramName(Enum):
    """Durations that are counted in buckets, and the sizes of batches."""

    BATCH_ROWS = ("argosy_batch_rows",)

    SHADOW_STABLE = ("argosy_shadow_stable_duration_seconds",)
    SHADOW_CANDIDATE = ("argosy_shadow_candidate_duration_seconds",)
    LATENCY = ("argosy_request_duration_seconds",)
    QUEUE = ("argosy_queue_duration_seconds",)
    ENGINE_QUEUE = ("argosy_engine_queue_duration_seconds", "vllm:request_queue_time_seconds")
    FIRST_TOKEN = (
        "argosy_first_token_duration_seconds",
        "vllm:time_to_first_token_seconds",
        "argosy_first_response_duration_seconds",
        "nv_inference_first_response_histogram_ms",
    )
    BETWEEN_TOKENS = (
        "argosy_between_tokens_duration_seconds",
        "vllm:inter_token_latency_seconds",
        "vllm:time_per_output_token_seconds",
        "argosy_between_responses_duration_seconds",
    )


LATENCY_SUMMARY, QUEUE_SUMMARY = "nv_inference_request_summary_us", "nv_inference_queue_summary_us"
