"""The answer's text, with its sources after the last piece. Holds no state, so it works on each piece of a stream."""

import json
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

NOTHING = "I found nothing about that in Python's documentation."
GOING_ON = (b"", b"None")


class TritonPythonModel:
    """`generated`, `finish_reason` BYTES [1], `sources` BYTES [1, 1] → `text` BYTES [1, 1]."""

    def execute(self, requests: list[Any]) -> list[Any]:
        """Return one response per request."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: Any) -> Any:
        text = _bytes(request, "generated")
        if _bytes(request, "finish_reason") not in GOING_ON:
            text += self._end(json.loads(_bytes(request, "sources"))).encode()
        return pb_utils.InferenceResponse([pb_utils.Tensor("text", np.array([[text]], dtype=np.object_))])

    def _end(self, sources: list[dict[str, Any]]) -> str:
        if not sources:
            return NOTHING
        lines = [f"[{at}] {source['title']}: {source['text']}" for at, source in enumerate(sources, 1)]
        return "\n\nSources:\n" + "\n".join(lines)


def _bytes(request: Any, name: str) -> bytes:
    value: bytes = pb_utils.get_input_tensor_by_name(request, name).as_numpy().reshape(-1)[0]
    return value
