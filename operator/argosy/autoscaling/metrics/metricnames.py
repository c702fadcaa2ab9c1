"""The names under which servers expose what is read of them: Triton's, our runtime's, vLLM's and TensorRT-LLM's.

Where several names tell the same, the first that a server has is taken.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from .series import CounterName, GaugeName, HistogramName


@dataclass(frozen=True, slots=True)
class Source:
    """A metric's name, what its value is multiplied by, and the one label that it must have: of a name always the same,
    with this value.
    """

    name: str
    scale: float = 1.0
    label: str = ""
    value: str = ""


_FAILURES = ("argosy_request_failures_total", "nv_inference_request_failure")
"""Ours has reasons of its own, where Triton's says OTHER."""
_US, _MS = 1e-6, 1e-3


def _failed(reason: str) -> tuple[Source, ...]:
    return tuple(Source(name, label="reason", value=reason) for name in _FAILURES)


COUNTERS: Mapping[CounterName, tuple[Source, ...]] = {
    CounterName.ANSWERED: (Source("nv_inference_request_success"),),
    CounterName.REQUEST_S: (Source("nv_inference_request_duration_us", _US),),
    CounterName.QUEUE_S: (Source("nv_inference_queue_duration_us", _US),),
    CounterName.INPUT_S: (Source("nv_inference_compute_input_duration_us", _US),),
    CounterName.INFER_S: (Source("nv_inference_compute_infer_duration_us", _US),),
    CounterName.OUTPUT_S: (Source("nv_inference_compute_output_duration_us", _US),),
    CounterName.ROWS: (Source("nv_inference_count"),),
    CounterName.EXECUTIONS: (Source("nv_inference_exec_count"),),
    CounterName.EXECUTING_S: (Source("argosy_execution_seconds_total"),),
    CounterName.BUSY_S: (Source("argosy_instance_busy_seconds_total"),),
    CounterName.CACHE_HITS: (Source("nv_cache_num_hits_per_model"),),
    CounterName.CACHE_MISSES: (Source("nv_cache_num_misses_per_model"),),
    CounterName.TOKENS: (Source("argosy_tokens_total"), Source("vllm:generation_tokens_total")),
    CounterName.REJECTED: _failed("REJECTED"),
    CounterName.TIMED_OUT: _failed("TIMEOUT"),
    CounterName.OUT_OF_MEMORY: _failed("OUT_OF_MEMORY"),
    CounterName.CANCELED: _failed("CANCELED"),
    CounterName.BACKEND_FAILED: _failed("BACKEND"),
    CounterName.OTHER_FAILED: _failed("OTHER"),
}
_SUMMARY, _QUEUE_SUMMARY = "nv_inference_request_summary_us", "nv_inference_queue_summary_us"
_TRTLLM, _TRTLLM_CACHE = "nv_trt_llm_request_metrics", "nv_trt_llm_kv_cache_block_metrics"


def _quantile(name: str, quantile: str) -> tuple[Source, ...]:
    """Of summaries, which Triton has where it is asked for them."""
    return (Source(name, _US, "quantile", quantile),)


GAUGES: Mapping[GaugeName, tuple[Source, ...]] = {
    GaugeName.PENDING: (Source("nv_inference_pending_request_count"),),
    GaugeName.RUNNING: (Source("argosy_running_requests"),),
    GaugeName.INSTANCES: (Source("argosy_instances"),),
    GaugeName.MAX_BATCH: (Source("argosy_max_batch_size"),),
    GaugeName.ENGINE_WAITING: (
        Source("argosy_engine_waiting_requests"),
        Source("vllm:num_requests_waiting"),
        Source(_TRTLLM, label="request_type", value="waiting"),
    ),
    GaugeName.ENGINE_RUNNING: (
        Source("argosy_engine_running_requests"),
        Source("vllm:num_requests_running"),
        Source(_TRTLLM, label="request_type", value="active"),
    ),
    GaugeName.KV_CACHE: (
        Source("argosy_kv_cache_utilization"),
        Source("vllm:kv_cache_usage_perc"),
        Source("vllm:gpu_cache_usage_perc"),
        Source(_TRTLLM_CACHE, label="kv_cache_block_type", value="fraction"),
    ),
    GaugeName.LATENCY_P50: _quantile(_SUMMARY, "0.5"),
    GaugeName.LATENCY_P90: _quantile(_SUMMARY, "0.9"),
    GaugeName.LATENCY_P95: _quantile(_SUMMARY, "0.95"),
    GaugeName.LATENCY_P99: _quantile(_SUMMARY, "0.99"),
    GaugeName.LATENCY_P999: _quantile(_SUMMARY, "0.999"),
    GaugeName.QUEUE_P50: _quantile(_QUEUE_SUMMARY, "0.5"),
    GaugeName.QUEUE_P90: _quantile(_QUEUE_SUMMARY, "0.9"),
    GaugeName.QUEUE_P95: _quantile(_QUEUE_SUMMARY, "0.95"),
    GaugeName.QUEUE_P99: _quantile(_QUEUE_SUMMARY, "0.99"),
    GaugeName.QUEUE_P999: _quantile(_QUEUE_SUMMARY, "0.999"),
}
HISTOGRAMS: Mapping[HistogramName, tuple[Source, ...]] = {
    HistogramName.LATENCY: (Source("argosy_request_duration_seconds"),),
    HistogramName.QUEUE: (Source("argosy_queue_duration_seconds"),),
    HistogramName.FIRST_TOKEN: (
        Source("vllm:time_to_first_token_seconds"),
        Source("argosy_first_response_duration_seconds"),
        Source("nv_inference_first_response_histogram_ms", _MS),
    ),
    HistogramName.BETWEEN_TOKENS: (
        Source("vllm:inter_token_latency_seconds"),
        Source("vllm:time_per_output_token_seconds"),
        Source("argosy_between_responses_duration_seconds"),
    ),
}
GPU_UTILIZATION, GPU_USED, GPU_TOTAL = (
    "nv_gpu_utilization",
    "nv_gpu_memory_used_bytes",
    "nv_gpu_memory_total_bytes",
)
_PARTS = ("_bucket", "_sum", "_count")


def _plain() -> frozenset[str]:
    sources = [source for table in (COUNTERS, GAUGES) for sources in table.values() for source in sources]
    return frozenset(source.name for source in sources) | {GPU_UTILIZATION, GPU_USED, GPU_TOTAL}


def _histogram() -> frozenset[str]:
    return frozenset(f"{source.name}{part}" for sources in HISTOGRAMS.values() for source in sources for part in _PARTS)


SAMPLE_NAMES = _plain() | _histogram()
"""The names of all samples that are read."""
