"""What a model is given and gives back with a batch as a whole: ragged inputs, `batch_input` and `batch_output`.

A ragged input (`allow_ragged_batch`) is the elements of all requests in one dimension, one request after the other. A
`batch_input` tells the model where each of them begins, or what shape it has. A `batch_output` is split by the shapes
of an input in place of rows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np
from tritonclient.grpc.model_config_pb2 import BatchInput, ModelConfig, ModelOutput

from argosy_runtime.errors import internal, invalid
from argosy_runtime.messages import Array, InferRequest, Tensor
from argosy_runtime.modelconfig.datatypes import numpy_dtype, v2_name
from argosy_runtime.modelconfig.shapes import WILDCARD, full_shape, shape_text

Shape = tuple[int, ...]
Piece = tuple[int, int, Shape]
"""The part of a flat output that belongs to one request: its first element, the one after its last, and its shape."""


def _counts(shapes: Sequence[Shape]) -> Array:
    return np.array([prod(shape) for shape in shapes], np.int64)


def _accumulated(shapes: Sequence[Shape]) -> Array:
    return np.cumsum(_counts(shapes), dtype=np.int64)


def _accumulated_with_zero(shapes: Sequence[Shape]) -> Array:
    return np.concatenate((np.zeros(1, np.int64), _accumulated(shapes)))


def _max_as_shape(shapes: Sequence[Shape]) -> Array:
    return np.zeros(max(map(prod, shapes)), np.int64)


def _item_shapes(shapes: Sequence[Shape]) -> Array:
    items = [shape[1:] for shape in shapes for _ in range(shape[0])]
    return np.array(items, np.int64).reshape((len(items), len(shapes[0]) - 1))


def _flat_item_shapes(shapes: Sequence[Shape]) -> Array:
    return _item_shapes(shapes).reshape(-1)


_KINDS: Final[Mapping[int, Callable[[Sequence[Shape]], Array]]] = {
    BatchInput.BATCH_ELEMENT_COUNT: _counts,
    BatchInput.BATCH_ACCUMULATED_ELEMENT_COUNT: _accumulated,
    BatchInput.BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO: _accumulated_with_zero,
    BatchInput.BATCH_MAX_ELEMENT_COUNT_AS_SHAPE: _max_as_shape,
    BatchInput.BATCH_ITEM_SHAPE: _item_shapes,
    BatchInput.BATCH_ITEM_SHAPE_FLATTEN: _flat_item_shapes,
}


def derived(declared: BatchInput, shapes: Sequence[Shape]) -> Array:
    """Return a batch input of requests whose source inputs have these shapes, with their rows first.

    Of BATCH_MAX_ELEMENT_COUNT_AS_SHAPE only the shape means something. Raises ServingError (INTERNAL) where a value
    does not fit into TYPE_INT32.
    """
    values = _KINDS[declared.kind](shapes)
    dtype = numpy_dtype(v2_name(declared.data_type))
    if dtype == np.int32 and values.size and values.max() > np.iinfo(np.int32).max:
        raise internal(f"batch input '{declared.target_name[0]}': {values.max()} does not fit into TYPE_INT32")
    return values.astype(dtype)


@dataclass(frozen=True, slots=True)
class Scatter:
    """A batch output: the variable sizes of `shape`, which is full, are those of input `source` at the same place."""

    name: str
    source: str
    shape: Shape

    @classmethod
    def of(cls, config: ModelConfig, output: ModelOutput, source: str) -> "Scatter":
        """Return the scatter of one output. Raises ServingError where the input lacks a dimension that it needs."""
        dims = output.reshape.shape if output.HasField("reshape") else output.dims
        shape = full_shape(dims, config.max_batch_size)
        sourced = next(entry for entry in config.input if entry.name == source)
        length = len(sourced.reshape.shape if sourced.HasField("reshape") else sourced.dims) + (
            config.max_batch_size > 0
        )
        if any(size == WILDCARD and index >= length for index, size in enumerate(shape)):
            raise invalid(
                f"unable to load model '{config.name}', batch output '{output.name}' of shape {shape_text(shape)} has "
                f"a variable dimension that its source input '{source}' does not have"
            )
        return cls(output.name, source, shape)

    def pieces(self, requests: Sequence[InferRequest], size: int) -> list[Piece]:
        """Return the part of each request of an output of `size` elements. Raises ServingError if it has too few."""
        pieces: list[Piece] = []
        begin = 0
        for request in requests:
            sizes = request.inputs[self.source].shape
            shape = tuple([sizes[index] if dim == WILDCARD else dim for index, dim in enumerate(self.shape)])
            pieces.append((begin, begin + prod(shape), shape))
            begin += prod(shape)
        if begin > size:
            raise internal(
                f"output '{self.name}': the model returned {size} elements, but the shapes of input '{self.source}' "
                f"need {begin}"
            )
        return pieces


class BatchTensors:
    """The ragged inputs, batch inputs and batch outputs of one model. Raises ServingError."""

    def __init__(self, config: ModelConfig) -> None:
        self.ragged = ragged_input_names(config)
        self._inputs = tuple(config.batch_input)
        outputs = {output.name: output for output in config.output}
        self.scattered = {
            name: Scatter.of(config, outputs[name], declared.source_input[0])
            for declared in config.batch_output
            for name in declared.target_name
        }

    def joined(self, name: str, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return an input of each request as it is joined: a ragged one in one dimension."""
        return [tensor.reshaped((prod(tensor.shape),)) for tensor in tensors] if name in self.ragged else tensors

    def derived(self, requests: Sequence[InferRequest]) -> Iterator[Tensor]:
        """Return the batch inputs of a batch."""
        for declared in self._inputs:
            shapes = [request.inputs[declared.source_input[0]].shape for request in requests]
            values = derived(declared, shapes)
            for name in declared.target_name:
                yield Tensor(name, v2_name(declared.data_type), values)


def input_names(config: ModelConfig) -> list[str]:
    """Return the names of a model's inputs, those of requests first, in their order."""
    batching = config.sequence_batching
    controls = [control.name for control in batching.control_input]
    states = [state.input_name for state in batching.state]
    return [*[entry.name for entry in config.input], *batch_input_names(config), *controls, *states]


def batch_input_names(config: ModelConfig) -> list[str]:
    """Return the names of the inputs that are derived from a batch."""
    return [name for declared in config.batch_input for name in declared.target_name]


def ragged_input_names(config: ModelConfig) -> frozenset[str]:
    """Return the names of the inputs that may have another shape in each request of a batch."""
    return frozenset(entry.name for entry in config.input if entry.allow_ragged_batch)


def scattered_output_names(config: ModelConfig) -> frozenset[str]:
    """Return the names of the outputs that are split by the shapes of an input."""
    return frozenset(name for declared in config.batch_output for name in declared.target_name)


__all__ = [
    "BatchTensors",
    "Piece",
    "Scatter",
    "batch_input_names",
    "derived",
    "input_names",
    "ragged_input_names",
    "scattered_output_names",
]
