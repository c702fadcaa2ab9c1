"""The deltas of choices, read from the responses of a language model."""

from collections.abc import Sequence
from typing import Final

import msgspec

from argosy_runtime.errors import ServingError, internal
from argosy_runtime.fifo_cache import FifoCache
from argosy_runtime.messages import Array, InferResponse, ResponseTemplate
from argosy_runtime.tensors import Data, string_elements

from .deltas import Delta, Position

_positions: Final = msgspec.json.Decoder(list[Position] | None, strict=False)
_prompt_positions: Final = msgspec.json.Decoder(list[Position | None] | None, strict=False)
_stop_reason: Final = msgspec.json.Decoder(str | int | None)

TEXT: Final = (
    "text_output",
    "finish_reason",
    "stop_reason",
    "index",
    "num_input_tokens",
    "num_output_tokens",
    "num_cached_tokens",
)
"""The outputs that a front end requests for text with its usage."""


_LENGTH: Final = 4  # bytes before the only element of a BYTES tensor


class _Layout:
    """Where the outputs of equal responses are; -1 for those they lack.

    `is_single`: each has one element, and none needs an array.
    """

    __slots__ = (
        "finish_reason",
        "index",
        "is_single",
        "num_cached_tokens",
        "num_input_tokens",
        "num_output_tokens",
        "stop_reason",
        "text",
    )

    def __init__(self, template: ResponseTemplate) -> None:
        positions = {name: at for at, name in enumerate(template.names)}
        self.is_single = positions.keys() <= set(TEXT) and all(spec.shape == (1,) for spec in template.outputs)
        self.text = positions.get("text_output", -1)
        self.finish_reason = positions.get("finish_reason", -1)
        self.stop_reason = positions.get("stop_reason", -1)
        self.index = positions.get("index", -1)
        self.num_input_tokens = positions.get("num_input_tokens", -1)
        self.num_output_tokens = positions.get("num_output_tokens", -1)
        self.num_cached_tokens = positions.get("num_cached_tokens", -1)


_layouts: Final = FifoCache[ResponseTemplate, _Layout](256)


def _layout(template: ResponseTemplate) -> _Layout:
    layout = _layouts.get(template)
    if layout is None:
        layout = _Layout(template)
        _layouts.put(template, layout)
    return layout


def _unreadable(error: Exception) -> ServingError:
    return internal(f"a language model's response cannot be read: {error}")


def _text(data: Data) -> str:
    return str(data[_LENGTH:], "utf-8")


def _ended(reason: str) -> str | None:
    return None if reason in ("", "None") else reason


