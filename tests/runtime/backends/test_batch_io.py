"""Inputs that a batch has as a whole, and outputs that are split by shapes."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.backends.conftest import RecordingResponder
from tests.runtime.backends.requests import named
from tritonclient.grpc.model_config_pb2 import BatchInput, ModelConfig

from argosy_runtime.backends.batch_io import BatchTensors, derived, input_names
from argosy_runtime.backends.batching import Batcher
from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.messages import Tensor

SHAPES = [(1, 2, 3), (2, 1, 4)]
KINDS = {
    "BATCH_ELEMENT_COUNT": [6, 8],
    "BATCH_ACCUMULATED_ELEMENT_COUNT": [6, 14],
    "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO": [0, 6, 14],
    "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE": [0] * 8,
    "BATCH_ITEM_SHAPE": [[2, 3], [1, 4], [1, 4]],
    "BATCH_ITEM_SHAPE_FLATTEN": [2, 3, 1, 4, 1, 4],
}
RAGGED = """
  name: "m" max_batch_size: 8
  input { name: "X" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }
  input { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] }
  output { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }
  batch_input { kind: BATCH_ELEMENT_COUNT target_name: "N" target_name: "M" data_type: TYPE_INT32 source_input: "X" }
  batch_output { target_name: "OUT" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "X" }
"""


def batch_input(kind: str, data_type: str = "TYPE_INT32") -> BatchInput:
    text = f'kind: {kind} target_name: "N" data_type: {data_type} source_input: "X"'
    return text_format.Parse(text, BatchInput())


def config(text: str = RAGGED) -> ModelConfig:
    return text_format.Parse(text, ModelConfig())


@pytest.mark.parametrize(("data_type", "dtype"), [("TYPE_INT32", np.int32), ("TYPE_FP32", np.float32)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_kind(kind: str, data_type: str, dtype: Any) -> None:
    values = derived(batch_input(kind, data_type), SHAPES)
    assert values.dtype == dtype
    assert values.tolist() == KINDS[kind]


def test_every_kind_of_the_schema_has_its_values() -> None:
    assert set(KINDS) == set(BatchInput.Kind.keys())


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 4), st.integers(1, 3)), min_size=1, max_size=5))
def test_counts_and_shapes_agree(shapes: list[tuple[int, int, int]]) -> None:
    counts = derived(batch_input("BATCH_ELEMENT_COUNT"), shapes)
    ends = derived(batch_input("BATCH_ACCUMULATED_ELEMENT_COUNT"), shapes)
    begins = derived(batch_input("BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO"), shapes)
    assert begins.tolist() == [0, *ends.tolist()]
    assert np.diff(begins).tolist() == counts.tolist()
    assert len(derived(batch_input("BATCH_MAX_ELEMENT_COUNT_AS_SHAPE"), shapes)) == counts.max()
    items = derived(batch_input("BATCH_ITEM_SHAPE"), shapes)
    assert items.prod(axis=1).sum() == counts.sum()
    assert derived(batch_input("BATCH_ITEM_SHAPE_FLATTEN"), shapes).tolist() == items.reshape(-1).tolist()


def test_a_count_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(ServingError, match="4294967296 does not fit into TYPE_INT32") as caught:
        derived(batch_input("BATCH_ELEMENT_COUNT"), [(1, 2**32)])
    assert caught.value.kind is ErrorKind.INTERNAL


def test_ragged_inputs_have_one_dimension_and_others_their_own() -> None:
    tensors = BatchTensors(config())
    request = named({"X": [[1, 2]], "Y": [[3]]})
    assert [tensor.shape for tensor in tensors.joined("X", [request.inputs["X"]])] == [(2,)]
    assert [tensor.shape for tensor in tensors.joined("Y", [request.inputs["Y"]])] == [(1, 1)]


def test_every_target_gets_the_batch_input() -> None:
    made = list(BatchTensors(config()).derived([named({"X": [[1, 2]], "Y": [[3]]})]))
    assert [(tensor.name, tensor.datatype, tensor.array.tolist()) for tensor in made] == [
        ("N", "INT32", [2]),
        ("M", "INT32", [2]),
    ]
    assert input_names(config()) == ["X", "Y", "N", "M"]


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 4)), min_size=1, max_size=5))
def test_a_scattered_output_is_split_as_it_was_joined(shapes: list[tuple[int, int]]) -> None:
    requests = [named({"X": np.full(shape, index)}) for index, shape in enumerate(shapes)]
    flat = np.concatenate([request.inputs["X"].array.reshape(-1) for request in requests])
    pieces = BatchTensors(config()).scattered["OUT"].pieces(requests, flat.size)
    for request, (begin, end, shape) in zip(requests, pieces, strict=True):
        assert np.array_equal(flat[begin:end].reshape(shape), request.inputs["X"].array)


def test_an_output_with_too_few_elements_is_an_error() -> None:
    scatter = BatchTensors(config()).scattered["OUT"]
    with pytest.raises(ServingError, match="returned 1 elements, but the shapes of input 'X' need 2"):
        scatter.pieces([named({"X": [[1, 2]]})], 1)


def test_a_scatter_needs_an_input_with_its_variable_dimensions() -> None:
    text = RAGGED.replace('"OUT" data_type: TYPE_FP32 dims: [ -1 ]', '"OUT" data_type: TYPE_FP32 dims: [ 1, -1 ]')
    with pytest.raises(ServingError, match="variable dimension that its source input 'X' does not have"):
        BatchTensors(config(text))


class Doubling:
    """A framework whose model returns twice `X`, and `Y` as it is."""

    runs = 0

    def batch(self) -> nullcontext[None]:
        return nullcontext()

    def gather(self, name: str, tensors: Sequence[Tensor]) -> Any:
        return np.concatenate([tensor.array for tensor in tensors])

    def run(self, inputs: Mapping[str, Any], requested: Sequence[str]) -> Mapping[str, Any]:
        self.runs += 1
        return {name: {"OUT": inputs["X"] * 2, "ROWS": inputs["Y"]}[name] for name in requested}

    def fetch(self, outputs: Mapping[str, Any]) -> Mapping[str, Any]:
        return outputs


@given(st.lists(st.tuples(st.integers(1, 2), st.integers(0, 4)), min_size=1, max_size=4))
def test_a_ragged_batch_has_the_outputs_of_single_requests(shapes: list[tuple[int, int]]) -> None:
    text = RAGGED + 'output { name: "ROWS" data_type: TYPE_FP32 dims: [ 1 ] }'
    requests = [
        named({"X": np.random.default_rng(index).random(shape), "Y": np.full((shape[0], 1), index)})
        for index, shape in enumerate(shapes)
    ]
    framework, responder = Doubling(), RecordingResponder()
    Batcher(config(text), 1, framework).execute(requests, responder)
    assert framework.runs == 1
    for index, request in enumerate(requests):
        outputs = {output.name: output.array for output in responder.only(index).outputs}
        assert np.array_equal(outputs["OUT"], request.inputs["X"].array * 2)
        assert np.array_equal(outputs["ROWS"], request.inputs["Y"].array)
