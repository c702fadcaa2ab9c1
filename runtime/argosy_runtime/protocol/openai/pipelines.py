"""Pipelines as chat models: ensembles and models whose configuration names the tensors of a chat.

A chat becomes the inputs that the pipeline names; what a request asks for and the pipeline has no input for is refused.
"""

import codecs
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import orjson
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import internal
from argosy_runtime.language import Delta
from argosy_runtime.language.deltas import Position
from argosy_runtime.messages import Array, InferRequest, InferResponse, Tensor
from argosy_runtime.modelconfig import ConfigError, numpy_dtype, v2_name
from argosy_runtime.modelconfig.parameters.chat import ChatTensors, chat_tensors
from argosy_runtime.tensors import string_array, string_elements

from .chats import message_document
from .errors import ApiError, ParameterNames, invalid
from .models import CHAT_COMPLETIONS, RESPONSES
from .requests.chat import ChatRequest
from .requests.fields import INT64_MAX
from .sampling import sampling_parameters
from .tools.use import tool_use

_INPUTS: Final = ("prompt", "system", "messages", "sampling_parameters", "max_tokens", "stream")
_OUTPUTS: Final = ("text", "refused", "finish_reason", "prompt_tokens", "completion_tokens")
_INSTRUCTIONS: Final = ("system", "developer")
_LARGEST: Final = {"INT32": 2**31 - 1, "UINT32": 2**32 - 1, "INT64": 2**63 - 1}


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A pipeline to address. `datatypes` are those of its inputs; `batched`: its tensors begin with a batch of one."""

    endpoints: ClassVar = (CHAT_COMPLETIONS, RESPONSES)

    base: str
    tensors: ChatTensors
    datatypes: dict[str, str]
    batched: bool

    @classmethod
    def of(cls, config: ModelConfig) -> "Pipeline | None":
        """Return the pipeline of a configuration that declares a chat, else None."""
        try:
            tensors = chat_tensors(config)
        except ConfigError:  # such a model is not loaded
            return None
        if tensors is None:
            return None
        datatypes = {tensor.name: v2_name(tensor.data_type) for tensor in config.input}
        return cls(config.name, tensors, datatypes, config.max_batch_size > 0)


def pipeline_inference(
    pipeline: Pipeline, request: ChatRequest, request_id: str, names: Callable[[], ParameterNames]
) -> InferRequest:
    """Return the inference request of a chat. Raises ApiError, by the request's `names`, for what it cannot do."""
    sampling, most = _sampling(request)
    lacking = _lacking(pipeline.tensors, request, sampling, most)
    if lacking:
        raise _unsupported(pipeline, names().of(lacking))
    if most is not None and most > _largest(pipeline):
        name = names().of("max_tokens")
        raise invalid(f"Invalid '{name}': {most} is too large.", name, "integer_above_max_value")
    messages = [message_document(message, at) for at, message in enumerate(request.messages)]
    values = {
        **_prompts(pipeline, messages),
        **_parameters(pipeline.tensors, sampling, most),
        "stream": request.streams,
    }
    tensors = {key: getattr(pipeline.tensors, key) for key in _INPUTS}
    inputs = [
        _tensor(pipeline, tensors[key], value) for key, value in values.items() if tensors[key] and value is not None
    ]
    outputs = tuple(name for key in _OUTPUTS if (name := getattr(pipeline.tensors, key)))
    return InferRequest(
        pipeline.base, {tensor.name: tensor for tensor in inputs}, id=request_id, requested_outputs=outputs
    )


def _prompts(pipeline: Pipeline, messages: list[dict[str, Any]]) -> dict[str, str | None]:
    users = [message["content"] for message in messages if message["role"] == "user"]
    if not users:
        raise invalid("Invalid 'messages': there is no message with role 'user'.", "messages", "invalid_value")
    instructions = [message["content"] for message in messages if message["role"] in _INSTRUCTIONS]
    tensors = pipeline.tensors
    if instructions and not (tensors.system or tensors.messages):
        message = f"The model '{pipeline.base}' is a pipeline without an input for system messages: leave them out."
        raise invalid(message, "messages", "unsupported_value")
    return {
        "prompt": users[-1],
        "system": "\n".join(instructions) if instructions else None,
        "messages": orjson.dumps(messages).decode(),
    }


def _sampling(request: ChatRequest) -> tuple[dict[str, Any], int | None]:
    """Return what is asked for of sampling other than by default, and the most tokens."""
    sampling = orjson.loads(sampling_parameters(request, request.most_tokens, request.requested_logprobs))
    for name, neutral in _NEUTRAL.items():
        if sampling.get(name) == neutral:
            del sampling[name]
    return sampling, sampling.pop("max_tokens")