class ResponseReader:
    """Reader of the responses to one request, and the sums over those read so far.

    `num_output_tokens` counts the tokens of each choice by its index; it needs the output `num_output_tokens`, and
    other fields need theirs.
    """

    __slots__ = ("num_cached_tokens", "num_input_tokens", "num_output_tokens", "prompt_logprobs")

    def __init__(self) -> None:
        self.num_input_tokens = 0
        self.num_cached_tokens = 0
        self.num_output_tokens: dict[int, int] = {}
        self.prompt_logprobs: list[Position | None] | None = None

    @property
    def total_output_tokens(self) -> int:
        """Tokens of all choices."""
        return sum(self.num_output_tokens.values())

    def read(self, response: InferResponse) -> list[Delta]:
        """Return the deltas of a response without an error, one for each choice.

        Raises ServingError (INTERNAL) for outputs that do not fit each other.
        """
        try:
            if response.template is not None and response.raw is not None:
                layout = _layout(response.template)
                if layout.is_single:
                    return [self._read_single(layout, response.raw)]
            return self._read_arrays({tensor.name: tensor.array for tensor in response.outputs})
        except (ValueError, TypeError, IndexError, RecursionError) as error:
            raise _unreadable(error) from error

    def _read_arrays(self, tensors: dict[str, Array]) -> list[Delta]:
        self._read_totals(tensors)
        choices = max([array.size for name, array in tensors.items() if name in _PER_CHOICE], default=0)
        deltas = [Delta(index, token_ids=[]) for index in range(choices)]
        for name, array in tensors.items():
            if (fill := _PER_CHOICE.get(name)) is not None:
                fill(deltas, array)
        _read_ids(deltas, tensors)
        self._count(deltas, tensors.get("num_output_tokens"))
        return deltas

    def _read_single(self, layout: "_Layout", raw: Sequence[Data]) -> Delta:
        """Read the delta of one choice without arrays: the path of nearly all tokens."""
        delta = Delta()
        if layout.text >= 0:
            delta.text = _text(raw[layout.text])
        if layout.finish_reason >= 0:
            delta.finish_reason = _ended(_text(raw[layout.finish_reason]))
        if layout.stop_reason >= 0:
            delta.stop_reason = _stop_reason.decode(raw[layout.stop_reason][_LENGTH:])
        if layout.index >= 0:
            delta.index = int.from_bytes(raw[layout.index], "little")
        if layout.num_input_tokens >= 0:
            self.num_input_tokens = int.from_bytes(raw[layout.num_input_tokens], "little")
        if layout.num_cached_tokens >= 0:
            self.num_cached_tokens = int.from_bytes(raw[layout.num_cached_tokens], "little")
        if layout.num_output_tokens >= 0:
            count = int.from_bytes(raw[layout.num_output_tokens], "little")
            self.num_output_tokens[delta.index] = self.num_output_tokens.get(delta.index, 0) + count
        return delta

    def _read_totals(self, tensors: dict[str, Array]) -> None:
        if (array := tensors.get("num_input_tokens")) is not None and array.size:
            self.num_input_tokens = int(array.reshape(-1)[0])
        if (array := tensors.get("num_cached_tokens")) is not None and array.size:
            self.num_cached_tokens = int(array.reshape(-1)[0])
        if (array := tensors.get("prompt_logprobs")) is not None and array.size:
            self.prompt_logprobs = _prompt_positions.decode(string_elements(array)[0])

    def _count(self, deltas: list[Delta], counts: Array | None) -> None:
        if counts is None:
            return
        for delta, count in zip(deltas, counts.reshape(-1).tolist(), strict=False):
            self.num_output_tokens[delta.index] = self.num_output_tokens.get(delta.index, 0) + int(count)


def _read_index(deltas: list[Delta], array: Array) -> None:
    for delta, index in zip(deltas, array.reshape(-1).tolist(), strict=True):
        delta.index = index


def _read_text(deltas: list[Delta], array: Array) -> None:
    for delta, text in zip(deltas, string_elements(array), strict=True):
        delta.text = text.decode("utf-8")


def _read_finish(deltas: list[Delta], array: Array) -> None:
    for delta, reason in zip(deltas, string_elements(array), strict=True):
        delta.finish_reason = _ended(reason.decode())


def _read_stop(deltas: list[Delta], array: Array) -> None:
    for delta, reason in zip(deltas, string_elements(array), strict=True):
        delta.stop_reason = _stop_reason.decode(reason)


def _read_cumulative(deltas: list[Delta], array: Array) -> None:
    for delta, value in zip(deltas, array.reshape(-1).tolist(), strict=True):
        delta.cumulative_logprob = value


def _read_logprobs(deltas: list[Delta], array: Array) -> None:
    for delta, text in zip(deltas, string_elements(array), strict=True):
        delta.logprobs = _positions.decode(text)


def _read_nothing(_deltas: list[Delta], _array: Array) -> None:
    """Leave the deltas as they are: the output is read elsewhere."""


def _read_ids(deltas: list[Delta], tensors: dict[str, Array]) -> None:
    """Share the token ids out to their choices; without lengths they are those of the only one."""
    ids = tensors.get("output_ids")
    if ids is None:
        return
    tokens: list[int] = ids.reshape(-1).tolist()
    lengths = tensors.get("sequence_length")
    if lengths is None:
        if not deltas:
            deltas.append(Delta(0, token_ids=[]))
        deltas[0].token_ids = tokens
        return
    begin = 0
    for delta, length in zip(deltas, lengths.reshape(-1).tolist(), strict=True):
        delta.token_ids = tokens[begin : begin + int(length)]
        begin += int(length)


_PER_CHOICE: Final = {
    "index": _read_index,
    "text_output": _read_text,
    "finish_reason": _read_finish,
    "stop_reason": _read_stop,
    "cumulative_logprob": _read_cumulative,
    "logprobs": _read_logprobs,
    "sequence_length": _read_nothing,
    "num_output_tokens": _read_nothing,
}
