"""Answers of two versions compared: numbers, rows, strings, shapes, and the responses of a stream."""

from math import inf, nan

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from argosy_runtime.comparison.differences import DifferenceKind, OutputComparison, are_equal
from argosy_runtime.comparison.numbers import CHUNK, agreeing_rows, compare_numbers
from argosy_runtime.comparison.responses import compare_responses
from argosy_runtime.comparison.tensors import compare_tensors
from argosy_runtime.messages import Array, Tensor
from argosy_runtime.modelconfig.parameters.traffic import OutputTolerance
from argosy_runtime.tensors import join_strings, raw_tensor

EXACT = OutputTolerance("Y")
INTEGERS = [np.bool_, np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64]
FLOATS = [np.float16, np.float32, np.float64]
_SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, max_side=5)


def _floats(kind: type) -> st.SearchStrategy[Array]:
    return arrays.arrays(kind, _SHAPES)


def _tensor(values: Array, name: str = "Y") -> Tensor:
    names = {"float32": "FP32", "float64": "FP64", "int64": "INT64", "bfloat16": "BF16", "bool": "BOOL"}
    return Tensor(name, names[values.dtype.name], values)


def _strings(*values: bytes, name: str = "Y") -> Tensor:
    return raw_tensor(name, "BYTES", (len(values),), join_strings(values))


@given(st.sampled_from(INTEGERS + FLOATS).flatmap(_floats))
def test_an_answer_equals_itself_also_where_it_is_no_number(values: Array) -> None:
    result = compare_numbers(values, values.copy(), 0.0, 0.0)
    assert (result.largest, result.beyond) == (0.0, 0)
    assert agreeing_rows(values, values.copy())[0] == agreeing_rows(values, values.copy())[1]


@given(
    st.integers(1, 20).flatmap(
        lambda size: st.tuples(*(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=size, max_size=size),) * 2)
    )
)
def test_differences_of_integers_are_exact(values: tuple[list[int], list[int]]) -> None:
    mine, theirs = values
    result = compare_numbers(np.array(mine, np.int64), np.array(theirs, np.int64), 0.0, 0.0)
    distances = [abs(a - b) for a, b in zip(mine, theirs, strict=True)]
    assert result.largest == float(max(distances))
    assert result.beyond == sum(distance > 0 for distance in distances)


_NUMBER = st.floats(width=32)


@given(st.lists(st.tuples(_NUMBER, _NUMBER), max_size=20), st.floats(0, 10), st.floats(0, 1))
def test_an_element_agrees_within_the_tolerance_of_the_stable_one(
    pairs: list[tuple[float, float]], absolute: float, relative: float
) -> None:
    mine, theirs = (np.array([pair[side] for pair in pairs], np.float32) for side in (0, 1))
    result = compare_numbers(mine, theirs, absolute, relative)
    beyond = sum(not _agree(a, b, absolute, relative) for a, b in pairs)
    assert result.beyond == beyond


def _agree(stable: float, candidate: float, absolute: float, relative: float) -> bool:
    if stable == candidate or (stable != stable and candidate != candidate):
        return True
    distance = abs(stable - candidate)
    return distance < inf and distance <= absolute + relative * abs(stable)


@pytest.mark.parametrize(("mine", "theirs"), [(nan, 1.0), (1.0, nan), (inf, 1.0), (inf, -inf), (-inf, nan)])
def test_no_tolerance_covers_what_is_no_number_on_one_side(mine: float, theirs: float) -> None:
    result = compare_numbers(np.array([mine]), np.array([theirs]), 1e300, 1e300)
    assert (result.largest, result.beyond) == (inf, 1)


def test_large_arrays_are_compared_to_their_end() -> None:
    mine = np.zeros(2 * CHUNK + 1, np.float32)
    theirs = mine.copy()
    theirs[[0, CHUNK, -1]] = [0.5, 0.25, 2.0]
    assert compare_numbers(mine, theirs, 0.3, 0.0).beyond == 2
    assert compare_numbers(mine, theirs, 0.3, 0.0).largest == 2.0
    rows, agreeing = agreeing_rows(mine.reshape(1, -1), theirs.reshape(1, -1))
    assert (rows, agreeing) == (1, 0)


def test_numbers_of_half_precision_are_compared_as_numbers() -> None:
    mine = np.array([[1.0, 2.0, 3.0]], ml_dtypes.bfloat16)
    theirs = np.array([[1.0, 2.0, 3.5]], ml_dtypes.bfloat16)
    comparison = compare_tensors(_tensor(mine), _tensor(theirs), OutputTolerance("Y", absolute=0.5))
    assert (comparison.difference, comparison.largest) == (None, 0.5)
    assert agreeing_rows(mine, theirs) == (1, 1)


