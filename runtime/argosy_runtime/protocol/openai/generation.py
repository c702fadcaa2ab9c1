"""Inference requests of language models, made of requests of OpenAI's API."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import msgspec
import numpy as np
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.language.tensors import INPUT_IDS, MESSAGES, TEXT_INPUT, TEXT_OUTPUT
from argosy_runtime.messages import InferRequest, Tensor
from argosy_runtime.tensors import join_strings, raw_tensor

from .chats import chat_document
from .errors import invalid
from .models import CHAT_COMPLETIONS, COMPLETIONS, RESPONSES
from .requests.chat import ChatRequest
from .requests.completion import CompletionRequest, Prompt
from .requests.fields import GenerationFields
from .sampling import sampling_parameters

_CUMULATIVE: Final = "cumulative_logprob"
_COUNTS: Final = ("num_input_tokens", "num_output_tokens", "num_cached_tokens")


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """A language model to address, by its name `base`.

    `outputs` are the names of its outputs. Only one that is `decoupled` streams.
    """

    endpoints: ClassVar = (CHAT_COMPLETIONS, COMPLETIONS, RESPONSES)

    base: str
    outputs: frozenset[str]
    decoupled: bool

    @classmethod
    def of(cls, config: ModelConfig) -> "LanguageModel":
        """Return the model with this configuration."""
        outputs = frozenset(tensor.name for tensor in config.output)
        return cls(config.name, outputs, config.model_transaction_policy.decoupled)


def chat_inference(model: LanguageModel, request: ChatRequest, request_id: str) -> InferRequest:
    """Return the inference request of a chat. Raises ApiError."""
    logprobs = request.requested_logprobs
    sampling = sampling_parameters(request, request.most_tokens, logprobs)
    prompt = _text(MESSAGES, chat_document(request))
    return _inference(model, request, request_id, prompt, sampling, _outputs(model, request, logprobs))


def completion_inferences(model: LanguageModel, request: CompletionRequest, request_id: str) -> list[InferRequest]:
    """Return the inference requests of a completion, one for each prompt. Raises ApiError."""
    most = msgspec.UNSET if request.max_tokens is None else request.max_tokens
    prompt_logprobs = request.logprobs if request.echo else None
    chooses = request.candidates > (request.n or 1)
    wider = msgspec.structs.replace(request, n=request.candidates)
    logprobs = 0 if chooses and request.logprobs is None else request.logprobs
    sampling = sampling_parameters(wider, most, logprobs, prompt_logprobs)
    outputs = _outputs(model, wider, request.logprobs, prompt_logprobs)
    if chooses:
        outputs = (*outputs, _ranking_output(model, request))
    return [
        _inference(
            model, request, request_id, _prompt(prompt), sampling, outputs, repeats=repeats_prompt(request, prompt)
        )
        for prompt in request.prompts()
    ]


def _ranking_output(model: LanguageModel, request: CompletionRequest) -> str:
    """Return the output by which the best choices are found. Raises ApiError where the model has none."""
    if _CUMULATIVE not in model.outputs:
        message = f"The model '{request.model}' gives no probabilities to choose by: leave 'best_of' out."
        raise invalid(message, "best_of", "unsupported_parameter")
    return _CUMULATIVE


def repeats_prompt(request: CompletionRequest, prompt: Prompt) -> bool:
    """Return whether the model is to repeat the prompt: the text of tokens is known to it alone."""
    return bool(request.echo) and not isinstance(prompt, str)


def _outputs(
    model: LanguageModel, request: GenerationFields, logprobs: int | None, prompt_logprobs: int | None = None
) -> tuple[str, ...]:
    """Return the outputs to request: no more than the answer shows, since each costs something for each token."""
    names = [TEXT_OUTPUT, "finish_reason"]
    if request.n is not None and request.n > 1:
        names.append("index")
    if request.include_usage or not request.streams:
        names += _COUNTS
    outputs = [name for name in names if name in model.outputs]
    for name, number in (("logprobs", logprobs), ("prompt_logprobs", prompt_logprobs)):
        if number is not None:
            if name not in model.outputs:
                what = "tokens" if name == "logprobs" else "a prompt's tokens, which 'echo' requests"
                message = f"The model '{request.model}' gives no probabilities of {what}: leave 'logprobs' out."
                raise invalid(message, "logprobs", "unsupported_parameter")
            outputs.append(name)
    return tuple(outputs)


def _inference(
    model: LanguageModel,
    request: GenerationFields,
    request_id: str,
    prompt: Tensor,
    sampling: bytes,
    outputs: tuple[str, ...],
    repeats: bool = False,
) -> InferRequest:
    stream = request.streams and model.decoupled and not repeats
    inputs = [
        prompt,
        _flag("stream", stream),
        _flag("exclude_input_in_output", not repeats),
        _text("sampling_parameters", sampling),
    ]
    return InferRequest(
        model.base, {tensor.name: tensor for tensor in inputs}, id=request_id, requested_outputs=outputs
    )


def _prompt(prompt: Prompt) -> Tensor:
    return _text(TEXT_INPUT, prompt.encode()) if isinstance(prompt, str) else _tokens(prompt)


def _tokens(tokens: Sequence[int]) -> Tensor:
    return Tensor(INPUT_IDS, "INT32", np.array(tokens, np.int32))


def _text(name: str, text: bytes) -> Tensor:
    return raw_tensor(name, "BYTES", (1,), join_strings((text,)))


def _flag(name: str, value: bool) -> Tensor:
    return raw_tensor(name, "BOOL", (1,), b"\x01" if value else b"\x00")
