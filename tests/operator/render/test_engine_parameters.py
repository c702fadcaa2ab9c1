"""What Triton's TensorRT-LLM backend is told in config.pbtxt."""

from typing import Any

import yaml

from argosy.api import parse_documents
from argosy.render.config.model_config import Devices, model_config

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


def parameters(options: dict[str, Any], config: dict[str, Any] | None = None) -> dict[str, str]:
    """Return the parameters that are rendered for these options."""
    body = yaml.safe_load(BODY)
    body["spec"]["engine"]["options"] = options
    body["spec"]["config"] = config or {}
    models, problems = parse_documents(yaml.safe_dump(body), "chat.yaml")
    assert [str(problem) for problem in problems] == []
    rendered = model_config(models[0], Devices((0, 1)), (2, 3))
    assert rendered.parameters["gpu_device_ids"].string_value == "0,1"
    return {name: value.string_value for name, value in rendered.parameters.items() if name != "gpu_device_ids"}


def test_an_engine_is_opened_where_the_agent_brings_it() -> None:
    assert parameters({"max_seq_len": 4096}) == {
        "gpt_model_type": "inflight_fused_batching",
        "gpt_model_path": "/models/repository/Chat_v1/3",
        "tokenizer_dir": "/models/repository/Chat_v1/3/tokenizer",
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
    assert {name: value for name, value in result.items() if not name.startswith(("gpt_", "tokenizer"))} == {
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
