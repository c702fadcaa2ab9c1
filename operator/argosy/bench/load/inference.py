"""Requests of the V2 protocol with tensors as bytes, and their answers: batches of one model on one server."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import aiohttp
import numpy as np
from numpy.typing import NDArray

from argosy.bench.answers import Answer
from argosy.bench.load.client import EndpointError
from argosy_common.wording import shortened

TYPES = {
    "BOOL": "bool",
    **{f"{kind}{bits}": f"{kind.lower()}{bits}" for kind in ("INT", "UINT") for bits in (8, 16, 32, 64)},
    **{f"FP{bits}": f"float{bits}" for bits in (16, 32, 64)},
}
"""NumPy's types by the protocol's; those of `BYTES` are objects, and BF16 has two bytes that NumPy has no type for."""
_HEADER = "Inference-Header-Content-Length"
_SEED = 0
_LONGEST = 300
"""Characters of an error that are shown."""


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a model: the sizes of a row (-1: any), without the dimension of the batch."""

    name: str
    datatype: str
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """What a model takes. `batches`: whether a request's first dimension is that of the batch."""

    inputs: tuple[Input, ...]
    batches: bool


class ModelClient:
    """Sends requests to one model."""

    def __init__(self, url: str, model: str, session: aiohttp.ClientSession) -> None:
        self._url, self._session = f"{url}/v2/models/{model}", session

    async def signature(self) -> Signature:
        """Return what the model takes. Raises EndpointError."""
        metadata, config = await self._read(""), await self._read("/config")
        if config.get("sequence_batching") or config.get("model_transaction_policy", {}).get("decoupled"):
            raise EndpointError("it is stateful or answers several times, and batches of it cannot be sent alone")
        batches = config.get("max_batch_size", 0) > 0
        rows = slice(1 if batches else 0, None)
        inputs = (Input(one["name"], one["datatype"], tuple(one["shape"][rows])) for one in metadata["inputs"])
        return Signature(tuple(inputs), batches)

    async def send(self, header: int, data: bytes, intended: float) -> Answer:
        """Return the answer to a request, whose first `header` bytes are JSON; a failure is an answer with an error."""
        answer = Answer(intended, perf_counter())
        try:
            async with self._session.post(f"{self._url}/infer", data=data, headers={_HEADER: str(header)}) as response:
                content = await response.read()
                if response.status != 200:
                    answer.error = f"HTTP {response.status}: {_message(content)}"
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            answer.error = f"the server gave no answer: {type(error).__name__} {error}".strip()
        answer.end = perf_counter()
        return answer

    async def _read(self, path: str) -> Mapping[str, Any]:
        try:
            async with self._session.get(self._url + path) as response:
                content = await response.read()
                if response.status != 200:
                    raise EndpointError(f"HTTP {response.status}: {_message(content)}")
                return dict(json.loads(content))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise EndpointError(f"{type(error).__name__}: {error}") from error


@dataclass(frozen=True, slots=True)
class Body:
    """A request as bytes, the first `header` of which are JSON."""

    data: bytes
    header: int


def batch_body(signature: Signature, rows: int, shapes: Mapping[str, Sequence[int]]) -> Body:
    """Return a request of so many rows: random numbers from 0 to 1, zeros where numbers are whole, empty texts.

    `shapes`: sizes of a row, by input, for those that leave some open. Raises ValueError where one is missing, or is of
    no input.
    """
    names = [one.name for one in signature.inputs]
    if unknown := [name for name in shapes if name not in names]:
        raise ValueError(no_such_input(unknown[0], names))
    tensors, parts = [], []
    for one in signature.inputs:
        sizes = _sizes(one, shapes)
        shape = (rows, *sizes) if signature.batches else sizes
        data = _data(one.datatype, shape)
        parts.append(data)
        tensors.append(
            {
                "name": one.name,
                "datatype": one.datatype,
                "shape": list(shape),
                "parameters": {"binary_data_size": len(data)},
            }
        )
    header = json.dumps({"inputs": tensors, "parameters": {"binary_data_output": True}}).encode()
    return Body(header + b"".join(parts), len(header))


def no_such_input(name: str, inputs: Sequence[str]) -> str:
    """Return that a shape is of no input, with the inputs that there are."""
    return f"--shape: there is no input {name}; the inputs are {', '.join(inputs) or 'none'}"


def _sizes(one: Input, shapes: Mapping[str, Sequence[int]]) -> tuple[int, ...]:
    sizes = tuple(shapes.get(one.name, one.sizes))
    fits = len(sizes) == len(one.sizes) and all(b in (a, -1) or a == b for a, b in zip(sizes, one.sizes, strict=True))
    if not fits or any(size < 0 for size in sizes):
        raise ValueError(f"input {one.name} has the shape {list(one.sizes)}: say its sizes by --shape {one.name}=1,2")
    return sizes


def _data(datatype: str, shape: Sequence[int]) -> bytes:
    count = int(np.prod(shape, dtype=np.int64))
    if datatype == "BYTES":
        return bytes(4 * count)
    if datatype == "BF16":
        return bytes(2 * count)
    kind = np.dtype(TYPES[datatype])
    values: NDArray[Any] = np.zeros(count)
    if kind.kind == "f":
        values = np.random.default_rng(_SEED).random(count)
    return values.astype(kind).tobytes()


def _message(content: bytes) -> str:
    """Return the first line of an error; the others say where in a model's code it was."""
    try:
        text = str(json.loads(content)["error"])
    except (ValueError, KeyError, TypeError):
        text = content.decode(errors="replace")
    return shortened(text.partition("\n")[0], _LONGEST)
