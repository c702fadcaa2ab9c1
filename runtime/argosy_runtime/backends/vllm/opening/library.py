"""vLLM itself: the classes and functions that this backend uses, imported when an instance is loaded.

They are written against vLLM 0.32 and 0.33. What other releases call otherwise fails here, while loading.
"""

import os
from dataclasses import dataclass, fields
from typing import Any

from argosy_runtime.errors import unavailable


@dataclass(frozen=True, slots=True)
class Library:
    """The parts of vLLM, by their own names."""

    version: str
    AsyncEngineArgs: Any
    AsyncLLM: Any
    SamplingParams: Any
    StructuredOutputsParams: Any
    RequestOutputKind: Any
    PoolingParams: Any
    LoRARequest: Any
    PrometheusStatLogger: Any
    EngineDeadError: type[Exception]
    VLLMClientError: type[Exception]
    VLLMNotFoundError: type[Exception]
    GracefulHTTPError: type[Exception]
    tokens_input: Any
    enable_envs_cache: Any

    @property
    def argument_names(self) -> list[str]:
        """The names of the arguments of an engine."""
        return [field.name for field in fields(self.AsyncEngineArgs)]


def import_library() -> Library:
    """Return vLLM, which takes seconds to import. Raises ServingError (UNAVAILABLE) for a release without its parts."""
    # Its log repeats on every start what only its own developers need; its processes must not be forked from threads.
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    # As the server's own log; why a process of the engine ended is read there.
    os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")
    import vllm

    try:
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.envs import enable_envs_cache
        from vllm.exceptions import GracefulHTTPError, VLLMClientError, VLLMNotFoundError
        from vllm.inputs import tokens_input
        from vllm.lora.request import LoRARequest
        from vllm.pooling_params import PoolingParams
        from vllm.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams
        from vllm.v1.engine.async_llm import AsyncLLM
        from vllm.v1.engine.exceptions import EngineDeadError
        from vllm.v1.metrics.loggers import PrometheusStatLogger
    except ImportError as error:
        raise unavailable(
            f"vLLM {vllm.__version__} is not a release that backend 'vllm' knows (0.32, 0.33): {error}"
        ) from error
    return Library(
        version=str(vllm.__version__),
        AsyncEngineArgs=AsyncEngineArgs,
        AsyncLLM=AsyncLLM,
        SamplingParams=SamplingParams,
        StructuredOutputsParams=StructuredOutputsParams,
        RequestOutputKind=RequestOutputKind,
        PoolingParams=PoolingParams,
        LoRARequest=LoRARequest,
        PrometheusStatLogger=PrometheusStatLogger,
        EngineDeadError=EngineDeadError,
        VLLMClientError=VLLMClientError,
        VLLMNotFoundError=VLLMNotFoundError,
        GracefulHTTPError=GracefulHTTPError,
        tokens_input=tokens_input,
        enable_envs_cache=enable_envs_cache,
    )
