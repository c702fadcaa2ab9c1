"""What dashboards and alerts are made of: the servers' metrics by namespace, pool and model, servers and versions
together. An ensemble is a model here, by the name that clients call it.

Rates are over five minutes. `pool` is what the PodMonitor says of a server; without it there is one pool.
"""

from argosy.render.monitoring.rules import Group, Record

MODEL = "namespace, pool, model"
POOL = "namespace, pool"
WINDOW = "5m"


def summed(metric: str) -> str:
    """Return the rate of a counter of models."""
    return f"sum by ({MODEL}) (rate({metric}[{WINDOW}]))"


def quantile(share: float, histogram: str) -> str:
    """Return a percentile over all servers of a model."""
    return f"histogram_quantile({share:g}, sum by ({MODEL}, le) (rate({histogram}_bucket[{WINDOW}])))"


def ratio(part: str, whole: str) -> str:
    """Return a share; nothing where there is no whole."""
    return f"({part}) / ({whole} > 0)"


REQUESTS = Record(
    "argosy:requests:rate5m",
    f"{summed('nv_inference_request_success')} + {summed('nv_inference_request_failure')}",
)
FAILURES = Record("argosy:failures:rate5m", summed('nv_inference_request_failure{reason!="CANCELED"}'))
ERROR_RATIO = Record("argosy:error:ratio_rate5m", ratio(FAILURES.name, REQUESTS.name))
LATENCY_P50 = Record("argosy:latency_seconds:p50_5m", quantile(0.5, "argosy_request_duration_seconds"))
LATENCY_P90 = Record("argosy:latency_seconds:p90_5m", quantile(0.9, "argosy_request_duration_seconds"))
LATENCY_P99 = Record("argosy:latency_seconds:p99_5m", quantile(0.99, "argosy_request_duration_seconds"))
LATENCY_MEAN = Record(
    "argosy:latency_seconds:mean_5m",
    f"{ratio(summed('nv_inference_request_duration_us'), summed('nv_inference_request_success'))} / 1e6",
)
BASELINE = Record("argosy:latency_seconds:p99_baseline", f"quantile_over_time(0.5, {LATENCY_P99.name}[1d] offset 1h)")
QUEUE_P99 = Record("argosy:queue_seconds:p99_5m", quantile(0.99, "argosy_queue_duration_seconds"))
QUEUE_SHARE = Record(
    "argosy:queue:share_rate5m",
    ratio(summed("nv_inference_queue_duration_us"), summed("nv_inference_request_duration_us")),
)
PENDING = Record("argosy:pending_requests:sum", f"sum by ({MODEL}) (nv_inference_pending_request_count)")
EXECUTION = Record(
    "argosy:execution_seconds:mean_5m",
    ratio(summed("argosy_execution_seconds_total"), summed("nv_inference_exec_count")),
)
BATCH = Record("argosy:batch_rows:mean_5m", ratio(summed("nv_inference_count"), summed("nv_inference_exec_count")))
BATCH_FILL = Record("argosy:batch:fill_5m", ratio(BATCH.name, f"max by ({MODEL}) (argosy_max_batch_size)"))
INSTANCES = Record("argosy:instances:sum", f"sum by ({MODEL}) (argosy_instances)")
BUSY = Record("argosy:instances_busy:ratio_rate5m", ratio(summed("argosy_instance_busy_seconds_total"), INSTANCES.name))
FIRST_RESPONSE_P95 = Record(
    "argosy:first_response_seconds:p95_5m", quantile(0.95, "argosy_first_response_duration_seconds")
)
BETWEEN_RESPONSES_P95 = Record(
    "argosy:between_responses_seconds:p95_5m", quantile(0.95, "argosy_between_responses_duration_seconds")
)
TOKENS = Record("argosy:tokens:rate5m", f"{summed('argosy_tokens_total')} or {summed('vllm:generation_tokens_total')}")
KV_CACHE = Record(
    "argosy:kv_cache:max",
    f"max by ({MODEL}) (argosy_kv_cache_utilization) or max by ({MODEL}) (vllm:kv_cache_usage_perc)",
)
ENGINE_WAITING = Record(
    "argosy:engine_waiting_requests:sum",
    f"sum by ({MODEL}) (argosy_engine_waiting_requests) or sum by ({MODEL}) (vllm:num_requests_waiting)",
)
CACHE_HITS = Record(
    "argosy:cache_hits:ratio_rate5m",
    ratio(
        summed("nv_cache_num_hits_per_model"),
        f"{summed('nv_cache_num_hits_per_model')} + {summed('nv_cache_num_misses_per_model')}",
    ),
)
GPU_USED = Record("argosy:gpu_utilization:avg", f"avg by ({POOL}) (nv_gpu_utilization)")
GPU_MEMORY = Record(
    "argosy:gpu_memory:max_ratio", f"max by ({POOL}) (nv_gpu_memory_used_bytes / nv_gpu_memory_total_bytes)"
)

RECORDING = (
    Group(
        "argosy-models",
        (
            REQUESTS,
            FAILURES,
            ERROR_RATIO,
            LATENCY_P50,
            LATENCY_P90,
            LATENCY_P99,
            LATENCY_MEAN,
            QUEUE_P99,
            QUEUE_SHARE,
            PENDING,
            EXECUTION,
            BATCH,
            BATCH_FILL,
            INSTANCES,
            BUSY,
            FIRST_RESPONSE_P95,
            BETWEEN_RESPONSES_P95,
            TOKENS,
            KV_CACHE,
            ENGINE_WAITING,
            CACHE_HITS,
        ),
    ),
    Group("argosy-gpus", (GPU_USED, GPU_MEMORY)),
    # A day's worth of every model's latency is looked at, so seldom.
    Group("argosy-baselines", (BASELINE,), interval="5m"),
)
