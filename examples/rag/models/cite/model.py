"""The answer's text, with its sources after the last piece. Holds no state, so it works on each piece of a stream."""

import json
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

NOTHING = "I found nothing about that in Python's documentation."
GOING_ON = (b"", b"None")


class TritonPythonModel:
    """`generated`, `reason` BYTES [1], `sources` BYTES [1, 1] → `text`, `finish_reason` BYTES [1, 1].

    Without sources the language model was to write nothing, so that its reason is the limit; the answer is complete.
    """

    def execute(self, requests: list[Any]) -> list[Any]:
        """Return one response per request."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: Any) -> Any:
        text, reason = _bytes(request, "generated"), _bytes(request, "reason")
        if reason not in GOING_ON:
            sources = json.loads(_bytes(request, "sources"))
            text += self._end(sources).encode()
            reason = reason if sources else b"stop"
        return pb_utils.InferenceResponse([_row("text", text), _row("finish_reason", reason)])

    def _end(self, sources: list[dict[str, Any]]) -> str:
        if not sources:
            return NOTHING
        lines = [f"[{at}] {source['title']}: {source['text']}" for at, source in enumerate(sources, 1)]
        return "\n\nSources:\n" + "\n".join(lines)


def _row(name: str, value: bytes) -> Any:
    return pb_utils.Tensor(name, np.array([[value]], dtype=np.object_))


def _bytes(request: Any, name: str) -> bytes:
    value: bytes = pb_utils.get_input_tensor_by_name(request, name).as_numpy().reshape(-1)[0]
    return value
