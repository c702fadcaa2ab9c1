"""The CRDs: structural, described, current, and as strict as the models."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from tests.operator.api.judging import fill, root, strict, walk

from argosy.api import API_VERSION, parse_body
from argosy.api.crd.crds import DEFINITIONS, crd, crd_files

Body = dict[str, Any]
Schema = dict[str, Any]
OTHERS = {
    "infmodel",
    "isvc",
    "ig",
    "tm",
    "llmisvc",
    "mlm",
    "mls",
    "mlp",
    "mlx",
    "mc",
    "is",
    "mri",
    "wk",
    "dgd",
    "dckpt",
    "infpool",
}
KUBERNETES = {
    "po",
    "svc",
    "ns",
    "cm",
    "ep",
    "ev",
    "no",
    "pv",
    "pvc",
    "rc",
    "quota",
    "sa",
    "crd",
    "crds",
    "ds",
    "deploy",
    "rs",
    "sts",
    "hpa",
    "cj",
    "csr",
    "ing",
    "netpol",
    "pdb",
    "pc",
    "sc",
}
KINDS = [definition.kind.__name__ for definition in DEFINITIONS]


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_described(kind: str) -> None:
    fields = [(path, inner) for path, inner in walk(root(kind)) if not path.endswith((".items", "Properties"))]
    assert len(fields) > 50
    assert [path for path, inner in fields if not inner.get("description")] == [".metadata"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_is_structural(kind: str) -> None:
    for path, schema in walk(root(kind)):
        assert not {"$ref", "$defs", "title", "const", "oneOf", "allOf", "nullable", "propertyNames"} & set(schema), (
            path
        )
        assert ("type" in schema) != ("x-kubernetes-int-or-string" in schema), path
        assert not ("properties" in schema and "additionalProperties" in schema), path
        assert schema.get("additionalProperties") is not True, path
        assert isinstance(schema.get("exclusiveMinimum", True), bool), path
        if schema.get("type") == "array":
            assert "items" in schema, path
        if schema.get("x-kubernetes-list-type") == "map":
            assert set(schema["x-kubernetes-list-map-keys"]) <= set(schema["items"]["required"]), path


@pytest.mark.parametrize("kind", KINDS)
def test_only_free_maps_keep_unknown_fields(kind: str) -> None:
    keeps = [path for path, schema in walk(root(kind)) if schema.get("x-kubernetes-preserve-unknown-fields")]
    free = {
        "InferenceModel": [
            ".spec.engine.options",
            ".spec.variants.items.engine.options",
            ".spec.variants.items.config",
            ".spec.config",
        ],
        "Ensemble": [".spec.config"],
        "ServingPool": [".spec.runtime.podTemplate.spec"],
    }
    assert keeps == free.get(kind, [])


@pytest.mark.parametrize("kind", KINDS)
def test_lists_and_maps_of_a_spec_are_bounded(kind: str) -> None:
    schemas = list(walk(root(kind)["properties"]["spec"]))
    lists = [(path, schema) for path, schema in schemas if schema.get("type") == "array"]
    maps = [(path, schema) for path, schema in schemas if "additionalProperties" in schema]
    assert lists
    assert maps
    for path, schema in lists:
        assert "maxItems" in schema, path
    for path, schema in maps:
        assert "maxProperties" in schema, path


@pytest.mark.parametrize("kind", KINDS)
def test_texts_that_rules_read_are_bounded(kind: str) -> None:
    """An API server refuses a CRD with a rule whose cost it estimates to be too high, by these bounds."""
    texts = [(path, text) for path, schema in walk(root(kind)) for text in filter(_is_text, _read_by_rules(schema))]
    assert texts
    for path, text in texts:
        assert "maxLength" in text or "enum" in text, path


@pytest.mark.parametrize("kind", KINDS)
def test_no_rule_makes_a_list(kind: str) -> None:
    """Before 1.30 API servers take the size of what `map` and `filter` give as unbounded, and refuse the CRD."""
    rules = [(path, rule) for path, schema in walk(root(kind)) for rule in schema.get("x-kubernetes-validations", ())]
    assert rules
    for path, rule in rules:
        assert not re.search(r"[.](map|filter)[(]", rule["rule"]), path


def _is_text(schema: Schema) -> bool:
    return bool(schema.get("type") == "string")


def _read_by_rules(schema: Schema) -> Iterator[Schema]:
    """Yield the schemas of the fields that a schema's rules name: `self.batching.maxSize`."""
    for rule in schema.get("x-kubernetes-validations", ()):
        for names in re.findall(r"self((?:[.][a-zA-Z]+\b(?![(]))*)", rule["rule"]):
            result = schema
            for name in names.split(".")[1:]:
                result = result["properties"][name]
            yield result


