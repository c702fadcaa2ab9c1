"""Language models: what is rendered for NVIDIA's server is read by stand-ins as its backends do, and for the bundled
server by its own backend.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.operator.planning import declared
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy.api import InferenceModel, parse_documents
from argosy.api.servingpool import RuntimeName
from argosy.render.config.model_config import Devices, model_config
from argosy.render.config.version_texts import version_texts
from argosy_runtime.backends.vllm.opening.arguments import engine_arguments, parts

from .nvidia import BackendError, load_tensorrtllm, load_vllm

BODY = """
apiVersion: argosy.dev/v1alpha1
kind: InferenceModel
metadata: {name: chat}
spec:
  poolRef: {name: gpus}
  modelName: Chat_v1
  modelFormat: {name: huggingface}
  version: 3
  storageUri: s3://models/chat
  parallelism: {tensor: 2}
  maxBatchSize: 16
  inputs:
  - {name: input_ids, dataType: TYPE_INT32, dims: [-1]}
  outputs:
  - {name: output_ids, dataType: TYPE_INT32, dims: [-1, -1]}
  engine:
    builder: tensorrt_llm
    precision: bf16
"""


TRITON = RuntimeName.TRITON
ON_TWO = Devices((0, 1), 1, TRITON)


def engine_config(options: dict[str, Any], config: dict[str, Any] | None = None, **engine: Any) -> ModelConfig:
    """Return what is rendered for an engine of these options on NVIDIA's server."""
    body = yaml.safe_load(BODY)
    body["spec"]["engine"] |= {"options": options, **engine}
    body["spec"]["config"] = config or {}
    models, problems = parse_documents(yaml.safe_dump(body), "chat.yaml")
    assert [str(problem) for problem in problems] == []
    (model,) = models
    assert isinstance(model, InferenceModel)
    return model_config(model, ON_TWO, (2, 3))


def parameters(options: dict[str, Any], config: dict[str, Any] | None = None, **engine: Any) -> dict[str, str]:
    """Return the parameters that are rendered for these options."""
    rendered = engine_config(options, config, **engine)
    assert rendered.parameters["gpu_device_ids"].string_value == "0,1"
    return {name: value.string_value for name, value in rendered.parameters.items() if name != "gpu_device_ids"}


def test_an_engine_is_opened_where_the_agent_brings_it() -> None:
    assert parameters({"max_seq_len": 4096}) == {
        "gpt_model_type": "inflight_fused_batching",
        "gpt_model_path": "/models/repository/Chat_v1/3",
        "tokenizer_dir": "/models/repository/Chat_v1/3/tokenizer",
        "xgrammar_tokenizer_info_path": "",
        "guided_decoding_backend": "",
    }


def test_what_the_server_reads_goes_along_and_nothing_else() -> None:
    result = parameters(
        {
            "max_seq_len": 4096,
            "max_beam_width": 4,
            "cuda_graph_mode": True,
            "cuda_graph_cache_size": 8,
            "kv_cache_free_gpu_mem_fraction": 0.85,
            "enable_kv_cache_reuse": False,
            "batch_scheduler_policy": "max_utilization",
        }
    )
    always = ("gpt_", "tokenizer", "xgrammar", "guided")
    assert {name: value for name, value in result.items() if not name.startswith(always)} == {
        "max_beam_width": "4",
        "cuda_graph_mode": "true",
        "cuda_graph_cache_size": "8",
        "kv_cache_free_gpu_mem_fraction": "0.85",
        "enable_kv_cache_reuse": "false",
        "batch_scheduler_policy": "max_utilization",
    }


def test_config_has_the_last_word() -> None:
    result = parameters({}, {"parameters": {"gpt_model_path": {"string_value": "/elsewhere"}}})
    assert result["gpt_model_path"] == "/elsewhere"
    assert result["gpt_model_type"] == "inflight_fused_batching"


