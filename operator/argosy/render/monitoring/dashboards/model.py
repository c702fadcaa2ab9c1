"""One model or ensemble, as clients call it: where its requests' time goes, and what scaling makes of it."""

from argosy.render.monitoring import recording as r
from argosy.render.monitoring.dashboards.dashboard import Dashboard, Look, Panel, Query, Row, Unit, Variable

_IN = 'namespace="$namespace", pool=~"$pool", model="$model"'
_OF = f"{{{_IN}}}"
_ANSWERED = f"sum(rate(nv_inference_request_success{_OF}[5m]))"


def _per_request(part: str, legend: str) -> Query:
    """How long a request is in a part of its way, on average. Seconds."""
    metric = f"nv_inference_{part}_duration_us"
    return Query(f"sum(rate({metric}{_OF}[5m])) / ({_ANSWERED} > 0) / 1e6", legend)


_REQUESTS = Row(
    "Requests",
    (
        Panel(
            "Requests",
            "Answered, by version, and failed, by reason.",
            (
                Query(f"sum by (version) (rate(nv_inference_request_success{_OF}[5m]))", "version {{version}}"),
                Query(f"sum by (reason) (rate(nv_inference_request_failure{_OF}[5m])) > 0", "failed: {{reason}}"),
            ),
            Unit.PER_SECOND,
        ),
        Panel(
            "Latency",
            "From request to last response, over all servers.",
            (
                Query(f"{r.LATENCY_P50.name}{_OF}", "p50"),
                Query(f"{r.LATENCY_P90.name}{_OF}", "p90"),
                Query(f"{r.LATENCY_P99.name}{_OF}", "p99"),
                Query(f"{r.BASELINE.name}{_OF}", "p99 over the last day"),
            ),
            Unit.SECONDS,
        ),
        Panel(
            "Where the time goes",
            "The parts of a request's way, on average. Much queue: instances; much compute: the model.",
            (
                _per_request("queue", "queue"),
                _per_request("compute_input", "gathering inputs"),
                _per_request("compute_infer", "the model"),
                _per_request("compute_output", "splitting outputs"),
            ),
            Unit.SECONDS,
            stacked=True,
        ),
        Panel(
            "Waiting and running",
            "Requests now, on all servers.",
            (
                Query(f"sum(nv_inference_pending_request_count{_OF})", "waiting"),
                Query(f"sum(argosy_running_requests{_OF})", "running"),
            ),
        ),
        Panel(
            "Failures",
            "By reason, of which TIMEOUT and OUT_OF_MEMORY are Argosy's.",
            (Query(f"sum by (reason) (increase(argosy_request_failures_total{_OF}[5m])) > 0", "{{reason}}"),),
        ),
        Panel(
            "Cache hits",
            "The share that the response cache answers.",
            (Query(f"{r.CACHE_HITS.name}{_OF}", "hits"),),
            Unit.SHARE,
        ),
    ),
)
_BATCHES = Row(
    "Batches and instances",
    (
        Panel(
            "Batches by rows",
            "How many executions had so many rows.",
            (Query(f"sum by (le) (rate(argosy_batch_rows_bucket{_OF}[5m]))", "{{le}}"),),
            look=Look.HEATMAP,
        ),
        Panel(
            "Rows of a batch",
            "The mean, and the most there may be. One row under load: a longer window would help.",
            (Query(f"{r.BATCH.name}{_OF}", "mean"), Query(f"max(argosy_max_batch_size{_OF})", "most")),
        ),
        Panel(
            "Window and execution",
            "How long a batch may wait for more, and how long it is executed.",
            (
                Query(f"max(argosy_max_queue_delay_seconds{_OF})", "window"),
                Query(f"{r.EXECUTION.name}{_OF}", "execution"),
                Query(f"{r.QUEUE_P99.name}{_OF}", "queue p99"),
            ),
            Unit.SECONDS,
        ),
        Panel(
            "Busy",
            "The share of instances' time that they execute.",
            (Query(f"{r.BUSY.name}{_OF}", "busy"), Query(f"{r.QUEUE_SHARE.name}{_OF}", "queue's share of a request")),
            Unit.SHARE,
        ),
        Panel(
            "Instances",
            "Loaded on all servers, and those with a batch now.",
            (Query(f"sum(argosy_instances{_OF})", "loaded"), Query(f"sum(argosy_instances_busy{_OF})", "busy")),
        ),
        Panel(
            "Loading",
            "How long a version took to load.",
            (Query(f"max by (version) (nv_model_load_duration_secs{_OF})", "version {{version}}"),),
            Unit.SECONDS,
        ),
    ),
)
_SCALING = Row(
    "Scaling",
    (
        Panel(
            "Replicas",
            "There are to be, and asked for by the load: where they differ, status.scaling.limitedBy says why.",
            (
                Query(f"sum(argosy_scaling_replicas{_OF})", "replicas"),
                Query(f"sum(argosy_scaling_desired_replicas{_OF})", "desired"),
                Query(f"max(argosy_scaling_instances{_OF})", "instances on each device"),
            ),
        ),
        Panel(
            "What decides",
            "The number that decided, and what it should be at most; durations are in seconds.",
            (
                Query(f"argosy_scaling_observed{_OF}", "{{metric}}"),
                Query(f"argosy_scaling_target{_OF}", "{{metric}}, at most"),
            ),
        ),
        Panel(
            "Load and capacity",
            "Requests a second that are reckoned with, and that all replicas hold within their targets.",
            (
                Query(f"sum(argosy_scaling_expected_requests_per_second{_OF})", "expected"),
                Query(
                    f"sum(argosy_scaling_replica_requests_per_second{_OF} * argosy_scaling_replicas{_OF})",
                    "held by all replicas",
                ),
            ),
        ),
        Panel(
            "Bottleneck",
            "What held requests up, by rule and stage.",
            (Query(f"sum by (bottleneck, stage) (argosy_bottleneck{_OF})", "{{bottleneck}} of {{stage}}"),),
            look=Look.STATES,
        ),
    ),
)
_GENERATING = Row(
    "Language models",
    (
        Panel(
            "First response",
            "From request to first response, p95: of a language model, to its first token.",
            (Query(f"{r.FIRST_RESPONSE_P95.name}{_OF}", "p95"),),
            Unit.SECONDS,
        ),
        Panel(
            "Between responses",
            "From one response to the next one to the same request, p95.",
            (Query(f"{r.BETWEEN_RESPONSES_P95.name}{_OF}", "p95"),),
            Unit.SECONDS,
        ),
        Panel("Tokens", "Generated a second, by the engine's own count.", (Query(f"{r.TOKENS.name}{_OF}", "tokens"),)),
        Panel(
            "KV cache",
            "In use, of the fullest engine; over 90 % requests wait for room in it.",
            (Query(f"{r.KV_CACHE.name}{_OF}", "in use"),),
            Unit.SHARE,
        ),
        Panel(
            "Waiting in the engine",
            "Requests that the engine does not generate for yet.",
            (Query(f"{r.ENGINE_WAITING.name}{_OF}", "waiting"),),
        ),
    ),
)

MODEL = Dashboard(
    "argosy-model",
    "Argosy / Model",
    "One model or ensemble: requests, batches, instances, scaling.",
    (
        Variable("namespace", "nv_inference_request_success", "namespace"),
        Variable("pool", 'nv_inference_request_success{namespace="$namespace"}', "pool", several=True),
        Variable("model", 'nv_inference_request_success{namespace="$namespace", pool=~"$pool"}', "model"),
    ),
    (_REQUESTS, _BATCHES, _SCALING, _GENERATING),
)
