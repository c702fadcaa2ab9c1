"""Responses from generated tokens: what is new since the last response, as ids and as text."""

from collections.abc import Sequence

import numpy as np

from argosy_runtime.errors import ServingError
from argosy_runtime.language.text import Decode, StreamedText
from argosy_runtime.messages import InferRequest, InferResponse, Tensor

from .generation import Generation

_IDS = ("output_ids", "sequence_length")
_TEXT = ("text_output",)


class Answer:
    """The responses of one request, created in order."""

    def __init__(self, request: InferRequest, version: int, generation: Generation, decode: Decode | None) -> None:
        self._request = request
        self._version = str(version)
        self._generation = generation
        self._text = None if decode is None else StreamedText(decode)
        self._requested = request.requested_outputs or (_IDS if generation.prompt is None else _TEXT)
        self._sent = 0

    def response(self, tokens: Sequence[int], final: bool) -> InferResponse | None:
        """Return the response for `tokens`, which are all generated so far; None where there is nothing to send yet."""
        new = list(tokens[self._sent :])
        text = self._new_text(tokens, final)
        if not final and not (new and (text or self._generation.prompt is None)):
            return None
        self._sent = len(tokens)
        tensors = {
            "output_ids": Tensor("output_ids", "INT32", np.array(new, np.int32)),
            "sequence_length": Tensor("sequence_length", "INT32", np.array([len(new)], np.int32)),
            "text_output": Tensor("text_output", "BYTES", _bytes(text)),
        }
        outputs = [tensors[name] for name in self._requested if name in tensors]
        return InferResponse(self._request.model_name, self._version, self._request.id, outputs, final=final)

    def failure(self, error: ServingError) -> InferResponse:
        """Return the last response of a request that fails."""
        return InferResponse(self._request.model_name, self._version, self._request.id, error=error)

    def _new_text(self, tokens: Sequence[int], final: bool) -> str:
        if self._text is None or "text_output" not in self._requested:
            return ""
        new = self._text.last(tokens) if final else self._text.next(tokens)
        prompt = self._generation.prompt
        return prompt + new if prompt is not None and self._generation.repeats_prompt and (new or final) else new


def _bytes(text: str) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    array = np.empty(1, dtype=np.object_)
    array[0] = text.encode("utf-8")
    return array
