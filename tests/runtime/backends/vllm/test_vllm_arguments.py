"""What an engine is started with."""

import json
from pathlib import Path

import pytest
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends import vllm as backend
from argosy_runtime.backends.contract import InstanceSpec
from argosy_runtime.backends.vllm.adapters import lora_arguments
from argosy_runtime.backends.vllm.opening.arguments import engine_arguments, split_unknown
from argosy_runtime.backends.vllm.opening.devices import visible_gpus
from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.language import is_embedding_model, is_language_model
from argosy_runtime.modelconfig import parse_text


def config(parameters: str = "", **values: str) -> ModelConfig:
    """Return a configuration with these parameters."""
    made = parse_text(f'name: "llm" backend: "vllm" {parameters}')
    for name, value in values.items():
        made.parameters[name].string_value = value
    return made


def spec(kind: str, gpu: int = 0, **values: str) -> InstanceSpec:
    """Return the spec of an instance of that kind."""
    return InstanceSpec(config(**values), 1, Path("/m"), Path("/m/1"), "llm_0", kind, gpu)


def test_a_folder_of_hugging_face_is_a_model(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    assert engine_arguments(config(), tmp_path) == {"model": str(tmp_path)}
    assert is_language_model(backend.complete_config(tmp_path, tmp_path, config()))


def test_model_json_has_the_arguments(tmp_path):
    (tmp_path / "weights").mkdir()
    text = {"model": "weights", "tokenizer": "org/name", "max_model_len": 9, "enable_lora": "true"}
    (tmp_path / "model.json").write_text(json.dumps(text))
    assert engine_arguments(config(), tmp_path) == {
        "model": str(tmp_path / "weights"),
        "tokenizer": "org/name",
        "max_model_len": 9,
        "enable_lora": True,
    }


def test_parameters_override_it(tmp_path):
    (tmp_path / "model.json").write_text('{"model": "org/name", "max_model_len": 9}')
    own = config(max_model_len="10", dtype="float16", compilation_config='{"level": 1}', enforce_eager="TRUE")
    assert engine_arguments(own, tmp_path) == {
        "model": "org/name",
        "max_model_len": 10,
        "dtype": "float16",
        "compilation_config": {"level": 1},
        "enforce_eager": True,
    }


def test_parameters_of_others_are_no_arguments(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    others = config(REPORT_CUSTOM_METRICS="true", EXECUTION_ENV_PATH="/e", chat="{}", adapters="[]")
    assert engine_arguments(others, tmp_path) == {"model": str(tmp_path)}


def test_unknown_arguments_of_the_file_are_refused_and_of_the_configuration_are_named():
    arguments = {"model": "m", "max_len": 1, "other": 2}
    assert split_unknown(arguments, ["model", "max_len"], ["other"]) == ({"model": "m", "max_len": 1}, ["other"])
    with pytest.raises(ServingError, match="this vLLM has no argument 'max_len'"):
        split_unknown(arguments, ["model"], ["other"])


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (None, ErrorKind.UNAVAILABLE, "unable to find '.*model.json' or '.*config.json' for model 'llm'"),
        ('{"model"', ErrorKind.INVALID_ARG, "'.*model.json' cannot be read"),
        ("[]", ErrorKind.INVALID_ARG, "is not a JSON object"),
        ('{"model": 5}', ErrorKind.INVALID_ARG, "'model' in '.*' is not a text"),
    ],
)
def test_a_folder_without_a_model_is_refused(tmp_path, text, kind, message):
    if text is not None:
        (tmp_path / "model.json").write_text(text)
    with pytest.raises(ServingError, match=message) as refused:
        backend.complete_config(tmp_path, tmp_path, config())
    assert refused.value.kind is kind


def test_a_batch_dimension_is_refused(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ServingError, match="max_batch_size must be 0"):
        backend.complete_config(tmp_path, tmp_path, config("max_batch_size: 4"))


def test_a_model_that_pools_makes_embeddings(tmp_path):
    (tmp_path / "model.json").write_text('{"model": "m", "runner": "pooling"}')
    completed = backend.complete_config(tmp_path, tmp_path, config())
    assert is_embedding_model(completed)
    assert not is_language_model(completed)


@pytest.mark.parametrize(
    ("kind", "gpu", "ids", "parts", "shown", "visible"),
    [
        ("KIND_CPU", 0, "", 1, None, None),
        ("KIND_GPU", 2, "", 1, None, "2"),
        ("KIND_GPU", 1, "", 1, "5, 6", "6"),
        ("KIND_MODEL", 0, "", 4, None, None),
        ("KIND_MODEL", 0, "1,3", 2, None, "1,3"),
        ("KIND_MODEL", 0, "1,0", 2, "GPU-a,GPU-b", "GPU-b,GPU-a"),
    ],
)
def test_an_instance_sees_its_gpus(kind, gpu, ids, parts, shown, visible):
    named = {"gpu_device_ids": ids} if ids else {}
    assert visible_gpus(spec(kind, gpu, **named), parts, shown) == visible
    if ids:
        assert visible_gpus(spec(kind, gpu, GPU_DEVICE_IDS=ids), parts, shown) == visible


@pytest.mark.parametrize(
    ("kind", "gpu", "ids", "parts", "message"),
    [
        ("KIND_GPU", 0, "", 2, "KIND_GPU is for one GPU, and its parallelism is 2; specify KIND_MODEL"),
        ("KIND_MODEL", 0, "0,1", 4, "gpu_device_ids names 2 GPUs, and its parallelism .* is 4"),
        ("KIND_MODEL", 0, "0,0", 2, "expected different GPUs"),
        ("KIND_GPU", 3, "", 1, "there is no GPU 3 among 0,1"),
    ],
)
def test_gpus_that_do_not_fit_are_refused(kind, gpu, ids, parts, message):
    named = {"gpu_device_ids": ids} if ids else {}
    with pytest.raises(ServingError, match=message):
        visible_gpus(spec(kind, gpu, **named), parts, "0,1")


def test_adapters_turn_lora_on_as_large_as_they_are(tmp_path):
    (tmp_path / "adapter_config.json").write_text('{"r": 40}')
    paths = {"a": str(tmp_path)}
    assert lora_arguments({}, {}, on_cpu=False) == {}
    assert lora_arguments({}, paths, on_cpu=False) == {"enable_lora": True, "max_lora_rank": 64}
    assert lora_arguments({}, paths, on_cpu=True) == {"enable_lora": True, "max_lora_rank": 64, "max_loras": 2}
    own = {"max_lora_rank": 128, "max_loras": 1}
    assert lora_arguments(own, paths, on_cpu=False) == {"enable_lora": True}
    assert lora_arguments(own, paths, on_cpu=True) == {"enable_lora": True, "max_loras": 2}
