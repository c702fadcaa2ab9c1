"""Rules of how many there are, and of what is promised of them."""

from tests.operator.api.rules.case import Case, group

REPLICAS: list[Case] = [
    ({"maxReplicas": 0}, "spec.maxReplicas", "1 or more"),
    ({"replicas": -1}, "spec.replicas", "0 or more"),
    ({"minReplicas": 5}, "spec.maxReplicas", "is 4, less than minReplicas 5"),
    ({"slo.queueDelay.p90": "0ms"}, "spec.slo.queueDelay.p90", "must be more than 0"),
    ({"slo.queueDelay.p90": 5}, "spec.slo.queueDelay.p90", "write it as 200ms, 30s, 5m or 1h30m"),
    ({"slo.queueDelay": {}}, "spec.slo.queueDelay", "set one or more of p50, p90, p95, p99, p999"),
    ({"slo.latency.p42": "5ms"}, "spec.slo.latency.p42", "unknown field"),
    ({"slo.latency.p999": "100ms"}, "spec.slo.latency.p999", "is 100ms, less than p99 (200ms); raise it"),
    ({"slo.errorRate": "100.5%"}, "spec.slo.errorRate", "is more than"),
    ({"slo.errorRate": 0.1}, "spec.slo.errorRate", 'write it as "0.1%"'),
]
SCALING: list[Case] = [
    ({"scaling.targets.queueShare": "120%"}, "spec.scaling.targets.queueShare", "is more than"),
    ({"scaling.targets.concurrency": 0}, "spec.scaling.targets.concurrency", "more than 0"),
    ({"scaling.targets.busy.max": "50%"}, "spec.scaling.targets.busy.max", "no more than min 60%"),
    ({"scaling.targets.busy": {"max": "0%"}}, "spec.scaling.targets.busy.max", "is 0%; raise it"),
    ({"scaling.targets.queries.0.query": 'up{v="$(version)"}'}, "spec.scaling.targets.queries[0].query", "known: $("),
    ({"scaling.targets.queries.0.target": -1}, "spec.scaling.targets.queries[0].target", "more than 0"),
    (
        {"scaling.targets.queries.1": {"name": "backlog", "query": "up", "target": 1}},
        "spec.scaling.targets.queries[1].name",
        "give each query its own name",
    ),
    ({"scaling.scaleDown.stabilizationWindow": "5 minutes"}, "spec.scaling.scaleDown.stabilizationWindow", "duration"),
    ({"scaling.idleTimeout": "0s"}, "spec.scaling.idleTimeout", "more than 0"),
    ({"scaling.maxInstances": 4}, "spec.scaling.maxInstances", "instances is 2, and decides"),
    (
        group(count=2) | {"scaling.maxInstances": 4, "batching": ...},
        "spec.scaling.maxInstances",
        "instanceGroups has the counts",
    ),
    (
        {"instances": ..., "scaling.maxInstances": 2, "footprint": {"gpus": 2}, "modelFormat.name": "python"}
        | {"engine": ...},
        "spec.scaling.maxInstances",
        "one instance takes all 2 GPUs",
    ),
    (
        {"instances": ..., "scaling.minInstances": 9, "scaling.maxInstances": 2},
        "spec.scaling.maxInstances",
        "less than minInstances 9",
    ),
    ({"scaling.schedules.0.timeZone": "Mars/Base"}, "spec.scaling.schedules[0].timeZone", "is no time zone"),
    ({"scaling.schedules.0.start": "8am"}, "spec.scaling.schedules[0].start", "a time of day from"),
    ({"scaling.schedules.0.end": "08:00"}, "spec.scaling.schedules[0].end", "leave out both for the whole day"),
    ({"scaling.schedules.0.days": ["Monday"]}, "spec.scaling.schedules[0].days[0]", "Mon"),
    (
        {"scaling.schedules.0.minReplicas": 9, "scaling.schedules.0.maxReplicas": ...},
        "spec.scaling.schedules[0].minReplicas",
        "more than spec.maxReplicas 4",
    ),
    ({"priority": 5000}, "spec.priority", "1000 or less"),
]
