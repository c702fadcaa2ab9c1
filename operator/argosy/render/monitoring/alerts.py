"""What somebody should know: the seeds' thresholds, over the recorded series. Pure.

`status.bottleneck` and `status.scaling` of a resource say why, with the numbers; alerts say that it is time to look.
"""

from argosy.render.monitoring import recording as r
from argosy.render.monitoring.rules import Alert, Group, Severity

_WHO = "{{ $labels.model }} of pool {{ $labels.pool }} in {{ $labels.namespace }}"
_POOL = "pool {{ $labels.pool }} in {{ $labels.namespace }}"
_RESOURCE = "{{ $labels.kind }} {{ $labels.namespace }}/{{ $labels.name }}"
_SERVER = "namespace, pool, server, pod, instance, model, version"

LATENCY = Alert(
    "ArgosyLatencyHigh",
    f"{r.LATENCY_P99.name} > 2 * {r.BASELINE.name} and {r.REQUESTS.name} > 0.1",
    "10m",
    Severity.WARNING,
    f"p99 of {_WHO} is more than twice what it was over the last day.",
    "It is {{ $value | humanizeDuration }}. Its status.bottleneck says what holds requests up.",
)
ERRORS = Alert(
    "ArgosyErrorRateHigh",
    f"{r.ERROR_RATIO.name} > 0.001",
    "5m",
    Severity.WARNING,
    f"More than 0.1 % of the requests to {_WHO} fail.",
    "{{ $value | humanizePercentage }} fail; argosy_request_failures_total says by reason, the server's log says why.",
)
QUEUE = Alert(
    "ArgosyQueueDeep",
    f"max by ({_SERVER}) (nv_inference_pending_request_count) > clamp_min(max by ({_SERVER}) "
    "(argosy_max_batch_size), 1)",
    "2m",
    Severity.WARNING,
    f"More requests wait for {_WHO} than its largest batch takes.",
    "{{ $value }} wait on {{ $labels.pod }}. It needs more instances or replicas; status.scaling says what keeps it.",
)
OUT_OF_MEMORY = Alert(
    "ArgosyOutOfMemory",
    f'sum by ({r.MODEL}) (increase(argosy_request_failures_total{{reason="OUT_OF_MEMORY"}}[5m])) > 0',
    "0m",
    Severity.CRITICAL,
    f"Requests to {_WHO} fail for want of memory.",
    "Smaller batches, fewer instances or a higher footprint.gpuMemory give it room; status.scaling says what is done.",
)
SLOW_LOAD = Alert(
    "ArgosyModelLoadSlow",
    f"max by ({r.MODEL}) (nv_model_load_duration_secs) > 5",
    "0m",
    Severity.INFO,
    f"Loading {_WHO} took more than five seconds.",
    "It took {{ $value | humanizeDuration }}, which every new replica takes too; an engine or a warm cache helps.",
)
FAILED_LOAD = Alert(
    "ArgosyModelLoadFailing",
    f"sum by ({r.MODEL}) (increase(argosy_model_load_failure_count[10m])) > 0",
    "0m",
    Severity.WARNING,
    f"A version of {_WHO} cannot be loaded.",
    "What served before goes on. The resource's condition Loaded has the server's words.",
)
BATCHES = Alert(
    "ArgosyBatchesSmall",
    f"{r.BATCH_FILL.name} < 0.25 and {r.BUSY.name} > 0.7 and max by ({r.MODEL}) (argosy_max_batch_size) > 1",
    "15m",
    Severity.INFO,
    f"Batches of {_WHO} are filled less than a quarter, while its instances are busy.",
    "They are filled {{ $value | humanizePercentage }}. A longer batching.maxQueueDelayMicroseconds, within the "
    "latency budget, does more with the same GPU.",
)
CACHE = Alert(
    "ArgosyCacheHitsLow",
    f"{r.CACHE_HITS.name} < 0.7 and {r.REQUESTS.name} > 1",
    "30m",
    Severity.INFO,
    f"The response cache answers fewer than 70 % of the requests to {_WHO}.",
    "It answers {{ $value | humanizePercentage }}. The pool's spec.cache may be too small for what repeats.",
)
GPU_FULL = Alert(
    "ArgosyGpusSaturated",
    f"{r.GPU_USED.name} > 0.9",
    "15m",
    Severity.WARNING,
    f"The GPUs of {_POOL} are used more than 90 %.",
    "They are used {{ $value | humanizePercentage }} on average; 70 to 90 % leaves room for peaks. More replicas or "
    "larger batches help.",
)
GPU_IDLE = Alert(
    "ArgosyGpusIdle",
    f"{r.GPU_USED.name} < 0.3",
    "6h",
    Severity.INFO,
    f"The GPUs of {_POOL} have been used less than 30 % for six hours.",
    "They are used {{ $value | humanizePercentage }} on average: fewer of them would do.",
)
GPU_MEMORY = Alert(
    "ArgosyGpuMemoryFull",
    f"{r.GPU_MEMORY.name} > 0.9",
    "10m",
    Severity.WARNING,
    f"A GPU of {_POOL} has less than a tenth of its memory left.",
    "{{ $value | humanizePercentage }} is used. Leave 20 to 30 % for batches and peaks: footprint.gpuMemory of its "
    "models, or the pool's memoryHeadroom. An engine with a KV cache takes what it may, and is no reason to worry.",
)
SERVER_DOWN = Alert(
    "ArgosyServerDown",
    'up{pool!="",server!=""} == 0',
    "5m",
    Severity.WARNING,
    f"A server of {_POOL} does not answer Prometheus.",
    "{{ $labels.pod }} is scraped and says nothing; nothing is scaled down on what it does not say.",
)
CAPACITY = Alert(
    "ArgosyLimitedByCapacity",
    "argosy_scaling_desired_replicas > argosy_scaling_replicas",
    "15m",
    Severity.WARNING,
    f"{_RESOURCE} needs more replicas than it gets.",
    "It needs {{ $value }}; status.scaling.limitedBy names the bound or the capacity that is missing.",
)
BLIND = Alert(
    "ArgosyScalingBlind",
    "max by (namespace, pool) (argosy_scaling_without_signals) > 0",
    "5m",
    Severity.WARNING,
    f"The operator cannot measure the servers of {_POOL}.",
    "Nothing is scaled down until it can. The condition Scaling of its models has the reason, NoSignals.",
)
BOTTLENECK = Alert(
    "ArgosyBottleneck",
    'argosy_bottleneck{bottleneck!="IdleGpu"} > 0',
    "15m",
    Severity.INFO,
    f"{_RESOURCE} has been held up for a quarter of an hour: {{{{ $labels.bottleneck }}}} of {{{{ $labels.stage }}}}.",
    "status.bottleneck has the evidence, and what to do.",
)

SERVING = Group(
    "argosy-serving",
    (LATENCY, ERRORS, QUEUE, OUT_OF_MEMORY, SLOW_LOAD, FAILED_LOAD, BATCHES, CACHE, SERVER_DOWN),
)
GPUS = Group("argosy-gpu-use", (GPU_FULL, GPU_IDLE, GPU_MEMORY))
SCALING = Group("argosy-scaling", (CAPACITY, BLIND, BOTTLENECK))
ALERTS = (SERVING, GPUS, SCALING)
