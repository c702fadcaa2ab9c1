"""One ensemble and its stages side by side: which of them limits it."""

from argosy.render.monitoring import recording as r
from argosy.render.monitoring.dashboards.dashboard import Dashboard, Look, Panel, Query, Row, Unit, Variable

_WHOLE = '{namespace="$namespace", pool=~"$pool", model="$ensemble"}'
_STAGES = '{namespace="$namespace", pool=~"$pool", model=~"$stage"}'
_MODEL = "{{model}}"


def _per_request(part: str) -> str:
    """How long a request is in a part of each stage, on average. Seconds."""
    spent = f"sum by (model) (rate(nv_inference_{part}_duration_us{_STAGES}[5m]))"
    return f"{spent} / (sum by (model) (rate(nv_inference_request_success{_STAGES}[5m])) > 0) / 1e6"


_AS_A_WHOLE = Row(
    "The ensemble",
    (
        Panel(
            "Latency",
            "From request to last response.",
            (
                Query(f"{r.LATENCY_P50.name}{_WHOLE}", "p50"),
                Query(f"{r.LATENCY_P99.name}{_WHOLE}", "p99"),
                Query(f"{r.LATENCY_MEAN.name}{_WHOLE}", "mean"),
            ),
            Unit.SECONDS,
        ),
        Panel(
            "Requests",
            "Requests a second.",
            (Query(f"{r.REQUESTS.name}{_WHOLE}", "all"), Query(f"{r.FAILURES.name}{_WHOLE}", "failed")),
            Unit.PER_SECOND,
        ),
        Panel(
            "Bottleneck",
            "What held its requests up, by rule and stage.",
            (Query(f"sum by (bottleneck, stage) (argosy_bottleneck{_WHOLE})", "{{bottleneck}} of {{stage}}"),),
            look=Look.STATES,
        ),
    ),
)
_BY_STAGE = Row(
    "Its stages",
    (
        Panel(
            "Time in each stage",
            "Of a request, on average, stacked: where one is wide, the ensemble is slow there.",
            (Query(_per_request("request"), _MODEL),),
            Unit.SECONDS,
            width=12,
            stacked=True,
        ),
        Panel(
            "Waiting in each stage",
            "For an instance, or for a batch. The widest starves: it needs more instances.",
            (Query(_per_request("queue"), _MODEL),),
            Unit.SECONDS,
            width=12,
            stacked=True,
        ),
        Panel(
            "Busy",
            "The share of instances' time that they execute.",
            (Query(f"{r.BUSY.name}{_STAGES}", _MODEL),),
            Unit.SHARE,
        ),
        Panel("Instances", "Loaded on all servers.", (Query(f"{r.INSTANCES.name}{_STAGES}", _MODEL),)),
        Panel("Waiting", "Requests that wait now.", (Query(f"{r.PENDING.name}{_STAGES}", _MODEL),)),
        Panel("Rows of a batch", "The mean.", (Query(f"{r.BATCH.name}{_STAGES}", _MODEL),)),
        Panel(
            "GPU use",
            "Of the pool's GPUs: idle ones beside waiting requests mean too few instances.",
            (Query('avg by (pod) (nv_gpu_utilization{namespace="$namespace", pool=~"$pool"})', "{{pod}}"),),
            Unit.SHARE,
        ),
        Panel(
            "Errors",
            "The share of each stage's requests that fails.",
            (Query(f"{r.ERROR_RATIO.name}{_STAGES}", _MODEL),),
            Unit.SHARE,
        ),
    ),
)

ENSEMBLE = Dashboard(
    "argosy-ensemble",
    "Argosy / Ensemble",
    "One ensemble and its stages: which of them limits it.",
    (
        Variable("namespace", "argosy_ensemble_step", "namespace"),
        Variable("pool", 'argosy_ensemble_step{namespace="$namespace"}', "pool", several=True),
        Variable("ensemble", 'argosy_ensemble_step{namespace="$namespace", pool=~"$pool"}', "ensemble"),
        Variable("stage", 'argosy_ensemble_step{namespace="$namespace", ensemble="$ensemble"}', "model", several=True),
    ),
    (_AS_A_WHOLE, _BY_STAGE),
)
