"""An InferencePool for each language model of the bundled server, where the cluster has the kind."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from tests.operator.planning import declared
from tests.operator.render.workloads.cases import IMAGES

from argosy.api import InferenceModel
from argosy.render.names import picker_name
from argosy.render.workloads import Cluster, pool_objects, route_labels

CRD = yaml.safe_load((Path(__file__).parent / "inferencepool_crd.yaml").read_text())
SCHEMA = CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def pools_of(*models: InferenceModel, cluster: Cluster | None = None, **spec: Any) -> list[Mapping[str, Any]]:
    pool = declared.pool(**spec)
    objects = pool_objects(pool, (), models, IMAGES, cluster or Cluster(inference_pools=True))
    return [item for item in objects if item["kind"] == "InferencePool"]


def model(name: str = "llm", **spec: Any) -> InferenceModel:
    defaults = {"modelFormat": {"name": "huggingface"}}
    return declared.model(name, metadata={"namespace": "default", "uid": f"uid-{name}"}, **defaults | spec)


def closed(schema: Any) -> Any:
    """Return the schema with every field that it does not name refused, as server-side apply refuses it."""
    if not isinstance(schema, dict):
        return schema
    result = {key: closed(value) for key, value in schema.items()}
    if "properties" in schema and isinstance(schema["properties"], dict):
        result["properties"] = {key: closed(value) for key, value in schema["properties"].items()}
        result.setdefault("additionalProperties", False)
    return result


def test_a_language_model_is_routed_to_where_it_is_loaded() -> None:
    (pool,) = pools_of(model())
    assert pool["metadata"]["name"] == "llm"
    assert pool["metadata"]["ownerReferences"][0]["kind"] == "InferenceModel"
    assert pool["spec"] == {
        "selector": {"matchLabels": route_labels(["llm"])},
        "targetPorts": [{"number": 8000}],
        "endpointPickerRef": {
            "kind": "Service", "name": "llm-epp", "port": {"number": 9002}, "failureMode": "FailOpen",
        },
    }  # fmt: skip


@pytest.mark.parametrize("name", ["llm", "llama-3.1-8b", "m" * 200])
def test_it_is_what_the_api_takes(name: str) -> None:
    (pool,) = pools_of(model(name))
    validator = Draft202012Validator(closed(SCHEMA["properties"]["spec"]))
    assert list(validator.iter_errors(pool["spec"])) == []
    assert list(validator.iter_errors({**pool["spec"], "extensionRef": {}})) != []
    reference = pool["spec"]["endpointPickerRef"]
    assert reference["kind"] != "Service" or "port" in reference


def test_others_have_none() -> None:
    assert pools_of(model(modelFormat={"name": "onnx"})) == []
    assert pools_of(model(), cluster=Cluster()) == []
    assert pools_of(model(modelFormat={"name": "vllm"}), runtime={"name": "triton"}) == []


@given(st.text("ab-", min_size=1, max_size=80), st.text("ab-", min_size=1, max_size=80))
def test_models_have_pickers_of_their_own(one: str, other: str) -> None:
    names = [picker_name(f"m{name}m") for name in (one, other)]
    assert (names[0] == names[1]) is (one == other)
    assert all(len(name) <= 63 for name in names)
