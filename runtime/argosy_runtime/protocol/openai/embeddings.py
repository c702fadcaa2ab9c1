"""Embeddings: inference requests of the models that make them, and their responses as JSON."""

import base64
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import orjson
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import internal
from argosy_runtime.language import Delta, is_embedding_model
from argosy_runtime.language.deltas import Position
from argosy_runtime.language.tensors import INPUT_IDS, TEXT_INPUT
from argosy_runtime.messages import InferRequest, InferResponse, Tensor
from argosy_runtime.modelconfig import numpy_dtype, v2_name
from argosy_runtime.tensors import string_array

from .errors import invalid
from .models import EMBEDDINGS
from .requests.embedding import EmbeddingRequest, Input

EMBEDDING: Final = "embedding"
_REQUEST: Final = "embedding_request"
_COUNT: Final = "num_input_tokens"


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """A model that makes embeddings. `size`: how many numbers each has, 0 where only the model knows it.

    `datatypes` are those of its inputs; `batched`: its tensors begin with a batch of one.
    """

    endpoints: ClassVar = (EMBEDDINGS,)

    base: str
    size: int
    datatypes: dict[str, str]
    counts_tokens: bool
    batched: bool

    @classmethod
    def of(cls, config: ModelConfig) -> "EmbeddingModel | None":
        """Return the model of a configuration with a text as input and `embedding` as output, else None."""
        if not is_embedding_model(config):
            return None
        (dims,) = [tensor.dims for tensor in config.output if tensor.name == EMBEDDING]
        names = {tensor.name for tensor in config.output}
        datatypes = {tensor.name: v2_name(tensor.data_type) for tensor in config.input}
        return cls(config.name, max(dims[-1], 0), datatypes, _COUNT in names, config.max_batch_size > 0)


def embedding_inferences(model: EmbeddingModel, request: EmbeddingRequest, request_id: str) -> list[InferRequest]:
    """Return the inference requests, one for each input. Raises ApiError for what the model cannot do."""
    sized = request.dimensions is not None and request.dimensions != model.size
    if sized and _REQUEST not in model.datatypes:
        size = f"has {model.size} dimensions" if model.size else "cannot change its dimensions"
        message = f"The model '{model.base}' {size}: leave 'dimensions' out."
        raise invalid(message, "dimensions", "unsupported_value")
    outputs = (EMBEDDING, _COUNT) if model.counts_tokens else (EMBEDDING,)
    return [
        InferRequest(
            model.base,
            {tensor.name: tensor},
            id=request_id,
            requested_outputs=outputs,
        )
        for tensor in (_input(model, item, request.dimensions if sized else None) for item in request.inputs)
    ]


def _input(model: EmbeddingModel, item: Input, dimensions: int | None) -> Tensor:
    shape = (1, 1) if model.batched else (1,)
    if dimensions is not None:
        document = orjson.dumps({"input": item, "pooling_params": {"dimensions": dimensions}})
        return Tensor(_REQUEST, "BYTES", string_array([document], shape))
    if isinstance(item, str):
        return Tensor(TEXT_INPUT, "BYTES", string_array([item.encode()], shape))
    if INPUT_IDS not in model.datatypes:
        message = f"The model '{model.base}' takes texts: send 'input' as strings."
        raise invalid(message, "input", "unsupported_value")
    datatype = model.datatypes[INPUT_IDS]
    tokens = np.array(item, numpy_dtype(datatype))
    return Tensor(INPUT_IDS, datatype, tokens.reshape(1, -1) if model.batched else tokens)


class EmbeddingReader:
    """Reader of the response with one embedding."""

    __slots__ = ("embedding", "num_input_tokens")
    num_cached_tokens = 0
    total_output_tokens = 0
    prompt_logprobs: "list[Position | None] | None" = None

    def __init__(self) -> None:
        self.embedding: np.ndarray[Any, np.dtype[np.float32]] | None = None
        self.num_input_tokens = 0

    def read(self, response: InferResponse) -> list[Delta]:
        """Keep what is in a response without an error; there are no deltas. Raises ServingError for other numbers."""
        for tensor in response.outputs:
            if tensor.name == EMBEDDING:
                values = np.asarray(tensor.array, np.float32).reshape(-1)
                if not np.isfinite(values).all():
                    raise internal("the model's embedding is not finite")
                self.embedding = values
            elif tensor.name == _COUNT and tensor.array.size:
                self.num_input_tokens = int(tensor.array.reshape(-1)[0])
        return []


class EmbeddingAnswer:
    """The embeddings of a request, in the order of its inputs."""

    def __init__(self, model: str, encoding: str, readers: list[EmbeddingReader]) -> None:
        self._model = model
        self._encoding = encoding
        self._readers = readers

    def take(self, prompt: int, delta: Delta) -> None:
        """Take a delta, of which there are none."""

    def body(self) -> bytes:
        """Return the JSON of the answer. Raises ServingError for a response without an embedding."""
        data = [
            {"object": "embedding", "index": index, "embedding": self._written(reader)}
            for index, reader in enumerate(self._readers)
        ]
        tokens = sum(reader.num_input_tokens for reader in self._readers)
        # Clients require counts; they are 0 where the model has none.
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        document = {"object": "list", "data": data, "model": self._model, "usage": usage}
        return orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY)

    def _written(self, reader: EmbeddingReader) -> Any:
        if reader.embedding is None:
            raise internal("the model's response has no embedding")
        values = np.ascontiguousarray(reader.embedding)
        return base64.b64encode(values.tobytes()).decode() if self._encoding == "base64" else values