def test_rows_are_judged_by_their_largest_element_and_not_by_their_values() -> None:
    stable = np.array([[0.1, 0.9], [0.6, 0.4], [nan, 0.0]], np.float32)
    candidate = np.array([[0.4, 0.6], [0.4, 0.6], [nan, 7.0]], np.float32)
    comparison = compare_tensors(_tensor(stable), _tensor(candidate), OutputTolerance("Y", top1_agreement=0.9))
    assert (comparison.rows, comparison.agreeing) == (3, 2)
    assert comparison.difference is not None
    assert comparison.difference.kind is DifferenceKind.TOP1
    assert are_equal([comparison]), "rows are judged over all requests"


def test_elements_of_rows_are_compared_where_a_tolerance_asks_for_it() -> None:
    stable, candidate = np.array([[1.0, 2.0]], np.float32), np.array([[1.0, 2.5]], np.float32)
    for absolute, kind in ((0.0, None), (1.0, None), (0.1, DifferenceKind.VALUE)):
        tolerance = OutputTolerance("Y", absolute=absolute, top1_agreement=1.0)
        comparison = compare_tensors(_tensor(stable), _tensor(candidate), tolerance)
        assert (comparison.rows, comparison.agreeing) == (1, 1)
        assert (comparison.difference.kind if comparison.difference is not None else None) is kind
    tolerance = OutputTolerance("Y", absolute=0.1, top1_agreement=1.0)
    both = compare_tensors(_tensor(stable), _tensor(stable[:, ::-1].copy()), tolerance)
    assert (both.agreeing, both.largest) == (0, 1.0)
    assert not are_equal([both]), "the elements are further apart than the tolerance"


def test_strings_are_compared_exactly_whatever_the_tolerance() -> None:
    tolerance = OutputTolerance("Y", absolute=100, relative=1, top1_agreement=0)
    assert compare_tensors(_strings(b"a", b""), _strings(b"a", b""), tolerance).difference is None
    difference = compare_tensors(_strings(b"a", b"b", b"c"), _strings(b"a", b"x", b"y"), tolerance).difference
    assert difference is not None
    assert (difference.kind, difference.size) == (DifferenceKind.ELEMENTS, 2.0)


@pytest.mark.parametrize(
    ("candidate", "kind"),
    [
        (np.zeros((2, 1), np.float32), DifferenceKind.SHAPE),
        (np.zeros((1, 2), np.float64), DifferenceKind.DATATYPE),
        (None, DifferenceKind.MISSING),
    ],
)
def test_an_output_of_another_shape_or_datatype_differs(candidate: Array | None, kind: DifferenceKind) -> None:
    stable = (_tensor(np.zeros((1, 2), np.float32)),)
    other = () if candidate is None else (_tensor(candidate),)
    (comparison,) = compare_responses([stable], [other], {"Y": OutputTolerance("Y", absolute=1e9)})
    assert comparison.difference is not None
    assert (comparison.difference.kind, comparison.difference.size) == (kind, inf)


def test_an_output_that_only_the_candidate_has_is_no_difference() -> None:
    stable = _tensor(np.ones(1, np.float32))
    both = compare_responses([(stable,)], [(stable, _tensor(np.ones(1, np.float32), "Z"))], {})
    assert [(one.output, one.difference) for one in both] == [("Y", None)]


def test_responses_of_a_stream_are_compared_in_their_order() -> None:
    stream = [(_tensor(np.array([value], np.float32)),) for value in (1.0, 2.0, 3.0)]
    (same,) = compare_responses(stream, stream, {})
    assert same == OutputComparison("Y", largest=0.0)
    (swapped,) = compare_responses(stream, [stream[0], stream[2], stream[1]], {})
    assert swapped.difference is not None
    assert (swapped.difference.kind, swapped.largest) == (DifferenceKind.VALUE, 1.0)
    (shorter,) = compare_responses(stream, stream[:2], {})
    assert shorter.difference is not None
    assert shorter.difference.kind is DifferenceKind.RESPONSES
    (longer,) = compare_responses(stream[:2], stream, {})
    assert longer.difference is not None
    assert longer.difference.detail == "3 responses instead of 2"


def test_an_answer_without_responses_on_both_sides_is_equal() -> None:
    assert compare_responses([], [], {}) == []
    assert are_equal([])