LOOKAHEAD = {"speculative_decoding_mode": "lookahead_decoding", "max_draft_len": 83, "decoding_mode": "lookahead"}
SIZES = {"lookahead_window_size": 7, "lookahead_ngram_size": 7, "lookahead_verification_set_size": 7}
ENGINES: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ({}, {}, {"enable_kv_cache_reuse": True}),
    ({"enable_kv_cache_reuse": False}, {}, {"enable_kv_cache_reuse": False}),
    # an engine without fused attention over a paged cache cannot reuse blocks, which is the backend's default
    ({"use_paged_context_fmha": False}, {}, {"enable_kv_cache_reuse": False}),
    ({"context_fmha": False}, {}, {"enable_kv_cache_reuse": False}),
    ({"kv_cache_type": "disabled"}, {}, {"enable_kv_cache_reuse": False}),
    (
        {"kv_cache_dtype": "fp8"},
        {"calibration": {"dataUri": "s3://d/p.jsonl"}},
        {"enable_kv_cache_reuse": False},
    ),
    (LOOKAHEAD | SIZES, {}, {"decoding_mode": "lookahead", "lookahead": (7, 7, 7)}),
]


@pytest.mark.parametrize(("options", "engine", "expected"), ENGINES)
def test_nvidias_backend_reads_what_is_rendered(
    options: dict[str, Any], engine: dict[str, Any], expected: dict[str, Any]
) -> None:
    read = load_tensorrtllm(
        engine_config(options, **engine), paged_context_fmha=expected.get("enable_kv_cache_reuse", True)
    )
    assert {name: read[name] for name in expected} == expected
    assert read["gpus"] == [0, 1]


def test_a_prebuilt_engine_is_opened_too() -> None:
    model = declared.model(
        "m", modelFormat={"name": "tensorrt_llm"}, inputs=None, outputs=None, footprint={"gpuMemory": "8Gi"}
    )
    read = load_tensorrtllm(model_config(model, Devices((1,), 1, TRITON), (4,)))
    assert read["gpt_model_path"] == "/models/repository/m/4"
    assert read["gpus"] == [1]


@pytest.mark.parametrize(
    "missing", ["gpt_model_type", "tokenizer_dir", "xgrammar_tokenizer_info_path", "guided_decoding_backend"]
)
def test_the_stand_in_loads_nothing_without_what_has_no_default(missing: str) -> None:
    config = engine_config({})
    del config.parameters[missing]
    with pytest.raises(BackendError, match=missing):
        load_tensorrtllm(config)


def a_vllm_model(**spec: Any) -> InferenceModel:
    """Return a model of vLLM."""
    return declared.model("m", modelFormat={"name": "vllm"}, inputs=None, outputs=None, footprint=None, **spec)


def test_a_vllm_model_has_its_gpu_and_its_arguments() -> None:
    devices = Devices((2,), 1, TRITON)
    model = a_vllm_model()
    read = load_vllm(model_config(model, devices, (5,)), version_texts(model, devices), gpus=4, version=5)
    assert read == {"model": "/models/repository/m/5", "gpus": [2], "metrics": True}


def test_a_vllm_model_on_two_gpus_has_all_of_its_server() -> None:
    model = a_vllm_model(parallelism={"tensor": 2})
    config, texts = model_config(model, ON_TWO, (1,)), version_texts(model, ON_TWO)
    read = load_vllm(config, texts, gpus=2, version=1)
    assert read == {"model": "/models/repository/m/1", "tensor_parallel_size": 2, "gpus": [0, 1], "metrics": True}
    config.max_batch_size = 4
    with pytest.raises(BackendError, match="max_batch_size"):
        load_vllm(config, texts, gpus=2, version=1)


def test_metrics_may_be_turned_off() -> None:
    model = a_vllm_model(config={"parameters": {"REPORT_CUSTOM_METRICS": {"string_value": "false"}}})
    devices = Devices((0,), 1, TRITON)
    read = load_vllm(model_config(model, devices, (1,)), version_texts(model, devices), gpus=1, version=1)
    assert not read["metrics"]


