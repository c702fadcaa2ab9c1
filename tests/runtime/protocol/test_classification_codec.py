"""Classification: the best k, with labels, per batch entry."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.errors import ServingError
from argosy_runtime.messages import Tensor
from argosy_runtime.protocol.classification import classify
from argosy_runtime.protocol.model_view import ModelView
from argosy_runtime.protocol.tensors import DTYPES

PLAIN = ModelView("m", {})
BATCHING = ModelView("m", {}, 8, lambda output: ["zero", "one"])


def test_batched_with_labels() -> None:
    scores = np.array([[0.25, 0.5, 0.125], [3, 2, 1]], np.float32)
    result = classify(Tensor("O", "FP32", scores), 2, BATCHING)
    assert (result.datatype, result.shape) == ("BYTES", (2, 2))
    assert result.array.tolist() == [
        [b"0.500000:1:one", b"0.250000:0:zero"],
        [b"3.000000:0:zero", b"2.000000:1:one"],
    ]


def test_without_a_batch_all_elements_compete() -> None:
    scores = Tensor("O", "INT8", np.array([[1, -2], [5, 5]], np.int8))
    result = classify(scores, 9, PLAIN)
    assert result.shape == (4,)
    assert result.array.tolist() == [b"5:2", b"5:3", b"1:0", b"-2:1"]


@pytest.mark.parametrize("datatype", ["BYTES", "BOOL", "FP16", "BF16"])
def test_types_without_order_are_refused(datatype: str) -> None:
    tensor = Tensor("O", datatype, np.zeros(2, DTYPES[datatype]))
    reported = f"class result not available for output due to unsupported type '{datatype}'"
    with pytest.raises(ServingError, match=reported):
        classify(tensor, 1, PLAIN)


def test_huge_outputs_are_refused() -> None:
    with pytest.raises(ServingError, match="classification output tensor too large"):
        classify(Tensor("O", "UINT8", np.zeros(1_000_001, np.uint8)), 1, PLAIN)


def test_an_empty_batch_has_no_entries() -> None:
    assert classify(Tensor("O", "FP32", np.zeros((0, 3), np.float32)), 2, BATCHING).array.size == 0


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=6), st.integers(1, 7))
def test_unsigned_order(values: list[int], count: int) -> None:
    result = classify(Tensor("O", "UINT64", np.array(values, np.uint64)), count, PLAIN)
    got = [int(entry.split(b":")[0]) for entry in result.array.tolist()]
    assert got == sorted(values, reverse=True)[:count]
