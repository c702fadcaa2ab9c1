"""What breaks each rule of the CRDs, and what is said then: changes of a right body."""

from typing import Any

SEVERAL: dict[str, Any] = {
    "versions": [{"version": 1, "storageUri": "s3://b/1"}, {"version": 2, "storageUri": "s3://b/2"}]
}
MEASUREMENT = {
    "time": "2026-05-04T12:00:00Z",
    "hardware": "1x H100",
    "concurrency": 11.62,
    "promptTokens": 256,
    "outputTokens": 64,
}
BREAKING = [
    ("InferenceModel", {"versionPolicy": {}}, "set exactly one of latest, all and specific"),
    ("InferenceModel", {"versionPolicy.all": {}}, "set exactly one of latest, all and specific"),
    ("InferenceModel", {"version": 3}, "versionPolicy.specific.versions must list every declared version"),
    ("InferenceModel", SEVERAL | {"digest": ...}, "set either version and storageUri, or versions"),
    ("InferenceModel", {"storageUri": ...}, "set either version and storageUri, or versions"),
    (
        "InferenceModel",
        SEVERAL | {"version": ..., "storageUri": ..., "digest": ..., "versions.1.version": 3},
        "versionPolicy.specific.versions must list every declared version",
    ),
    ("InferenceModel", {"sequence": {}}, "batching and sequence exclude each other; keep one"),
    ("InferenceModel", {"maxBatchSize": 8}, "a preferred batch size is at most maxBatchSize"),
    ("InferenceModel", {"inputs.0.dims": [0]}, "a dimension is 1 or more, or -1 for any size"),
    ("InferenceModel", {"batching.preserveOrdering": True}, "preserveOrdering allows no more than one priority level"),
    ("InferenceModel", {"batching.defaultPriorityLevel": 0}, "defaultPriorityLevel must be from 1 to priorityLevels"),
    ("InferenceModel", {"batching.priorityLevels": 0}, "defaultPriorityLevel must be from 1 to priorityLevels"),
    ("InferenceModel", {"footprint.gpus": 1}, "whole GPUs are taken alone: leave out compute or gpus"),
    (
        "InferenceModel",
        {"footprint": {"gpus": 3}, "parallelism": {"tensor": 2}, "instances": 1},
        "footprint.gpus must be parallelism.tensor x parallelism.pipeline",
    ),
    ("InferenceModel", {"footprint": {"gpus": 2}}, "a model that takes several GPUs has one instance on them"),
    (
        "InferenceModel",
        {"footprint.device": "CPU"},
        "device CPU takes no GPU: leave out device, or gpuMemory, compute, gpus and gpuType",
    ),
    ("InferenceModel", {"footprint.gpuType": {}}, "gpuType has products or computeCapability"),
    (
        "InferenceModel",
        {"topologySpread": [{"topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2}]},
        "minDomains is for whenUnsatisfiable: DoNotSchedule",
    ),
    ("InferenceModel", {"maxBatchSize": ...}, "a preferred batch size is at most maxBatchSize"),
    ("InferenceModel", {"instanceGroups": [{"count": 1}]}, "instances and instanceGroups exclude each other"),
    (
        "InferenceModel",
        {"instances": ..., "instanceGroups": [{"kind": "KIND_CPU", "gpus": [0]}]},
        "a group of KIND_CPU or KIND_MODEL names no GPUs",
    ),
    ("InferenceModel", {"minReplicas": 5}, "maxReplicas is at least minReplicas"),
    ("InferenceModel", {"scaling.schedules.0.minReplicas": 7}, "maxReplicas is at least minReplicas"),
    ("InferenceModel", {"scaling.schedules.0.end": "08:00"}, "end is not start"),
    (
        "InferenceModel",
        {"instances": ..., "scaling.minInstances": 4, "scaling.maxInstances": 2},
        "maxInstances is at least minInstances",
    ),
    (
        "InferenceModel",
        {"engine.accuracy": ...},
        "a precision below 16 bits needs accuracy {dataUri, min}, or {skip: why not}",
    ),
    ("InferenceModel", {"rollout.steps.0.traffic": "00.0%"}, "a step has more than 0% of the traffic"),
    ("InferenceModel", {"rollout.shadow.traffic": "0%"}, "a shadow has more than 0% of the traffic"),
    (
        "InferenceModel",
        {"engine.accuracy": {"script": "file:g.py", "min": 0.5, "max": 0.1, "dataUri": "file:d"}},
        "max is at least min",
    ),
    (
        "InferenceModel",
        {"rollout.analysis.latency": {}},
        "set serviceTime or one or more percentiles, such as p99",
    ),
    (
        "InferenceModel",
        {"rollout.analysis.queries.0.successCondition": ...},
        "set successCondition, failureCondition or both",
    ),
    ("InferenceModel", {"rollout.sticky.0.parameter": "user"}, "set header or parameter, and not both"),
    (
        "InferenceModel",
        {"rollout.shadow.tolerances.0.absolute": ...},
        "set one or more of absolute, relative and top1Agreement",
    ),
    ("InferenceModel", {"slo.latency": {}}, "set one or more percentiles, such as p99"),
    ("InferenceModel", {"slo.latency.p999": "199ms"}, "a higher percentile has no smaller duration"),
    ("Ensemble", {"slo.timeToFirstToken.p50": "1s"}, "a higher percentile has no smaller duration"),
    ("InferenceModel", {"engine.accuracy.dataUri": ...}, "set dataUri and min or max, or skip alone, with the reason"),
    ("InferenceModel", {"engine.accuracy.min": ...}, "set dataUri and min or max, or skip alone, with the reason"),
    ("InferenceModel", {"engine.accuracy.skip": "x"}, "set dataUri and min or max, or skip alone, with the reason"),
    ("InferenceModel", {"engine.accuracy.max": 1}, "a similarity takes min, an error takes max"),
    ("InferenceModel", {"engine.accuracy.metric": "perplexity_ratio"}, "a similarity takes min, an error takes max"),
    (
        "InferenceModel",
        {"engine.accuracy": {"script": "file:g.py", "metric": "top1_agreement", "min": 1, "dataUri": "file:d"}},
        "metric and script exclude each other; keep one",
    ),
    (
        "InferenceModel",
        {"batching": ..., "sequence": {"direct": {}, "oldest": {"maxCandidateSequences": 1}}},
        "direct and oldest exclude each other; keep one",
    ),
    (
        "InferenceModel",
        {"variants": [{"name": "low", "maxConcurrency": 12, "measurement": MEASUREMENT}, {"name": "high"}]},
        "maxConcurrency is the concurrency of the measurement, rounded down",
    ),
    ("Ensemble", {"minReplicas": 2, "maxReplicas": 1}, "maxReplicas is at least minReplicas"),
    ("ServingPool", {"minServers": 4}, "maxServers is at least minServers"),
    ("ServingPool", {"memoryHeadroom": "100%"}, "memoryHeadroom is less than 100%"),
    ("ServingPool", {"runtime.args": ["--id=a", "--http-port=1"]}, "args has a flag that Argosy sets itself"),
    (
        "ServingPool",
        {"storage.engineCache": {"storageUri": "hf://b/e"}},
        "engines can be kept in s3, gs, az, abfss, pvc or file",
    ),
    ("ServingPool", {"tolerations.0.value": "x"}, "operator Exists takes no value, and Equal needs a key"),
]
