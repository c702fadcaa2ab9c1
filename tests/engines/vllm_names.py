"""Run with the interpreter of a vLLM, real or a stand-in: the parameters of all that the backend uses, as JSON."""

import dataclasses
import inspect
import json
import sys
from typing import Any

if len(sys.argv) > 1:
    sys.path.insert(0, sys.argv[1])

from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.envs import enable_envs_cache
from vllm.exceptions import GracefulHTTPError, VLLMClientError, VLLMNotFoundError
from vllm.inputs import tokens_input
from vllm.lora.request import LoRARequest
from vllm.pooling_params import PoolingParams
from vllm.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.exceptions import EngineDeadError
from vllm.v1.engine.output_processor import RequestOutputCollector
from vllm.v1.metrics.loggers import PrometheusStatLogger

METHODS = (
    "from_engine_args",
    "add_request",
    "abort",
    "add_lora",
    "remove_lora",
    "sleep",
    "wake_up",
    "shutdown",
)
LOGGING = ("__init__", "record", "record_admission_rejection", "record_sleep_state", "log_engine_initialized")


def parameters(function: Any) -> dict[str, str]:
    """Return the names of a function's parameters with their kinds."""
    return {name: parameter.kind.name for name, parameter in inspect.signature(function).parameters.items()}


def init_fields(kind: Any) -> list[str]:
    """Return the names of a dataclass's arguments."""
    return [field.name for field in dataclasses.fields(kind) if field.init]


print(
    json.dumps(
        {
            "AsyncEngineArgs": [field.name for field in dataclasses.fields(AsyncEngineArgs)],
            "SamplingParams": list(SamplingParams.__struct_fields__),
            "PoolingParams": list(PoolingParams.__struct_fields__),
            "LoRARequest": list(LoRARequest.__struct_fields__),
            "StructuredOutputsParams": [
                field.name for field in dataclasses.fields(StructuredOutputsParams) if field.init
            ],
            "RequestOutputKind": [kind.name for kind in RequestOutputKind],
            "tokens_input": parameters(tokens_input),
            **{f"PrometheusStatLogger.{name}": parameters(getattr(PrometheusStatLogger, name)) for name in LOGGING},
            "RequestOutputCollector.get_nowait": parameters(RequestOutputCollector.get_nowait),
            "enable_envs_cache": parameters(enable_envs_cache),
            "exceptions": [
                [name.__name__ for name in error.__mro__ if "vllm" in name.__module__]
                for error in (VLLMClientError, VLLMNotFoundError, GracefulHTTPError, EngineDeadError)
            ],
            "properties": [name for name in ("errored", "tokenizer") if isinstance(getattr(AsyncLLM, name), property)],
            **{name: parameters(getattr(AsyncLLM, name)) for name in METHODS},
        }
    )
)
