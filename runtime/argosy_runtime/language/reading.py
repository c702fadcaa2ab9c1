"""The news of choices, read from the responses of a language model."""

from typing import Final

import msgspec

from argosy_runtime.errors import internal
from argosy_runtime.messages import Array, InferResponse
from argosy_runtime.tensors import string_elements

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
        """Return the news in a response without an error, one for each choice.

        Raises ServingError (INTERNAL) for outputs that do not fit each other.
        """
        tensors = {tensor.name: tensor.array for tensor in response.outputs}
        self._read_totals(tensors)
        choices = max([array.size for name, array in tensors.items() if name in _PER_CHOICE], default=0)
        deltas = [Delta(index, token_ids=[]) for index in range(choices)]
        try:
            for name, array in tensors.items():
                if (fill := _PER_CHOICE.get(name)) is not None:
                    fill(deltas, array)
            _read_ids(deltas, tensors)
        except (ValueError, IndexError, msgspec.MsgspecError) as error:
            raise internal(f"a language model's response cannot be read: {error}") from error
        self._count(deltas, tensors.get("num_output_tokens"))
        return deltas

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
        delta.finish_reason = reason.decode() if reason not in (b"", b"None") else None


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
