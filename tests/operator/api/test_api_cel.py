"""The rules' CEL, evaluated: it accepts what the models accept, and refuses what they refuse."""

from collections.abc import Callable
from typing import Any

import celpy
import pytest

from argosy.api import KINDS, parse_body
from argosy.api.crd.schema import structural_schema
from argosy.api.values.base import ApiModel

Body = dict[str, Any]
Schema = dict[str, Any]


def broken(schema: Schema, value: Any) -> list[str]:
    """Messages of the rules that a value breaks, its defaults filled in as the API server does first."""
    found: list[str] = []
    if isinstance(value, list):
        return [message for item in value for message in broken(schema["items"], item)]
    if isinstance(value, dict):
        for name, inner in schema.get("properties", {}).items():
            if name not in value and "default" in inner:
                value[name] = inner["default"]
            if name in value:
                found += broken(inner, value[name])
        if isinstance(schema.get("additionalProperties"), dict):
            found += [message for item in value.values() for message in broken(schema["additionalProperties"], item)]
    for rule in schema.get("x-kubernetes-validations", ()):
        if not holds(rule["rule"], value):
            found.append(rule["message"])
    return found


def holds(rule: str, value: Any) -> bool:
    environment = celpy.Environment()
    program = environment.program(environment.compile(rule))
    return bool(program.evaluate({"self": celpy.json_to_cel(value)}))


def spec_schema(kind: str) -> Schema:
    spec = KINDS[kind].model_fields["spec"].annotation
    assert isinstance(spec, type)
    assert issubclass(spec, ApiModel)
    return structural_schema(spec)


SEVERAL: dict[str, Any] = {
    "versions": [{"version": 1, "storageUri": "s3://b/1"}, {"version": 2, "storageUri": "s3://b/2"}]
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
        "device CPU takes no GPU: leave out device, or gpuMemory, compute and gpus",
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
    ("InferenceModel", {"rollout.analysis.latencyRatio": {}}, "set one or more percentiles, such as p99"),
    ("InferenceModel", {"rollout.analysis.queries.0.min": ...}, "set min, max or both"),
    ("InferenceModel", {"rollout.analysis.queries.0.max": 5}, "max is at least min"),
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
    ("Ensemble", {"minReplicas": 2, "maxReplicas": 1}, "maxReplicas is at least minReplicas"),
    ("ServingPool", {"minServers": 4}, "maxServers is at least minServers"),
    ("ServingPool", {"runtime.args": ["--id=a", "--http-port=1"]}, "args has a flag that Argosy sets itself"),
    (
        "ServingPool",
        {"storage.engineCache": {"storageUri": "hf://b/e"}},
        "engines can be kept in s3, gs, az, abfss, pvc or file",
    ),
    ("ServingPool", {"tolerations.0.value": "x"}, "operator Exists takes no value, and Equal needs a key"),
]


@pytest.mark.parametrize(("kind", "changes", "message"), BREAKING)
def test_a_broken_rule_is_refused(body: Callable[..., Body], kind: str, changes: dict[str, Any], message: str) -> None:
    assert broken(spec_schema(kind), body(kind, changes)["spec"]) == [message]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_right_body_breaks_no_rule(body: Callable[..., Body], kind: str) -> None:
    assert broken(spec_schema(kind), body(kind)["spec"]) == []


def test_every_rule_is_broken_by_some_case() -> None:
    said: set[str] = set()
    waiting = [spec_schema(kind) for kind in KINDS]
    while waiting:
        schema = waiting.pop()
        said |= {rule["message"] for rule in schema.get("x-kubernetes-validations", ())}
        waiting += schema.get("properties", {}).values()
        waiting += [schema[key] for key in ("items", "additionalProperties") if key in schema]
    assert said == {message for *_, message in BREAKING}


@pytest.mark.parametrize(
    "accuracy",
    [
        {"skip": "its builder measured it"},
        {"metric": "max_absolute_error", "max": 0.01, "dataUri": "file:d"},
        {"script": "file:gate.py", "max": 0.5, "dataUri": "file:d"},
        {"script": "file:gate.py", "min": 0.1, "max": 0.5, "dataUri": "file:d"},
    ],
)
def test_each_way_to_show_accuracy_is_right(body: Callable[..., Body], accuracy: dict[str, Any]) -> None:
    right = body("InferenceModel", {"engine.accuracy": accuracy})
    assert parse_body(right)[1] == []
    assert broken(spec_schema("InferenceModel"), right["spec"]) == []


def test_a_smallest_body_breaks_no_rule() -> None:
    spec = {"poolRef": {"name": "p"}, "modelFormat": {"name": "python"}, "version": 1, "storageUri": "file:m"}
    spec |= {"footprint": {}, "parallelism": {}, "batching": {}, "rollout": {}}
    assert broken(spec_schema("InferenceModel"), spec) == []
    assert broken(spec_schema("ServingPool"), {}) == []
    pool = {"tolerations": [{"key": "gpus"}], "runtime": {"args": ["--id=a", "--http-portal"]}}
    assert broken(spec_schema("ServingPool"), pool) == []


def test_several_versions_in_place_of_one_break_no_rule(body: Callable[..., Body]) -> None:
    changes = SEVERAL | {"version": ..., "storageUri": ..., "digest": ...}
    assert broken(spec_schema("InferenceModel"), body("InferenceModel", changes)["spec"]) == []
