"""The free `config` map against ModelConfig's schema."""

from typing import Any

import pytest
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy.api.model.configfields import GOVERNED, check_config, check_own_files
from argosy.api.problems import field_path


def problems_of(config: dict[str, Any]) -> list[tuple[str, str]]:
    return [(field_path(fault.path), fault.message) for fault in check_config(config)]


def test_right_fields_of_every_type_pass() -> None:
    config = {
        "default_model_filename": "m.onnx",
        "metric_tags": {"team": "search"},
        "response_cache": {"enable": True},
        "model_warmup": [
            {"name": "w", "batch_size": 1, "inputs": {"x": {"data_type": "TYPE_FP32", "dims": [4], "zero_data": True}}}
        ],
        "optimization": {"priority": "PRIORITY_MAX", "graph": {"level": -1}},
        "model_metrics": {
            "metric_control": [
                {"metric_identifier": {"family": "f"}, "histogram_options": {"buckets": [1, 2.5]}},
            ]
        },
    }
    assert problems_of(config) == []


@pytest.mark.parametrize("name", sorted(GOVERNED))
def test_a_field_that_the_spec_decides_is_refused_with_its_name(name: str) -> None:
    assert name in ModelConfig.DESCRIPTOR.fields_by_name
    assert problems_of({name: None}) == [(name, f"is decided by {GOVERNED[name]}; set that instead")]


@pytest.mark.parametrize(
    ("config", "path", "message"),
    [
        ({"optimisation": {}}, "optimisation", "unknown field of ModelConfig; did you mean 'optimization'?"),
        ({"responseCache": {}}, "responseCache", "did you mean 'response_cache'?"),
        ({"response_cache": {"enabled": True}}, "response_cache.enabled", "did you mean 'enable'?"),
        ({"response_cache": True}, "response_cache", "expected a map of fields; found True"),
        ({"response_cache": {"enable": "true"}}, "response_cache.enable", "expected true or false"),
        ({"model_warmup": {}}, "model_warmup", "expected a list"),
        ({"model_warmup": [{"count": -1}]}, "model_warmup[0].count", "from 0 to 4294967295; found -1"),
        ({"model_warmup": [{"count": "1"}]}, "model_warmup[0].count", "expected a whole number"),
        ({"model_warmup": [{"count": True}]}, "model_warmup[0].count", "expected a whole number"),
        (
            {"model_warmup": [{"inputs": {"x": {"data_type": "FP32"}}}]},
            "model_warmup[0].inputs.x.data_type",
            "'FP32' is no DataType; did you mean 'TYPE_FP32'?",
        ),
        (
            {"model_warmup": [{"inputs": {"x": {"zero_data": True, "random_data": True}}}]},
            "model_warmup[0].inputs.x.random_data",
            "set only one of zero_data, random_data",
        ),
        ({"metric_tags": []}, "metric_tags", "expected a map"),
        ({"metric_tags": {"a.b": 1}}, "metric_tags['a.b']", "expected text"),
        ({"default_model_filename": 3}, "default_model_filename", "expected text; found 3"),
        (
            {"model_metrics": {"metric_control": [{"histogram_options": {"buckets": ["1"]}}]}},
            "model_metrics.metric_control[0].histogram_options.buckets[0]",
            "expected a number",
        ),
    ],
)
def test_what_the_schema_does_not_allow_is_named(config: dict[str, Any], path: str, message: str) -> None:
    problems = problems_of(config)
    assert len(problems) == 1
    assert problems[0][0] == path
    assert message in problems[0][1]


def own_files(backend: str = "tensorrt", **files: Any) -> list[tuple[str, str]]:
    result = check_own_files({"cc_model_filenames": {key.strip("_"): name for key, name in files.items()}}, backend)
    return [(field_path(fault.path), fault.message) for fault in result]


def test_a_file_for_every_compute_capability_passes() -> None:
    assert check_config({"cc_model_filenames": {"8.0": "a.plan", "12.0": "b/c.plan"}}) == []
    for backend in ("tensorrt", "onnxruntime", "pytorch"):
        assert own_files(backend, **{"8.0": "a.plan", "12.0": "b/c.plan"}) == []


@pytest.mark.parametrize("key", ["90", "sm_90", "9", "9.0a", "09.0", "H100", "8.10"])
def test_a_key_that_no_gpu_has_is_refused(key: str) -> None:
    ((path, message),) = own_files(**{key: "a.plan"})
    assert key in path
    assert path.startswith("cc_model_filenames")
    assert message == "is no compute capability; write major.minor, such as 8.0 or 12.0"


@pytest.mark.parametrize("name", ["", " ", "/etc/model.plan", "../2/model.plan", "a/../../b"])
def test_a_file_outside_the_version_is_refused(name: str) -> None:
    ((path, message),) = own_files(**{"9.0": name})
    assert "9.0" in path
    assert message == f"expected a file of the version's folder; found {name!r}"


def test_a_backend_that_reads_no_such_files_is_reported() -> None:
    assert own_files("python", **{"9.0": "a.py"}) == [
        ("cc_model_filenames", "backend python opens one file on every GPU; leave it out")
    ]
