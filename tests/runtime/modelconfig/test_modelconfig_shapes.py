import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.modelconfig import parse_text, shapes

NOTE = "NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended"


def test_shapes_are_written_as_triton_writes_them() -> None:
    assert shapes.shape_text([-1, 16]) == "[-1,16]"
    assert shapes.shape_text([]) == "[]"


def test_counts() -> None:
    assert shapes.element_count([2, 3]) == 6
    assert shapes.element_count([2, -1]) == -1
    assert shapes.element_count([]) == 0
    assert shapes.segment_counts([2, 4, -1, 6]) == [8, 6]


@pytest.mark.parametrize(
    ("left", "right", "fits"),
    [([1, -1], [1, 5], True), ([1], [1, 1], False), ([2], [3], False), ([-1], [-1], True), ([], [], True)],
)
def test_compatible_shapes(left: list[int], right: list[int], fits: bool) -> None:
    assert shapes.compatible(left, right) is fits
    assert shapes.compatible(right, left) is fits


def test_an_unexpected_shape_is_reported_with_the_batch() -> None:
    reported = shapes.check_input_shape("INPUT0", "m", [16], 8, [1, 3])
    assert reported is not None
    assert reported.startswith(
        "unexpected shape for input 'INPUT0' for model 'm'. Expected [-1,16], got [1,3]. " + NOTE
    )


def test_an_unexpected_shape_of_a_model_without_batching_gets_no_note() -> None:
    reported = shapes.check_input_shape("I", "m", [16, -1], 0, [16])
    assert reported == "unexpected shape for input 'I' for model 'm'. Expected [16,-1], got [16]. "


def test_variable_dimensions_take_any_size_but_must_be_set() -> None:
    assert shapes.check_input_shape("I", "m", [-1, 4], 8, [1, 0, 4]) is None
    assert shapes.check_input_shape("I", "m", [-1], 8, [1, -1]) == (
        "All input dimensions should be specified for input 'I' for model 'm', got [1,-1]"
    )


def test_a_shape_tensor_has_no_rows_though_the_message_says_so() -> None:
    assert shapes.check_input_shape("I", "m", [2], 8, [2], has_rows=False) is None
    reported = shapes.check_input_shape("I", "m", [2], 8, [3], has_rows=False)
    assert reported is not None
    assert reported.startswith("unexpected shape for input 'I' for model 'm'. Expected [-1,2], got [3]. " + NOTE)


def test_a_missing_batch_dimension() -> None:
    assert shapes.check_input_shape("I", "m", [1], 8, []) == (
        "input 'I' has no shape but model requires batch dimension for 'm'"
    )


@given(st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=5))
def test_reshape_moves_the_variable_sizes(sizes: list[tuple[int, bool]]) -> None:
    shape = [size for size, _ in sizes]
    dims = [-1 if variable else size for size, variable in sizes]
    target = [1, *[dim for dim in dims if dim == -1], 1]
    expected = (1, *[size for size, variable in sizes if variable], 1)
    assert shapes.reshape(dims, target, shape) == expected
    assert shapes.reshape(dims, dims, shape) == tuple(shape)


MODEL = """
name: "m" max_batch_size: 4
input { name: "A" data_type: TYPE_FP32 dims: [ 2 ] }
input { name: "B" data_type: TYPE_STRING dims: [ -1 ] %s }
"""
GOOD = {"A": ("FP32", [1, 2]), "B": ("BYTES", [1, 7])}


def request(changes: dict[str, tuple[str, list[int]] | None], optional: bool = False) -> str | None:
    config = parse_text(MODEL % ("optional: true" if optional else ""))
    inputs = {name: tensor for name, tensor in {**GOOD, **changes}.items() if tensor is not None}
    return shapes.check_request(config, inputs)


def test_a_good_request() -> None:
    assert request({}) is None
    assert request({"B": None}, optional=True) is None


CASES = {
    "missing": (
        {"B": None},
        (
            "expected 2 inputs but got 1 inputs for model 'm'. Got input(s) ['A'], but missing required input(s) "
            "['B']. Please provide all required input(s)."
        ),
    ),
    "too many": (
        {"C": ("FP32", [1, 2])},
        (
            "expected 2 inputs but got 3 inputs for model 'm'. Got input(s) ['B','C','A'], but missing required "
            "input(s) []. Please provide all required input(s)."
        ),
    ),
    "another name": (
        {"B": None, "C": ("FP32", [1, 2])},
        "unexpected inference input 'C' for model 'm'",
    ),
    "batches differ": (
        {"B": ("BYTES", [2, 7])},
        "input 'A' batch size does not match other inputs for 'm'",
    ),
    "batch too large": (
        {"A": ("FP32", [5, 2]), "B": ("BYTES", [5, 7])},
        "inference request batch-size must be <= 4 for 'm'",
    ),
    "no shape": ({"A": ("FP32", [])}, "input 'A' has no shape but model requires batch dimension for 'm'"),
    "datatype": (
        {"A": ("FP64", [1, 2])},
        "inference input 'A' data-type is 'FP64', but model 'm' expects 'FP32'",
    ),
}


@pytest.mark.parametrize(("changes", "message"), CASES.values(), ids=CASES)
def test_every_way_a_request_is_wrong(changes: dict[str, tuple[str, list[int]] | None], message: str) -> None:
    assert request(changes) == message


def test_counting_with_optional_inputs() -> None:
    reported = request({"A": None, "B": None}, optional=True)
    assert reported is not None
    assert reported.startswith(
        "expected number of inputs between 1 and 2 but got 0 inputs for model 'm'. Got input(s) []"
    )


def test_a_shape_that_does_not_fit_is_the_last_thing_checked() -> None:
    reported = request({"A": ("FP32", [1, 3])})
    assert reported is not None
    assert reported.startswith("unexpected shape for input 'A'")


def test_a_shape_tensor_has_no_batch() -> None:
    config = parse_text(MODEL % "" + "input { name: 'S' data_type: TYPE_INT32 dims: 2 is_shape_tensor: true }")
    assert shapes.check_request(config, {**GOOD, "S": ("INT32", [2])}) is None


FAULTS = {"A": "size of A", "B": "size of B"}


@pytest.mark.parametrize(
    ("changes", "outputs", "expected"),
    [
        ({}, [], "size of B"),
        ({}, ["NO"], "unexpected inference output 'NO' for model 'm'"),
        ({"B": None, "C": ("FP32", [1])}, [], "unexpected inference input 'C' for model 'm'"),
        ({"A": ("INT32", [1, 2])}, [], "size of B"),
        ({"B": ("FP32", [1, 7])}, [], "#inference input 'B' data-type is 'FP32', but model 'm' expects 'BYTES'"),
        ({"A": ("FP32", [9, 2]), "B": ("BYTES", [9, 1])}, [], "#inference request batch-size must be <= 4 for 'm'"),
        ({"A": ("FP32", [0, 2]), "B": ("BYTES", [0, 1])}, [], "#inference request batch-size must be >= 1 for 'm'"),
    ],
)
def test_data_that_does_not_fit_is_reported_after_datatype_and_shape_of_its_input(
    changes: dict[str, tuple[str, list[int]] | None], outputs: list[str], expected: str
) -> None:
    inputs = {name: tensor for name, tensor in {**GOOD, **changes}.items() if tensor is not None}
    assert shapes.first_fault(parse_text(MODEL % ""), "#", inputs, outputs, FAULTS) == expected