def test_the_largest_batch_of_vllm_is_its_sequences() -> None:
    model = a_vllm_model(maxBatchSize=64)
    for devices in (Devices((0,), 1, TRITON), Devices((0,))):
        assert model_config(model, devices, (1,)).max_batch_size == 0
    devices = Devices((0,), 1, TRITON)
    read = load_vllm(model_config(model, devices, (1,)), version_texts(model, devices), gpus=1, version=1)
    assert read["max_num_seqs"] == 64


@pytest.mark.parametrize(
    ("spec", "gpus", "expected"),
    [
        ({}, (), {}),
        ({}, (0,), {"gpu_device_ids": "0"}),
        ({"footprint": {"gpuMemory": "20Gi"}}, (1,), {"gpu_device_ids": "1", "GPU_MEMORY": str(20 << 30)}),
        ({"footprint": {"gpus": 2}}, (2, 3), {"gpu_device_ids": "2,3", "tensor_parallel_size": "2"}),
        (
            {"parallelism": {"tensor": 2, "pipeline": 2}, "footprint": {"gpus": 4, "gpuMemory": "70Gi"}},
            (0, 1, 2, 3),
            {
                "gpu_device_ids": "0,1,2,3",
                "tensor_parallel_size": "2",
                "pipeline_parallel_size": "2",
                "GPU_MEMORY": str(70 << 30),
            },
        ),
        ({"maxBatchSize": 32}, (), {"max_num_seqs": "32"}),
    ],
)
def test_the_bundled_server_starts_vllm_by_the_spec(
    spec: dict[str, Any], gpus: tuple[int, ...], expected: dict[str, str], tmp_path: Path
) -> None:
    model = declared.model("m", modelFormat={"name": "vllm"}, inputs=None, outputs=None, **{"footprint": None} | spec)
    config = model_config(model, Devices(gpus), (1,))
    assert not version_texts(model, Devices(gpus))
    assert {name: value.string_value for name, value in config.parameters.items()} == expected
    assert config.max_batch_size == 0
    (tmp_path / "config.json").write_text("{}")
    arguments = engine_arguments(config, tmp_path)
    names = {"tensor_parallel_size", "pipeline_parallel_size", "max_num_seqs"}
    sizes = {name: int(expected[name]) for name in names & expected.keys()}
    assert arguments == {"model": str(tmp_path), **sizes}
    assert parts(arguments) == max(1, len(gpus))


def test_arguments_of_the_spec_reach_the_engine() -> None:
    model = a_vllm_model(config={"parameters": {"max_model_len": {"string_value": "8192"}}})
    assert model_config(model, Devices((0,)), (1,)).parameters["max_model_len"].string_value == "8192"


def test_the_bundled_server_gets_none_of_what_nvidias_reads() -> None:
    model = a_vllm_model()
    assert not version_texts(model, Devices((0,)))
    assert "REPORT_CUSTOM_METRICS" not in model_config(model, Devices((0,)), (1,)).parameters
    engine = declared.model("m", modelFormat={"name": "tensorrt_llm"}, inputs=None, outputs=None, footprint=None)
    assert set(model_config(engine, Devices((0,)), (1,)).parameters) == {"gpu_device_ids"}


def test_arguments_are_json() -> None:
    (text,) = version_texts(a_vllm_model(), ON_TWO).values()
    assert json.loads(text)["model"].endswith("/${version}")


def test_a_bundled_engine_keeps_to_its_footprint() -> None:
    spec = {"modelFormat": {"name": "tensorrt_llm"}, "inputs": None, "outputs": None}
    model = declared.model("m", footprint={"gpuMemory": "8Gi"}, **spec)
    assert model_config(model, Devices((1,)), (1,)).parameters["GPU_MEMORY"].string_value == str(8 << 30)
    assert "GPU_MEMORY" not in model_config(model, Devices((1,), 1, TRITON), (1,)).parameters
