"""Every rule of one resource: what breaks it, where it is reported and what the message says."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import Field, ValidationError

from argosy.api import ApiModel, parse_body
from argosy.api.problems import explain
from argosy.api.values.base import Int

Body = dict[str, Any]
Case = tuple[dict[str, Any], str, str]


SEVERAL = [{"version": 1, "storageUri": "s3://b/1"}, {"version": 2, "storageUri": "s3://b/2"}]


def several(versions: list[dict[str, Any]]) -> dict[str, Any]:
    """These versions in place of the one."""
    return {"version": ..., "storageUri": ..., "digest": ..., "versions": versions}


def group(**fields: Any) -> dict[str, Any]:
    """One instance group in place of `instances`."""
    return {"instances": ..., "instanceGroups": [fields]}


MODEL: list[Case] = [
    ({"poolRef": ...}, "spec.poolRef", "is required"),
    ({"poolRef.name": "Not_DNS"}, "spec.poolRef.name", "is not a DNS name"),
    ({"poolRef.name": "a" * 254}, "spec.poolRef.name", "at most 253"),
    ({"modelName": ""}, "spec.modelName", "1 or more characters"),
    *(
        ({"modelName": name}, "spec.modelName", "is not a model's name: letters, digits")
        for name in ("a/b", ".hidden", "..", "a b", "a%20b", "a\nb", "ü")
    ),
    ({"pool_ref": "gpus"}, "spec.pool_ref", "did you mean 'poolRef'?"),
    ({"modelFormat.name": "torch"}, "spec.modelFormat.name", "did you mean 'pytorch'?"),
    ({"modelFormat.name": "excel"}, "spec.modelFormat.name", "known: onnx, pytorch, python, huggingface"),
    ({"version": 0}, "spec.version", "must be 1 or more"),
    ({"version": "2"}, "spec.version", "expected a whole number; found '2'"),
    ({"version": 2.5}, "spec.version", "expected a whole number"),
    ({"version": True}, "spec.version", "expected a whole number"),
    ({"storageUri": "ftp://x/y"}, "spec.storageUri", "does not begin with one of s3:, gs:, az:, abfss:, hf:"),
    ({"storageUri": "s3:/bucket"}, "spec.storageUri", "write it like s3://bucket"),
    ({"storageUri": "file:"}, "spec.storageUri", "names no path"),
    ({"storageUri": "abfss://account.dfs.core.windows.net/m"}, "spec.storageUri", "names no container of an account"),
    ({"storage": {"secretName": "Mine"}}, "spec.storage.secretName", "is not a DNS name"),
    *(
        ({"storageUri": f"pvc://{claim}/model"}, "spec.storageUri", "a PersistentVolumeClaim's name has only")
        for claim in ("Claim", "a:b", "a" * 254, "..", "a-", "a?b")
    ),
    ({"digest": "sha256:12"}, "spec.digest", "64 lower-case hexadecimal digits"),
    ({"versionPolicy": {}}, "spec.versionPolicy", "exactly one of latest, all and specific; found none"),
    ({"versionPolicy.all": {}}, "spec.versionPolicy", "found all and specific"),
    ({"versionPolicy.specific.versions": [1, 2, 1]}, "spec.versionPolicy.specific.versions[2]", "listed twice"),
    ({"versionPolicy.specific.versions": [1]}, "spec.versionPolicy.specific.versions", "spec.version 2"),
    ({"version": ...}, "spec.version", "is required, unless versions lists several"),
    ({"storageUri": ...}, "spec.storageUri", "is required, unless versions lists several"),
    ({"versions": SEVERAL}, "spec.version", "versions has it for each version"),
    ({"versions": SEVERAL}, "spec.storageUri", "versions has it for each version"),
    ({"versions": SEVERAL}, "spec.digest", "versions has it for each version"),
    (several([*SEVERAL, SEVERAL[0]]), "spec.versions[2].version", "version 1 is listed twice"),
    (several([{"version": 1}]), "spec.versions[0].storageUri", "is required"),
    (several([{"version": 1, "storageUri": "ftp://x"}]), "spec.versions[0].storageUri", "does not begin with one of"),
    (several([*SEVERAL, {"version": 9, "storageUri": "s3://b/9"}]), "spec.versionPolicy.specific.versions", "has 9"),
    (
        several(SEVERAL) | {"versionPolicy": {"latest": {"numVersions": 1}}},
        "spec.versionPolicy.latest.numVersions",
        "is 1, and versions lists 2",
    ),
    ({"versionPolicy": {"latest": {"numVersions": 0}}}, "spec.versionPolicy.latest.numVersions", "1 or more"),
    ({"inputs.0.dims": [4, 0]}, "spec.inputs[0].dims[1]", "1 or more, or -1"),
    ({"inputs.0.dims": [-2]}, "spec.inputs[0].dims[0]", "found -2"),
    ({"inputs.0.dims": []}, "spec.inputs[0].dims", "1 or more entries"),
    ({"inputs.0.dims": 4}, "spec.inputs[0].dims", "expected a list; found 4"),
    ({"inputs.0.dataType": "FP32"}, "spec.inputs[0].dataType", "did you mean 'TYPE_FP32'?"),
    ({"inputs.0.name": "scale"}, "spec.inputs[1].name", "already inputs[0]"),
    ({"inputs.0.name": ""}, "spec.inputs[0].name", "1 or more characters"),
    ({"inputs.0.format": "FORMAT_NHWC"}, "spec.inputs[0].format", "needs 3 dims"),
    ({"inputs.0.labelFilename": "x"}, "spec.inputs[0].labelFilename", "unknown field"),
    ({"outputs.0.reshape": {"shape": [2, 191]}}, "spec.outputs[0].reshape.shape", "as many elements"),
    ({"outputs.0.reshape": {"shape": [384, -1]}}, "spec.outputs[0].reshape.shape", "same number of -1"),
    ({"outputs.0.isShapeTensor": True, "engine": ...}, "spec.outputs[0].isShapeTensor", "only TensorRT"),
    ({"maxBatchSize": -1}, "spec.maxBatchSize", "0 or more"),
    ({"maxBatchSize": 8}, "spec.batching.preferredBatchSizes[1]", "is 16, more than maxBatchSize 8"),
    (
        {"maxBatchSize": 0, "batching": ..., "inputs.0.allowRaggedBatch": False},
        "spec.inputs[1].reshape.shape",
        "set maxBatchSize",
    ),
    ({"maxBatchSize": 0, "batching": ..., "inputs.1": ...}, "spec.inputs[0].allowRaggedBatch", "no batch"),
    ({"batching.preserveOrdering": True, "batching.queuePolicy": ...}, "spec.batching.preserveOrdering", "one order"),
    (
        {
            "batching.preserveOrdering": True,
            "batching.priorityLevels": 0,
            "batching.defaultPriorityLevel": 0,
            "batching.priorityQueuePolicies": {},
        },
        "spec.batching.queuePolicy.timeoutAction",
        "preserveOrdering forbids",
    ),
    ({"batching.defaultPriorityLevel": 3}, "spec.batching.defaultPriorityLevel", "from 1 to priorityLevels (2)"),
    (
        {"batching.priorityLevels": 0, "batching.priorityQueuePolicies": {}},
        "spec.batching.defaultPriorityLevel",
        "no effect without",
    ),
    ({"batching.priorityQueuePolicies": {"3": {}}}, "spec.batching.priorityQueuePolicies.3", "no priority level 3"),
    ({"batching.queuePolicy.timeoutAction": "DROP"}, "spec.batching.queuePolicy.timeoutAction", "REJECT, DELAY"),
    ({"batching.maxQueueDelayMicroseconds": -1}, "spec.batching.maxQueueDelayMicroseconds", "0 or more"),
    ({"sequence": {}}, "spec.sequence", "exclude each other"),
    (
        {"batching": ..., "sequence": {"direct": {}, "oldest": {"maxCandidateSequences": 4}}},
        "spec.sequence",
        "direct and oldest",
    ),
    (
        {"batching": ..., "sequence": {"oldest": {"maxCandidateSequences": 4, "preferredBatchSizes": [64]}}},
        "spec.sequence.oldest.preferredBatchSizes[0]",
        "is 64",
    ),
    (
        {"batching": ..., "sequence": {"controls": [{"name": "s", "kind": "CONTROL_SEQUENCE_CORRID"}]}},
        "spec.sequence.controls[0].dataType",
        "TYPE_UINT64",
    ),
    (
        {
            "batching": ...,
            "sequence": {"controls": [{"name": "s", "kind": "CONTROL_SEQUENCE_START", "dataType": "TYPE_INT8"}]},
        },
        "spec.sequence.controls[0].dataType",
        "TYPE_INT32, TYPE_FP32, TYPE_BOOL",
    ),
    (
        {
            "batching": ...,
            "sequence": {
                "states": [
                    {
                        "inputName": "i",
                        "outputName": "o",
                        "dataType": "TYPE_FP32",
                        "dims": [1],
                        "initialState": [{"name": "z", "dataType": "TYPE_FP32", "dims": [1]}],
                    }
                ]
            },
        },
        "spec.sequence.states[0].initialState[0]",
        "exactly one of zeroData: true and dataFile",
    ),
    ({"footprint.gpuMemory": "2 GB"}, "spec.footprint.gpuMemory", "no quantity"),
    ({"footprint.gpuMemory": "-1Gi"}, "spec.footprint.gpuMemory", "negative"),
    ({"footprint.compute": "120%"}, "spec.footprint.compute", "more than"),
    ({"footprint.compute": 10}, "spec.footprint.compute", 'write it as "10%"'),
    ({"footprint.gpuMemory": ...}, "spec.footprint.gpuMemory", "set gpuMemory"),
    ({"footprint.gpuMemory": 0}, "spec.footprint.gpuMemory", "for no GPU set device: CPU"),
    ({"footprint": {"gpus": 0}}, "spec.footprint.gpus", "1 or more"),
    ({"footprint.device": "TPU"}, "spec.footprint.device", "GPU, CPU"),
    ({"footprint": {"device": "CPU", "gpus": 1}}, "spec.footprint.device", "takes no GPU, and gpus is given"),
    ({"footprint.device": "CPU"}, "spec.footprint.device", "takes no GPU, and gpuMemory is given"),
    (
        {"footprint": {"device": "CPU"}, "parallelism": {"tensor": 2}, "instances": 1},
        "spec.footprint.device",
        "parallelism takes 2 GPUs",
    ),
    (
        {"footprint": {"gpus": 2}, "instances": ...},
        "spec.footprint.gpus",
        "backend tensorrt runs an instance on one GPU",
    ),
    (
        {"footprint": ..., "parallelism": {"tensor": 2}, "instances": ..., "engine": ...},
        "spec.parallelism",
        "backend onnxruntime runs an instance on one GPU",
    ),
    (
        {"maxBatchSize": ..., "batching": ..., "engine": ..., "modelFormat.name": "pytorch"},
        "spec.inputs[1].reshape.shape",
        "set maxBatchSize",
    ),
    ({"maxBatchSize": ...}, "spec.batching.preferredBatchSizes[0]", "needs a maxBatchSize of 8 or more"),
    ({"footprint.gpus": 1}, "spec.footprint.compute", "taken alone"),
    (
        {"footprint": {"gpus": 3}, "parallelism": {"tensor": 2}, "instances": 1},
        "spec.footprint.gpus",
        "is 3, but parallelism.tensor 2 x pipeline 1 takes 2",
    ),
    ({"parallelism": {"tensor": 2}, "instances": 1}, "spec.footprint.compute", "takes 2 whole GPUs"),
    ({"footprint": {}, "parallelism": {"tensor": 2}}, "spec.instances", "is 2, but one instance takes all 2 GPUs"),
    ({"parallelism": {"tensor": 0}}, "spec.parallelism.tensor", "1 or more"),
    ({"instances": 0}, "spec.instances", "1 or more"),
    ({"instanceGroups": [{}]}, "spec.instanceGroups", "exclude each other"),
    (group(kind="KIND_TPU"), "spec.instanceGroups[0].kind", "KIND_AUTO, KIND_GPU, KIND_CPU, KIND_MODEL"),
    (group(count=0), "spec.instanceGroups[0].count", "1 or more"),
    (group(kind="KIND_CPU", gpus=[0]), "spec.instanceGroups[0].gpus", "names no GPUs"),
    (group(kind="KIND_GPU", gpus=[0, 0]), "spec.instanceGroups[0].gpus[1]", "listed twice"),
    (group(kind="KIND_GPU", gpus=[1]), "spec.instanceGroups[0].gpus[0]", "takes 1 GPU, counted from 0; found 1"),
    (group(kind="KIND_MODEL"), "spec.instanceGroups[0].kind", "tensorrt would run KIND_MODEL on the CPU"),
    (group(kind="KIND_CPU"), "spec.instanceGroups", "every group is KIND_CPU, and a GPU is asked for"),
    (
        group(kind="KIND_GPU") | {"footprint": {"device": "CPU"}},
        "spec.instanceGroups[0].kind",
        "footprint.device is CPU",
    ),
    (group(profile=["1"]), "spec.instanceGroups[0].profile[0]", "a whole number"),
    (group(profile=[1]) | {"engine": ...}, "spec.instanceGroups[0].profile", "only TensorRT has profiles"),
    (
        group(count=2) | {"footprint": {"gpus": 2}, "engine": ..., "modelFormat.name": "vllm"},
        "spec.instanceGroups[0].count",
        "one instance takes all 2 GPUs",
    ),
    (
        group(kind="KIND_GPU", gpus=[0]) | {"footprint": {"gpus": 2}},
        "spec.instanceGroups",
        "no group is on GPU 1 of the model's 2",
    ),
    ({"rateLimiter": {"priority": -1}}, "spec.rateLimiter.priority", "0 or more"),
    ({"rateLimiter.resources": [{"name": "a"}, {"name": "a"}]}, "spec.rateLimiter.resources[1].name", "listed twice"),
    ({"rateLimiter.resources": [{"name": "a", "global": "yes"}]}, "spec.rateLimiter.resources[0].global", "true or"),
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
    ({"engine.accuracy": ...}, "spec.engine.accuracy", "int8 is below a baseline of 16 bits"),
    (
        {"engine.precision": "fp32", "engine.accuracy.baselinePrecision": "fp16"},
        "spec.engine.accuracy.baselinePrecision",
        "coarser",
    ),
    (
        {"engine.builder": "tensorrt_llm", "engine.options": {}},
        "spec.engine.builder",
        "compiles models of format 'huggingface'",
    ),
    ({"engine.timeout": "2 hours"}, "spec.engine.timeout", "30s, 5m or 1h30m"),
    ({"engine.calibration": {}}, "spec.engine.calibration.dataUri", "is required"),
    ({"engine.accuracy.dataUri": ...}, "spec.engine.accuracy.dataUri", 'as skip: "measured elsewhere"'),
    ({"engine.accuracy.min": ...}, "spec.engine.accuracy.min", "set min: the value that is good enough"),
    (
        {"engine.accuracy": {"metric": "mean_squared_error", "dataUri": "s3://b/d"}},
        "spec.engine.accuracy.max",
        "set max: the value that is good enough",
    ),
    (
        {"engine.accuracy.metric": "mean_squared_error"},
        "spec.engine.accuracy.min",
        "a lower mean_squared_error is better",
    ),
    ({"engine.accuracy.max": 2}, "spec.engine.accuracy.max", "a higher cosine_similarity is better; set min instead"),
    ({"engine.accuracy.skip": "measured"}, "spec.engine.accuracy.skip", "leave out min, dataUri, or skip"),
    ({"engine.accuracy.skip": ""}, "spec.engine.accuracy.skip", "1 or more characters"),
    (
        {"engine.accuracy.script": "file:gate.py", "engine.accuracy.metric": "top1_agreement"},
        "spec.engine.accuracy.script",
        "exclude each other",
    ),
    (
        {"engine.accuracy.script": "file:gate.py", "engine.accuracy.max": 0.5},
        "spec.engine.accuracy.max",
        "is 0.5, less than min 0.99",
    ),
    ({"rollout.strategy": "Beside"}, "spec.rollout.strategy", "none of Auto, Surge, Recreate"),
    (
        {"rollout.steps.1.traffic": "5%"},
        "spec.rollout.steps[1].traffic",
        "more than the step before it has (5%); found 5%",
    ),
    ({"rollout.steps.0.traffic": "101%"}, "spec.rollout.steps[0].traffic", "is more than"),
    ({"rollout.steps.0.traffic": 5}, "spec.rollout.steps[0].traffic", "no percentage"),
    ({"rollout.steps.0.traffic": "0%"}, "spec.rollout.steps[0].traffic", "must be more than 0%"),
    ({"rollout.shadow.traffic": "0.0%"}, "spec.rollout.shadow.traffic", "must be more than 0%"),
    ({"rollout.shadow.traffic": ...}, "spec.rollout.shadow.traffic", "is required"),
    ({"rollout.steps.0.minRequests": 0}, "spec.rollout.steps[0].minRequests", "1 or more"),
    ({"rollout.analysis.errorRate": 1}, "spec.rollout.analysis.errorRate", "no percentage"),
    (
        {"rollout.analysis.latencyRatio": {}},
        "spec.rollout.analysis.latencyRatio",
        "set one or more of p50, p95 and p99",
    ),
    ({"rollout.analysis.latencyRatio.p99": 0}, "spec.rollout.analysis.latencyRatio.p99", "more than 0"),
    ({"rollout.analysis.queries.0.min": ...}, "spec.rollout.analysis.queries[0]", "set min, max or both"),
    ({"rollout.analysis.queries.0.max": 5}, "spec.rollout.analysis.queries[0].max", "is 5, less than min 100"),
    (
        {"rollout.analysis.queries.0.query": "up{a='$(pod)'}"},
        "spec.rollout.analysis.queries[0].query",
        "known: $(namespace)",
    ),
    (
        {"rollout.analysis.queries.1": {"name": "tokens", "query": "up", "min": 1}},
        "spec.rollout.analysis.queries[1].name",
        "already queries[0]",
    ),
    ({"config": {"max_batch_size": 4}}, "spec.config.max_batch_size", "is decided by spec.maxBatchSize"),
    (
        {"config": {"cc_model_filenames": {"9.0": "h100.plan"}}},
        "spec.config.cc_model_filenames",
        "is decided by spec.engine; leave one of them out",
    ),
    (
        {"config": {"cc_model_filenames": {"sm_90": "h100.plan"}}, "engine": ...},
        "spec.config.cc_model_filenames.sm_90",
        "is no compute capability; write major.minor",
    ),
    ({"config": {"optimisation": {}}}, "spec.config.optimisation", "did you mean 'optimization'?"),
]
SCALING: list[Case] = [
    ({"scaling.targets.queueShare": "120%"}, "spec.scaling.targets.queueShare", "is more than"),
    ({"scaling.targets.concurrency": 0}, "spec.scaling.targets.concurrency", "more than 0"),
    ({"scaling.targets.busy": {"max": "50%"}}, "spec.scaling.targets.busy.max", "no more than min 70%"),
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
ENSEMBLE: list[Case] = [
    ({"scaling.maxInstances": 3}, "spec.scaling.maxInstances", "unknown field (known: targets"),
    ({"steps": []}, "spec.steps", "1 or more entries"),
    ({"steps.0.inputs": {}}, "spec.steps[0].inputs", "1 or more entries"),
    ({"steps.0.outputs": ...}, "spec.steps[0].outputs", "is required"),
    ({"steps.0.version": 0}, "spec.steps[0].version", "1 or more"),
    ({"inputs": []}, "spec.inputs", "1 or more entries"),
    ({"inputs.0.reshape": {"shape": [1, 1]}}, "spec.inputs[0].reshape", "cannot reshape"),
    ({"outputs.1": {"name": "vector", "dataType": "TYPE_FP32", "dims": [1]}}, "spec.outputs[1].name", "already"),
    ({"minReplicas": 2, "maxReplicas": 1}, "spec.maxReplicas", "less than minReplicas 2"),
    ({"maxInflightRequests": 0}, "spec.maxInflightRequests", "1 or more"),
    ({"config": {"dynamic_batching": {}}}, "spec.config.dynamic_batching", "is decided by its steps' models"),
    ({"config": {"platform": "x"}}, "spec.config.platform", "is decided by spec.steps; set that instead"),
    ({"config": {"response_cach": {}}}, "spec.config.response_cach", "did you mean 'response_cache'?"),
    ({"rollout.steps.0.traffic": "0%"}, "spec.rollout.steps[0].traffic", "must be more than 0%"),
    ({"slo.timeToFirstToken.p95": "1 s"}, "spec.slo.timeToFirstToken.p95", "no duration"),
]
POOL: list[Case] = [
    ({"runtime.name": "tritn"}, "spec.runtime.name", "did you mean 'triton'?"),
    ({"runtime.args": ["log-verbose=1"]}, "spec.runtime.args[0]", "--name=value"),
    ({"runtime.args": ["--log-verbose=1", "--http-port=1"]}, "spec.runtime.args[1]", "clients and probes"),
    ({"runtime.args": ["--cache-c=local"]}, "spec.runtime.args[0]", "set spec.cache"),
    ({"rateLimit.resources.1.device": ...}, "spec.rateLimit.resources[1]", "counted already"),
    ({"rateLimit.resources.0.name": "a:b"}, "spec.rateLimit.resources[0].name", "no colon"),
    ({"cache.size": "0"}, "spec.cache.size", "1 or more"),
    ({"runtime.podTemplate.spec": None}, "spec.runtime.podTemplate.spec", "expected a map"),
    ({"tolerations.0.value": "x"}, "spec.tolerations[0].value", "must be empty"),
    ({"tolerations.0": {"operator": "Equal"}}, "spec.tolerations[0].key", "unless operator is Exists"),
    ({"maxGpusPerServer": -1}, "spec.maxGpusPerServer", "0 or more"),
    ({"minServers": 4}, "spec.maxServers", "is 3, less than minServers 4"),
    ({"memoryHeadroom": "0.2"}, "spec.memoryHeadroom", "no percentage"),
    ({"storage.engineCache": {}}, "spec.storage.engineCache.storageUri", "is required"),
    ({"monitoring.prometheus.url": "prometheus:9090"}, "spec.monitoring.prometheus.url", "begins with http://"),
    ({"suspend": "yes"}, "spec.suspend", "expected true or false"),
    ({"nodeselector": {}}, "spec.nodeselector", "did you mean 'nodeSelector'?"),
]


def _cases() -> list[Any]:
    named = {"InferenceModel": [*MODEL, *SCALING], "Ensemble": ENSEMBLE, "ServingPool": POOL}
    return [
        pytest.param(kind, *case, id=f"{kind}-{case[1]}-{number}")
        for kind, cases in named.items()
        for number, case in enumerate(cases)
    ]


@pytest.mark.parametrize(("kind", "changes", "path", "said"), _cases())
def test_a_broken_rule_is_reported_at_its_field(
    body: Callable[..., Body], kind: str, changes: dict[str, Any], path: str, said: str
) -> None:
    resource, problems = parse_body(body(kind, changes), "m.yaml")
    assert resource is None
    found = [(problem.path, problem.message) for problem in problems]
    assert any(where == path and said in message for where, message in found), found


@pytest.mark.parametrize("kind", ["InferenceModel", "Ensemble", "ServingPool"])
def test_a_right_body_has_no_problem_and_keeps_its_words(body: Callable[..., Body], kind: str) -> None:
    resource, problems = parse_body(body(kind))
    assert problems == []
    assert resource is not None
    written = resource.model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert written == body(kind)


def test_rules_still_run_beside_a_wrong_field(body: Callable[..., Body]) -> None:
    wrong = body("InferenceModel", {"version": 0, "minReplicas": 9, "footprint.gpus": 1, "inputs.0.name": "scale"})
    _, problems = parse_body(wrong)
    assert {problem.path for problem in problems} == {
        "spec.version",
        "spec.maxReplicas",
        "spec.footprint.compute",
        "spec.inputs[1].name",
    }


def test_a_rule_over_a_wrong_field_is_left_out(body: Callable[..., Body]) -> None:
    _, problems = parse_body(body("InferenceModel", {"minReplicas": "many"}))
    assert [problem.path for problem in problems] == ["spec.minReplicas"]


@pytest.mark.parametrize(
    ("kind", "changes", "path"),
    [
        ("Ensemble", {"inputs.0.dataType": "FP32"}, "spec.inputs[0].dataType"),
        ("InferenceModel", {"inputs.0.dims": [0]}, "spec.inputs[0].dims[0]"),
        ("InferenceModel", {"versionPolicy.specific.versions": [0]}, "spec.versionPolicy.specific.versions[0]"),
    ],
)
def test_one_wrong_entry_of_a_list_is_one_mistake(
    body: Callable[..., Body], kind: str, changes: dict[str, Any], path: str
) -> None:
    _, problems = parse_body(body(kind, changes))
    assert [problem.path for problem in problems] == [path]


def test_a_short_list_of_wrong_entries_is_short_by_what_was_written() -> None:
    class Pair(ApiModel):
        both: tuple[Int, ...] = Field(min_length=2)

    with pytest.raises(ValidationError) as caught:
        Pair.model_validate({"both": ["x"]})
    assert list(explain(caught.value, Pair)) == [
        ("both[0]", "expected a whole number; found 'x'"),
        ("both", "must have 2 or more entries; found 1"),
    ]
