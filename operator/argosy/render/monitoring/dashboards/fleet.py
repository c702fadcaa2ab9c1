"""The fleet at a glance: what is asked of it, how it answers, what it runs on, what is wrong."""

from argosy.render.monitoring import recording as r
from argosy.render.monitoring.dashboards.dashboard import Dashboard, Look, Panel, Query, Row, Unit, Variable

_IN = '{namespace=~"$namespace", pool=~"$pool"}'
_MODEL = "{{model}}"
_POOL = "{{namespace}}/{{pool}}"

_GLANCE = Row(
    "At a glance",
    (
        Panel(
            "Requests",
            "Requests a second, of all models.",
            (Query(f"sum({r.REQUESTS.name}{_IN})"),),
            Unit.PER_SECOND,
            Look.STAT,
            4,
        ),
        Panel(
            "Errors",
            "The share of them that fails; 0.1 % is too many.",
            (Query(f"sum({r.FAILURES.name}{_IN}) / sum({r.REQUESTS.name}{_IN})"),),
            Unit.SHARE,
            Look.STAT,
            4,
        ),
        Panel(
            "Slowest p99",
            "Of all models, the longest.",
            (Query(f"max({r.LATENCY_P99.name}{_IN})"),),
            Unit.SECONDS,
            Look.STAT,
            4,
        ),
        Panel(
            "GPU use",
            "Of all GPUs of the pools; 70 to 90 % is good.",
            (Query(f"avg({r.GPU_USED.name}{_IN})"),),
            Unit.SHARE,
            Look.STAT,
            4,
        ),
        Panel("Servers", "Servers that answer.", (Query(f"sum(up{_IN})"),), Unit.NONE, Look.STAT, 4),
        Panel(
            "Held up",
            "Models and ensembles with a bottleneck.",
            (Query(f"sum(argosy_bottleneck{_IN})"),),
            Unit.NONE,
            Look.STAT,
            4,
        ),
    ),
)
_LOAD = Row(
    "Load and answers",
    (
        Panel("Requests", "Requests a second.", (Query(f"{r.REQUESTS.name}{_IN}", _MODEL),), Unit.PER_SECOND),
        Panel(
            "Latency p99",
            "From request to last response.",
            (Query(f"{r.LATENCY_P99.name}{_IN}", _MODEL),),
            Unit.SECONDS,
        ),
        Panel("Errors", "The share that fails.", (Query(f"{r.ERROR_RATIO.name}{_IN}", _MODEL),), Unit.SHARE),
        Panel("Waiting", "Requests that wait for an instance.", (Query(f"{r.PENDING.name}{_IN}", _MODEL),)),
        Panel(
            "Queue's share",
            "How much of a request's time is waiting. Over 50 %: too few instances, or too long a window.",
            (Query(f"{r.QUEUE_SHARE.name}{_IN}", _MODEL),),
            Unit.SHARE,
        ),
        Panel(
            "Busy",
            "The share of instances' time that they execute.",
            (Query(f"{r.BUSY.name}{_IN}", _MODEL),),
            Unit.SHARE,
        ),
    ),
)
_GPUS = Row(
    "GPUs",
    (
        Panel(
            "Use",
            "Of each GPU; an idle one beside a queue is a stage that starves.",
            (Query(f"nv_gpu_utilization{_IN}", "{{pod}} {{gpu_uuid}}"),),
            Unit.SHARE,
        ),
        Panel("Memory", "Of the fullest GPU of a pool.", (Query(f"{r.GPU_MEMORY.name}{_IN}", _POOL),), Unit.SHARE),
        Panel(
            "Replicas",
            "Replicas there are to be.",
            (Query(f"sum by (namespace, pool) (argosy_scaling_replicas{_IN})", _POOL),),
        ),
    ),
)
_SCALING = Row(
    "Scaling and bottlenecks",
    (
        Panel(
            "What holds requests up",
            "By rule and stage; status.bottleneck has evidence and advice.",
            (Query(f"sum by (namespace, kind, name, bottleneck, stage) (argosy_bottleneck{_IN})"),),
            look=Look.TABLE,
            width=12,
        ),
        Panel(
            "Replicas",
            "There are to be, and asked for by the load.",
            (
                Query(f"sum by (namespace, kind, name) (argosy_scaling_replicas{_IN})"),
                Query(f"sum by (namespace, kind, name) (argosy_scaling_desired_replicas{_IN})"),
            ),
            look=Look.TABLE,
            width=12,
        ),
        Panel(
            "Changes",
            "How often replicas, instances or batching were changed within an hour.",
            (Query(f"changes(argosy_scaling_last_change_timestamp_seconds{_IN}[1h])", "{{name}}"),),
        ),
        Panel(
            "Without signals",
            "Where nothing fresh is known, nothing is scaled down.",
            (Query(f"max by (namespace, pool) (argosy_scaling_without_signals{_IN})", _POOL),),
        ),
        Panel(
            "Held",
            "Requests that wait at an activator for a model without a server.",
            (Query(f"sum by (namespace, pool, model) (argosy_activator_held_requests{_IN})", _MODEL),),
        ),
        Panel(
            "Rounds",
            "How long the operator's rounds of a pool take.",
            (Query("histogram_quantile(0.99, sum by (le) (rate(argosy_reconcile_seconds_bucket[5m])))", "p99"),),
            Unit.SECONDS,
        ),
    ),
)

FLEET = Dashboard(
    "argosy-fleet",
    "Argosy / Fleet",
    "All pools and models: load, latency, errors, GPUs, scaling, what holds requests up.",
    (
        Variable("namespace", "nv_inference_request_success", "namespace", several=True),
        Variable("pool", 'nv_inference_request_success{namespace=~"$namespace"}', "pool", several=True),
    ),
    (_GLANCE, _LOAD, _GPUS, _SCALING),
)
