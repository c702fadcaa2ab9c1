"""Requests for the embedding of a text, by a model that pools."""

from typing import Any

import msgspec
import numpy as np

from argosy_runtime.backends.contract import Responder
from argosy_runtime.errors import ServingError, invalid
from argosy_runtime.language import Tokens, inputs
from argosy_runtime.language.tensors import INPUT_IDS, TEXT_INPUT, TEXT_OUTPUT
from argosy_runtime.messages import InferRequest, InferResponse, Tensor
from argosy_runtime.tensors import string_array

EMBEDDING_REQUEST = "embedding_request"
_NAMES = (TEXT_INPUT, INPUT_IDS, EMBEDDING_REQUEST)


class EmbeddingRequest(msgspec.Struct):
    """What is embedded, in how many dimensions (None: all), and the names of the requested outputs."""

    prompt: str | Tokens
    dimensions: int | None
    outputs: tuple[str, ...]

    @classmethod
    def read(cls, request: InferRequest) -> "EmbeddingRequest":
        """Return what a request asks for. Raises ServingError (INVALID_ARG) that names the input."""
        names = [name for name in _NAMES if name in request.inputs]
        if len(names) != 1:
            raise invalid(f"model '{request.model_name}' takes one of the inputs {', '.join(_NAMES)}")
        plain = ("embedding",)
        dimensions = None
        if names[0] == EMBEDDING_REQUEST:
            prompt, dimensions = _of_object(inputs.data(request, EMBEDDING_REQUEST) or b"")
            plain = (TEXT_OUTPUT,)
        elif names[0] == INPUT_IDS:
            prompt = Tokens(inputs.token_ids(request, INPUT_IDS) or [])
        else:
            prompt = inputs.text(request, TEXT_INPUT) or ""
        counts = tuple(
            name for name in ("num_input_tokens", "num_output_tokens") if inputs.flag(request, f"return_{name}")
        )
        return cls(prompt, dimensions, request.requested_outputs or (*plain, *counts))


class EmbeddingStream:
    """The only response of a request for an embedding."""

    def __init__(
        self, parsed: EmbeddingRequest, request: InferRequest, version: str, responder: Responder, index: int
    ) -> None:
        self._parsed = parsed
        self._request = request
        self._version = version
        self._responder = responder
        self._index = index
        self._response: InferResponse | None = None
        self.is_over = False

    def is_cancelled(self) -> bool:
        return self._responder.is_cancelled(self._index)

    def take(self, output: Any) -> None:
        """Take a `PoolingRequestOutput`."""
        values = np.asarray(output.outputs.data.float().cpu().numpy(), np.float32).reshape(-1)
        tensors = {
            "embedding": Tensor("embedding", "FP32", values),
            TEXT_OUTPUT: Tensor(TEXT_OUTPUT, "BYTES", string_array([msgspec.json.encode(values.tolist())], (1,))),
            "num_input_tokens": _count("num_input_tokens", len(output.prompt_token_ids)),
            "num_output_tokens": _count("num_output_tokens", 0),
        }
        outputs = [tensors[name] for name in self._parsed.outputs if name in tensors]
        self._response = InferResponse(self._request.model_name, self._version, self._request.id, outputs)
        self.is_over = True

    def flush(self) -> None:
        if self._response is not None:
            self._responder.send(self._index, self._response, wait=False)

    def fail(self, error: ServingError) -> None:
        self.is_over = True
        response = InferResponse(self._request.model_name, self._version, self._request.id, error=error)
        self._responder.send(self._index, response, wait=False)


class _Object(msgspec.Struct):
    """The JSON object of Triton's OpenAI front end."""

    input: str | list[int]
    pooling_params: dict[str, list[int] | int] = {}


def _of_object(text: bytes) -> tuple[str | Tokens, int | None]:
    try:
        parsed = msgspec.json.decode(text, type=_Object)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise invalid(f"input '{EMBEDDING_REQUEST}' cannot be read: {error}") from error
    dimensions = parsed.pooling_params.get("dimensions")
    if isinstance(dimensions, list):
        dimensions = dimensions[0] if dimensions else None
    return (Tokens(parsed.input) if isinstance(parsed.input, list) else parsed.input), dimensions


def _count(name: str, value: int) -> Tensor:
    return Tensor(name, "UINT32", np.array([value], np.uint32))
