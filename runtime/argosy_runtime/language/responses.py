"""Responses to a request, made of the news of its choices."""

import struct
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from argosy_runtime.errors import ServingError
from argosy_runtime.messages import InferResponse, Tensor
from argosy_runtime.tensors import join_strings, raw_tensor

from .deltas import Delta, Position
from .requests import GenerationRequest
from .tensors import OUTPUTS

_ONE_STRING: Final = struct.Struct("<I")
_encoder: Final = msgspec.json.Encoder()


class ResponseBuilder:
    """The responses to one request, the first of which begins with `prompt`, if the request asks for that.

    Set `num_input_tokens`, `num_cached_tokens` and `prompt_logprobs` before the response that is to have them;
    `prompt_logprobs` are in one response only.
    """

    __slots__ = (
        "_id",
        "_model",
        "_outputs",
        "_repeats",
        "_version",
        "num_cached_tokens",
        "num_input_tokens",
        "prompt",
        "prompt_logprobs",
    )

    def __init__(self, request: GenerationRequest, version: str, prompt: str = "") -> None:
        self._model = request.model_name
        self._version = version
        self._id = request.id
        self._repeats = request.repeats_prompt
        self.prompt = prompt
        self._outputs = [
            (name, _OUTPUTS[name], name in request.flagged) for name in request.outputs if name in _OUTPUTS
        ]
        self.num_input_tokens = 0
        self.num_cached_tokens = 0
        self.prompt_logprobs: Sequence[Position | None] | None = None

    def response(self, deltas: Sequence[Delta], final: bool) -> InferResponse:
        """Return the response with the news of one choice, or of all of them, in the order of their indexes.

        `num_output_tokens` counts the new tokens, as `sequence_length`.
        """
        tensors: list[Tensor] = []
        for name, write, flagged in self._outputs:
            tensor = write(self, name, deltas, flagged)
            if tensor is not None:
                tensors.append(tensor)
        self._repeats = False
        self.prompt_logprobs = None
        return InferResponse(self._model, self._version, self._id, tensors, final=final)

    def failure(self, error: ServingError) -> InferResponse:
        """Return the last response of a request that fails."""
        return InferResponse(self._model, self._version, self._id, error=error)

    def _text(self, name: str, deltas: Sequence[Delta], _: bool) -> Tensor:
        prompt = self.prompt if self._repeats else ""
        return _strings(
            name, [(prompt + delta.text if prompt else delta.text).encode("utf-8", "replace") for delta in deltas]
        )

    def _ids(self, name: str, deltas: Sequence[Delta], _: bool) -> Tensor:
        ids = deltas[0].token_ids if len(deltas) == 1 else [token for delta in deltas for token in delta.token_ids]
        return _numbers(name, "INT32", "i", ids)

    def _lengths(self, name: str, deltas: Sequence[Delta], _: bool) -> Tensor:
        return _numbers(name, "INT32", "i", [len(delta.token_ids) for delta in deltas])

    def _counts(self, name: str, deltas: Sequence[Delta], _: bool) -> Tensor:
        return _numbers(name, "UINT32", "I", [len(delta.token_ids) for delta in deltas])

    def _finish(self, name: str, deltas: Sequence[Delta], flagged: bool) -> Tensor | None:
        if not flagged and all(delta.finish_reason is None for delta in deltas):
            return None
        absent = "None" if flagged else ""  # "None" is what clients of Triton's vLLM backend compare with
        return _strings(name, [(delta.finish_reason or absent).encode() for delta in deltas])

    def _stop(self, name: str, deltas: Sequence[Delta], _: bool) -> Tensor | None:
        if all(delta.finish_reason is None for delta in deltas):
            return None
        return _strings(name, [_encoder.encode(delta.stop_reason) for delta in deltas])

    def _cumulative(self, name: str, deltas: Sequence[Delta], flagged: bool) -> Tensor | None:
        if all(delta.cumulative_logprob is None for delta in deltas) and not flagged:
            return None
        return _numbers(name, "FP32", "f", [delta.cumulative_logprob or 0.0 for delta in deltas])

    def _logprobs(self, name: str, deltas: Sequence[Delta], flagged: bool) -> Tensor | None:
        if all(delta.logprobs is None for delta in deltas) and not flagged:
            return None
        return _strings(name, [_encoder.encode(delta.logprobs) for delta in deltas])

    def _prompt_logprobs(self, name: str, _deltas: Sequence[Delta], _: bool) -> Tensor | None:
        if self.prompt_logprobs is None:
            return None
        return _strings(name, [_encoder.encode(self.prompt_logprobs)])

    def _input_tokens(self, name: str, _deltas: Sequence[Delta], _: bool) -> Tensor:
        return _numbers(name, "UINT32", "I", [self.num_input_tokens])

    def _cached_tokens(self, name: str, _deltas: Sequence[Delta], _: bool) -> Tensor:
        return _numbers(name, "UINT32", "I", [self.num_cached_tokens])

    def _index(self, name: str, deltas: Sequence[Delta], _: bool) -> Tensor:
        return _numbers(name, "INT32", "i", [delta.index for delta in deltas])


_Write = Callable[[ResponseBuilder, str, Sequence[Delta], bool], Tensor | None]
_OUTPUTS: Final[dict[str, _Write]] = {
    "text_output": ResponseBuilder._text,
    "output_ids": ResponseBuilder._ids,
    "sequence_length": ResponseBuilder._lengths,
    "finish_reason": ResponseBuilder._finish,
    "stop_reason": ResponseBuilder._stop,
    "cumulative_logprob": ResponseBuilder._cumulative,
    "logprobs": ResponseBuilder._logprobs,
    "prompt_logprobs": ResponseBuilder._prompt_logprobs,
    "num_input_tokens": ResponseBuilder._input_tokens,
    "num_output_tokens": ResponseBuilder._counts,
    "num_cached_tokens": ResponseBuilder._cached_tokens,
    "index": ResponseBuilder._index,
}
assert _OUTPUTS.keys() == OUTPUTS.keys()


def _strings(name: str, elements: list[bytes]) -> Tensor:
    if len(elements) == 1:
        return raw_tensor(name, "BYTES", (1,), _ONE_STRING.pack(len(elements[0])) + elements[0])
    return raw_tensor(name, "BYTES", (len(elements),), join_strings(elements))


def _numbers(name: str, datatype: str, code: str, values: Sequence[int | float]) -> Tensor:
    return raw_tensor(name, datatype, (len(values),), struct.pack(f"<{len(values)}{code}", *values))