def _lacking(tensors: ChatTensors, request: ChatRequest, sampling: dict[str, Any], most: int | None) -> str:
    """Return the first thing that is asked for and has no input, "" where there is none."""
    if tool_use(request) is not None:
        return "tools"
    for name, neutral in _OF_TEMPLATES.items():
        if getattr(request, name) not in (None, neutral):
            return name
    if most is not None and not (tensors.max_tokens or tensors.sampling_parameters):
        return "max_tokens"
    for name in _NOT_OF_PIPELINES:
        if name in sampling:
            return name
    return min(sampling) if sampling and not tensors.sampling_parameters else ""


def _parameters(tensors: ChatTensors, sampling: dict[str, Any], most: int | None) -> dict[str, str | int | None]:
    """Return the values of the inputs for limits and sampling."""
    if most is not None and not tensors.max_tokens:
        sampling = {**sampling, "max_tokens": most}
    return {"max_tokens": most, "sampling_parameters": orjson.dumps(sampling).decode() if sampling else None}


def _largest(pipeline: Pipeline) -> int:
    return _LARGEST.get(pipeline.datatypes.get(pipeline.tensors.max_tokens, ""), INT64_MAX)


_NEUTRAL: Final = {"temperature": 1, "top_p": 1, "frequency_penalty": 0, "presence_penalty": 0, "logit_bias": {}}
"""Values that ask for what is the default anyway, and that many clients always send."""
_NOT_OF_PIPELINES: Final = ("n", "logprobs")
_OF_TEMPLATES: Final[dict[str, Any]] = {
    "reasoning_effort": None,
    "verbosity": None,
    "chat_template_kwargs": {},
    "add_generation_prompt": True,
    "continue_final_message": False,
}
"""Fields that say how a template makes a prompt of the chat, with the values that ask for nothing."""


def _unsupported(pipeline: Pipeline, name: str) -> ApiError:
    message = f"The model '{pipeline.base}' is a pipeline that does not take '{name}': leave it out."
    return invalid(message, name, "unsupported_parameter")


def _tensor(pipeline: Pipeline, name: str, value: str | int) -> Tensor:
    datatype = pipeline.datatypes[name]
    shape = (1, 1) if pipeline.batched else (1,)
    if isinstance(value, str):
        return Tensor(name, datatype, string_array([value.encode()], shape))
    return Tensor(name, datatype, np.full(shape, value, numpy_dtype(datatype)))


class PipelineReader:
    """Reader of a pipeline's responses as the deltas of one choice. The pieces of text that it gives end at whole
    characters, also where those of the pipeline do not.
    """

    __slots__ = ("_decoder", "_finish_reason", "_refused", "_tensors", "completion_tokens", "num_input_tokens")
    num_cached_tokens = 0
    prompt_logprobs: "list[Position | None] | None" = None

    def __init__(self, tensors: ChatTensors) -> None:
        self._tensors = tensors
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._refused = False
        self._finish_reason = ""
        self.num_input_tokens = 0
        self.completion_tokens = 0

    @property
    def total_output_tokens(self) -> int:
        """Tokens of the answer so far."""
        return self.completion_tokens

    def read(self, response: InferResponse) -> list[Delta]:
        """Return the deltas of a response without an error. Raises ServingError for outputs of other shapes."""
        outputs = {tensor.name: tensor.array for tensor in response.outputs}
        tensors = self._tensors
        text = self._decoder.decode(_bytes(outputs.get(tensors.text)), response.final)
        self._refused = self._refused or bool(_number(outputs.get(tensors.refused)))
        reason = _bytes(outputs.get(tensors.finish_reason)).decode("utf-8", "replace")
        self._finish_reason = reason if reason not in ("", "None") else self._finish_reason
        self.num_input_tokens = _number(outputs.get(tensors.prompt_tokens)) or self.num_input_tokens
        self.completion_tokens += _number(outputs.get(tensors.completion_tokens))
        return [Delta(0, text, finish_reason=self._reason() if response.final else None)]

    def _reason(self) -> str:
        if self._refused:
            return "content_filter"
        return self._finish_reason or "stop"


def _bytes(array: Array | None) -> bytes:
    if array is None:
        return b""
    if array.size != 1:
        raise internal(f"a pipeline's text has shape {list(array.shape)}, expected one element")
    return string_elements(array)[0]


def _number(array: Array | None) -> int:
    return int(array.reshape(-1)[0]) if array is not None and array.size else 0
