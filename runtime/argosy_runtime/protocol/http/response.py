"""An inference response as HTTP headers and body."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from argosy_runtime.messages import InferResponse
from argosy_runtime.protocol.classification import classify
from argosy_runtime.protocol.json import data as json_data
from argosy_runtime.protocol.json.text import dumps
from argosy_runtime.protocol.model_view import ModelView
from argosy_runtime.shared_memory.locations import TensorLocations
from argosy_runtime.tensors import Data

JSON_TYPE = "application/json"
BINARY_TYPE = "application/octet-stream"


@dataclass(slots=True)
class OutputEncoding:
    """The outputs to send as binary, and those to send as their `k` best classes.

    `binary_default` is for outputs the request does not list; a listed one is binary where it is in `binary`.
    `classes` maps an output to the number of requested classes. `locations` is None where no tensor of the request
    lies in shared memory; an output that does has no data in the response.
    """

    binary_default: bool = False
    listed: frozenset[str] = frozenset()
    binary: frozenset[str] = frozenset()
    classes: dict[str, int] = field(default_factory=dict)
    locations: TensorLocations | None = None

    def is_placed(self, output: str) -> bool:
        """Return whether this output's data goes to shared memory."""
        return self.locations is not None and output in self.locations.outputs

    def is_binary(self, output: str) -> bool:
        """Return whether this output's data follows the JSON instead of being part of it."""
        return output in self.binary if output in self.listed else self.binary_default


@dataclass(frozen=True, slots=True)
class EncodedResponse:
    """A body in chunks, the first of them JSON of `json_length` bytes; more follow only where outputs are
    binary.
    """

    chunks: list[Data]

    @property
    def is_binary(self) -> bool:
        """Whether the client needs `Inference-Header-Content-Length` to split the body."""
        return len(self.chunks) > 1

    @property
    def json_length(self) -> int:
        """Bytes of JSON that begin the body."""
        return len(self.chunks[0])


def encode(response: InferResponse, encoding: OutputEncoding, model: Callable[[], ModelView]) -> EncodedResponse:
    """Encode a response that is no error. `model` is called only for classification."""
    document: dict[str, Any] = {"id": response.id} if response.id else {}
    document["model_name"] = response.model_name
    document["model_version"] = response.model_version
    finite = True
    if response.parameters:
        document["parameters"] = response.parameters
        finite = parameters_finite(response)
    outputs: list[dict[str, Any]] = []
    chunks: list[Data] = [b""]
    for tensor in response.outputs:
        count = encoding.classes.get(tensor.name)
        shown = tensor if count is None else classify(tensor, count, model())
        output: dict[str, Any] = {"name": shown.name, "datatype": shown.datatype, "shape": shown.shape}
        if encoding.is_binary(tensor.name):
            data = shown.data
            output["parameters"] = {"binary_data_size": len(data)}
            if data:
                chunks.append(data)
        elif not encoding.is_placed(tensor.name):
            output["data"], all_finite = json_data.write(shown)
            finite = finite and all_finite
        outputs.append(output)
    document["outputs"] = outputs
    chunks[0] = dumps(document, finite)
    return EncodedResponse(chunks)


def parameters_finite(response: InferResponse) -> bool:
    """Return whether no parameter of a response is NaN or infinite."""
    return all(not isinstance(value, float) or isfinite(value) for value in response.parameters.values())


def encode_error(message: str) -> bytes:
    """Return the body of every error: {"error": message}."""
    return dumps({"error": message})
