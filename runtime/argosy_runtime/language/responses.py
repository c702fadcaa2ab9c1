"""Responses to a request, made of the deltas of its choices."""

import struct
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from argosy_runtime.errors import ServingError
from argosy_runtime.fifo_cache import FifoCache
from argosy_runtime.messages import InferResponse, ResponseTemplate, TensorSpec
from argosy_runtime.tensors import Data, join_strings

from .deltas import Delta, Position
from .requests import GenerationRequest
from .tensors import OUTPUTS

_ABSENT: Final = -1
_Values = tuple[int, bytes]
"""The elements of an output: their number, and their bytes."""
_encoder: Final = msgspec.json.Encoder()
# Those of a stream have one or two, and as many for each number of tokens that a step brings with `output_ids`.
_templates: Final = FifoCache[tuple[tuple[str, ...], tuple[int, ...]], ResponseTemplate](256)


class ResponseBuilder:
    """The responses to one request, the first of which begins with `prompt`, if the request asks for that.

    Set `num_input_tokens`, `num_cached_tokens` and `prompt_logprobs` before the response that is to have them;
    `prompt_logprobs` are in one response only.
    """

    __slots__ = (
        "_id",
        "_model",
        "_names",
        "_repeats",
        "_version",
        "_writers",
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
        self._names = tuple(name for name in request.outputs if name in _OUTPUTS)
        self._writers = [(_OUTPUTS[name], name in request.flagged) for name in self._names]
        self.num_input_tokens = 0
        self.num_cached_tokens = 0
        self.prompt_logprobs: Sequence[Position | None] | None = None

    def response(self, deltas: Sequence[Delta], final: bool) -> InferResponse:
        """Return the response with the delta of one choice, or of all of them, in the order of their indexes.

        `num_output_tokens` counts the new tokens, as `sequence_length`.
        """
        sizes: list[int] = []
        raw: list[Data] = []
        for write, flagged in self._writers:
            values = write(self, deltas, flagged)
            if values is None:
                sizes.append(_ABSENT)
            else:
                sizes.append(values[0])
                raw.append(values[1])
        self._repeats = False
        self.prompt_logprobs = None
        response = _template(self._names, tuple(sizes)).response(raw, final)
        response.model_name, response.model_version, response.id = self._model, self._version, self._id
        return response

    def failure(self, error: ServingError) -> InferResponse:
        """Return the last response of a request that fails."""
        return InferResponse(self._model, self._version, self._id, error=error)

    def _text(self, deltas: Sequence[Delta], _: bool) -> _Values:
        prompt = self.prompt if self._repeats else ""
        return _strings([(prompt + delta.text).encode("utf-8", "replace") for delta in deltas])

    def _ids(self, deltas: Sequence[Delta], _: bool) -> _Values:
        return _numbers("i", [token for delta in deltas for token in delta.token_ids])

    def _lengths(self, deltas: Sequence[Delta], _: bool) -> _Values:
        return _numbers("i", [len(delta.token_ids) for delta in deltas])

    def _counts(self, deltas: Sequence[Delta], _: bool) -> _Values:
        return _numbers("I", [len(delta.token_ids) for delta in deltas])

    def _finish(self, deltas: Sequence[Delta], flagged: bool) -> _Values | None:
        if not flagged and all(delta.finish_reason is None for delta in deltas):
            return None
        absent = "None" if flagged else ""  # "None" is what clients of Triton's vLLM backend compare with
        return _strings([(delta.finish_reason or absent).encode() for delta in deltas])

    def _stop(self, deltas: Sequence[Delta], _: bool) -> _Values | None:
        if all(delta.finish_reason is None for delta in deltas):
            return None
        return _strings([_encoder.encode(delta.stop_reason) for delta in deltas])

    def _cumulative(self, deltas: Sequence[Delta], flagged: bool) -> _Values | None:
        if all(delta.cumulative_logprob is None for delta in deltas) and not flagged:
            return None
        return _numbers("f", [delta.cumulative_logprob or 0.0 for delta in deltas])

    def _logprobs(self, deltas: Sequence[Delta], flagged: bool) -> _Values | None:
        if all(delta.logprobs is None for delta in deltas) and not flagged:
            return None
        return _strings([_encoder.encode(delta.logprobs) for delta in deltas])

    def _prompt_logprobs(self, _deltas: Sequence[Delta], _: bool) -> _Values | None:
        if self.prompt_logprobs is None:
            return None
        return _strings([_encoder.encode(self.prompt_logprobs)])

    def _input_tokens(self, _deltas: Sequence[Delta], _: bool) -> _Values:
        return _numbers("I", [self.num_input_tokens])

    def _cached_tokens(self, _deltas: Sequence[Delta], _: bool) -> _Values:
        return _numbers("I", [self.num_cached_tokens])

    def _index(self, deltas: Sequence[Delta], _: bool) -> _Values:
        return _numbers("i", [delta.index for delta in deltas])


_Write = Callable[[ResponseBuilder, Sequence[Delta], bool], _Values | None]
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


def _strings(elements: list[bytes]) -> _Values:
    return len(elements), join_strings(elements)


def _numbers(code: str, values: Sequence[int | float]) -> _Values:
    return len(values), struct.pack(f"<{len(values)}{code}", *values)


def _template(names: tuple[str, ...], sizes: tuple[int, ...]) -> ResponseTemplate:
    """Return the template of responses whose outputs with these names have so many elements."""
    template = _templates.get((names, sizes))
    if template is None:
        present = [(name, size) for name, size in zip(names, sizes, strict=True) if size != _ABSENT]
        template = ResponseTemplate([TensorSpec(name, OUTPUTS[name][0], (size,)) for name, size in present], {})
        _templates.put((names, sizes), template)
    return template