@pytest.mark.parametrize("kind", KINDS)
def test_defaults_are_valid_and_stand_in_specs_only(kind: str) -> None:
    defaults = [(path, schema) for path, schema in walk(root(kind)) if "default" in schema]
    assert defaults
    for path, schema in defaults:
        assert path.startswith(".spec"), path
        assert list(Draft202012Validator(strict(schema)).iter_errors(schema["default"])) == [], path


@pytest.mark.parametrize("kind", KINDS)
def test_what_api_servers_misread_is_left_out(kind: str) -> None:
    """They read bounds as 64-bit floats, and some read an empty default as null."""
    for path, schema in walk(root(kind)):
        assert abs(schema.get("maximum", 0)) < 2**53, path
        assert schema.get("default") != "", path


@pytest.mark.parametrize("kind", KINDS)
def test_filling_the_defaults_in_does_not_change_what_a_body_means(body: Callable[..., Body], kind: str) -> None:
    plain = body(kind)
    filled = body(kind)
    fill(root(kind)["properties"]["spec"], filled["spec"])
    assert filled != plain
    assert parse_body(filled) == parse_body(plain)
    assert parse_body(filled)[1] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_right_body_passes_the_schema(body: Callable[..., Body], kind: str) -> None:
    validator = Draft202012Validator(strict(root(kind)) | {"additionalProperties": False})
    Draft202012Validator.check_schema(validator.schema)
    metadata = {"metadata": {}}
    assert list(validator.iter_errors(body(kind) | metadata)) == []


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("InferenceModel", {"poolref": "x"}),
        ("InferenceModel", {"storageUri": "ftp://x"}),
        ("InferenceModel", {"inputs.0.dataType": "FP32"}),
        ("InferenceModel", {"footprint.compute": "101%"}),
        ("InferenceModel", {"footprint.gpuMemory": "2Gx"}),
        ("InferenceModel", {"slo.queueDelay.p90": "5"}),
        ("InferenceModel", {"slo.errorRate": "100.1%"}),
        ("Ensemble", {"rollout.steps.0.traffic": "101%"}),
        ("InferenceModel", {"modelFormat.name": "excel"}),
        ("Ensemble", {"steps": []}),
        ("ServingPool", {"maxGpusPerServer": -1}),
    ],
)
def test_what_the_model_refuses_the_schema_refuses(
    body: Callable[..., Body], kind: str, changes: dict[str, Any]
) -> None:
    wrong = body(kind, changes)
    assert parse_body(wrong)[0] is None
    assert list(Draft202012Validator(strict(root(kind))).iter_errors(wrong | {"metadata": {}}))


@pytest.mark.parametrize("definition", DEFINITIONS, ids=KINDS)
def test_names_columns_and_subresources(definition: Any) -> None:
    result = crd(definition)
    names, version = result["spec"]["names"], result["spec"]["versions"][0]
    assert result["metadata"]["name"] == f"{names['plural']}.argosy.dev"
    assert f"argosy.dev/{version['name']}" == API_VERSION
    assert not (OTHERS | KUBERNETES) & set(names["shortNames"])
    assert [column["name"] for column in version["additionalPrinterColumns"]][:2] == ["Ready", "Reason"]
    schema = version["schema"]["openAPIV3Schema"]
    scale = version["subresources"]["scale"]
    assert version["subresources"]["status"] == {}
    assert scale["specReplicasPath"] == ".spec.replicas"
    for path in (*scale.values(), *(column["jsonPath"] for column in version["additionalPrinterColumns"])):
        assert _has(schema, path), path


def _has(schema: Schema, path: str) -> bool:
    for part in path.split("[")[0].strip(".").split("."):
        if part == "metadata":
            return True
        if part not in schema.get("properties", {}):
            return False
        schema = schema["properties"][part]
    return True


def test_short_names_differ() -> None:
    assert len({definition.short_name for definition in DEFINITIONS}) == len(DEFINITIONS)


def test_files_hold_the_definitions_without_anchors() -> None:
    files = crd_files()
    assert sorted(files) == [
        "argosy.dev_ensembles.yaml",
        "argosy.dev_inferencemodels.yaml",
        "argosy.dev_servingpools.yaml",
    ]
    for definition in DEFINITIONS:
        text = files[f"argosy.dev_{definition.plural}.yaml"]
        assert text.startswith("# Generated")
        assert "&id" not in text
        assert yaml.safe_load(text) == crd(definition)


def test_what_stands_in_lists_is_not_filled_in() -> None:
    """A tool that compares a whole list with the manifest's, as `kubectl apply` does, would find a change."""

    def defaults(schema: dict[str, Any], within_list: bool) -> int:
        inner = [*schema.get("properties", {}).values()]
        own = int(within_list and "default" in schema)
        below = sum(defaults(item, within_list) for item in inner)
        return own + below + (defaults(schema["items"], True) if "items" in schema else 0)

    for definition in DEFINITIONS:
        (version,) = crd(definition)["spec"]["versions"]
        assert defaults(version["schema"]["openAPIV3Schema"], False) == 0
