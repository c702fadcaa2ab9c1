"""Requests at the door: accepted, refused, and allowed to share a batch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tritonclient.grpc import model_config_pb2 as mc

from argosy_runtime.errors import ServingError
from argosy_runtime.messages import InferRequest, RequestTemplate, Tensor
from argosy_runtime.modelconfig import shapes
from argosy_runtime.scheduling.admission import TEMPLATES, Admission


def config(max_batch_size: int = 4) -> mc.ModelConfig:
    made = mc.ModelConfig(name="m", max_batch_size=max_batch_size)
    made.input.add(name="A", data_type=mc.TYPE_FP32, dims=[-1])
    made.input.add(name="B", data_type=mc.TYPE_INT32, dims=[2, 2])
    made.input[1].reshape.shape.extend([4])
    made.input.add(name="C", data_type=mc.TYPE_BOOL, dims=[1], optional=True)
    made.output.add(name="OUT")
    return made


def request(outputs: tuple[str, ...] = (), **arrays) -> InferRequest:
    types = {"float32": "FP32", "int32": "INT32", "bool": "BOOL", "float64": "FP64"}
    inputs = {name: Tensor(name, types[a.dtype.name], a) for name, a in arrays.items()}
    return InferRequest("m", inputs, requested_outputs=outputs)


A = np.zeros((3, 5), np.float32)
B = np.zeros((3, 2, 2), np.int32)
C = np.zeros((3, 1), bool)


def test_good_requests_give_their_batch_size():
    admission = Admission(config())
    assert admission.check(request(A=A, B=B)) == 3
    assert admission.check(request(A=A, B=B, C=C, outputs=("OUT",))) == 3
    assert Admission(config(0)).check(request(A=A[0], B=B[0])) == 1


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (request(A=A), r"expected number of inputs between 2 and 3 but got 1 inputs for model 'm'"),
        (
            request(A=A, C=C),
            r"between 2 and 3 but got 2 inputs for model 'm'. Got .*missing required input\(s\) \['B'\]",
        ),
        (request(A=A.astype(np.float64), B=B), r"input 'A' data-type is 'FP64', but model 'm' expects 'FP32'"),
        (request(A=A, B=B[:, :1]), r"unexpected shape for input 'B' for model 'm'. Expected \[-1,2,2\], got \[3,1,2\]"),
        (request(A=A, B=B[:2]), r"input 'A' batch size does not match other inputs for 'm'"),
        (request(A=np.zeros((5, 1), np.float32), B=np.zeros((5, 2, 2), np.int32)), r"batch-size must be <= 4 for 'm'"),
        (request(A=A[:0], B=B[:0]), r"batch-size must be >= 1 for 'm'"),
    ],
)
def test_bad_requests_are_refused_in_tritons_words(bad, message):
    with pytest.raises(ServingError, match=message) as caught:
        Admission(config()).check(bad)
    assert caught.value.message.startswith("[request id: <id_unknown>] ")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (request(A=A, B=B, X=C), "unexpected inference input 'X' for model 'm'"),
        (request(A=A, B=B, outputs=("NOPE",)), "unexpected inference output 'NOPE' for model 'm'"),
        (request(A=A, outputs=("OUT", "NOPE")), "unexpected inference output 'NOPE' for model 'm'"),
    ],
)
def test_unknown_names_are_reported_without_the_request(bad, message):
    with pytest.raises(ServingError) as caught:
        Admission(config()).check(bad)
    assert caught.value.message == message


def test_an_optional_input_alone_is_not_enough():
    lone = mc.ModelConfig(name="m", max_batch_size=4)
    lone.input.add(name="A", data_type=mc.TYPE_FP32, dims=[-1])
    lone.input.add(name="C", data_type=mc.TYPE_BOOL, dims=[1], optional=True)
    reported = (
        r"expected number of inputs between 1 and 2 but got 1 inputs for model 'm'. Got input\(s\) \['C'\], but missing"
    )
    with pytest.raises(ServingError, match=reported):
        Admission(lone).check(request(C=C))


def test_the_batch_key_holds_what_varies():
    admission = Admission(config())
    assert admission.batch_key(request(A=A, B=B)) == (("A", (5,), None),)
    assert admission.batch_key(request(A=A, B=B, C=C)) == (("A", (5,), None), ("C", (1,), None))
    fixed = config()
    del fixed.input[2], fixed.input[0]
    assert Admission(fixed).batch_key(request(B=B)) is None


def test_ragged_inputs_share_a_batch_whatever_their_shapes_and_optional_ones_if_they_are_there():
    made = config()
    made.input[0].allow_ragged_batch = True
    made.input[2].allow_ragged_batch = True
    made.input[2].dims[:] = [-1]
    admission = Admission(made)
    short, long = request(A=A[:, :1], B=B), request(A=A, B=B)
    assert admission.batch_key(short) == admission.batch_key(long)
    narrow, wide = request(A=A, B=B, C=C), request(A=A, B=B, C=np.zeros((3, 2), bool))
    assert admission.batch_key(narrow) == admission.batch_key(wide) != admission.batch_key(long)


def test_reshape_is_what_the_model_sees():
    inputs = Admission(config()).reshape(request(A=A, B=B).inputs)
    assert inputs["B"].shape == (3, 4)
    assert inputs["A"].array is A


def with_shape_tensor() -> mc.ModelConfig:
    made = mc.ModelConfig(name="m", max_batch_size=4)
    made.input.add(name="A", data_type=mc.TYPE_FP32, dims=[5])
    made.input.add(name="S", data_type=mc.TYPE_INT32, dims=[2], is_shape_tensor=True)
    return made


def test_a_shape_tensor_has_no_batch_and_its_values_decide_who_shares_one():
    admission = Admission(with_shape_tensor())
    one, same, other = (request(A=A, S=np.array(values, np.int32)) for values in ([1, 2], [1, 2], [1, 3]))
    admitted = [admission.admit(item) for item in (one, same, other)]
    assert [item.size for item in admitted] == [3, 3, 3]
    assert admitted[0].key == admitted[1].key
    assert admitted[0].key != admitted[2].key
    with pytest.raises(
        ServingError, match=r"unexpected shape for input 'S' for model 'm'. Expected \[-1,2\], got \[3,2\]. NOTE"
    ):
        admission.admit(request(A=A, S=np.zeros((3, 2), np.int32)))


def test_values_that_decide_are_looked_at_in_every_request_of_a_template():
    admission = Admission(with_shape_tensor())
    template = RequestTemplate(request(A=A, S=np.array([1, 2], np.int32)))
    keys = {
        admission.admit(template.request("", [A.tobytes(), np.array([1, n], np.int32).tobytes()])).key for n in (2, 3)
    }
    assert len(keys) == 2


def test_requests_of_one_plan_are_checked_once():
    admission = Admission(config())
    template = RequestTemplate(request(A=A, B=B))
    raw = [A.tobytes(), B.tobytes()]
    first = admission.admit(template.request("1", raw))
    second = template.request("2", raw)
    second.join(7, True, False)
    assert admission.admit(second) is first
    seen = first.seen_by_model(second)
    assert (seen.id, seen.template is not template, seen.raw) == ("2", True, raw)
    assert (seen.sequence_id, seen.sequence_start, seen.sequence_end) == (7, True, False)
    assert seen.inputs["B"].shape == (3, 4)
    with pytest.raises(ServingError):
        admission.admit(RequestTemplate(request(A=A)).request("3", raw[:1]))


def test_so_many_plans_are_recorded_and_no_more():
    admission = Admission(config(0))
    templates = [RequestTemplate(request(A=np.zeros(n, np.float32), B=B[0])) for n in range(TEMPLATES + 1)]
    raw = [b"", b""]
    plans = [admission.admit(template.request("", raw)) for template in templates]
    assert admission.admit(templates[-1].request("", raw)) is plans[-1]
    assert admission.admit(templates[0].request("", raw)) is not plans[0]


TYPES = {"FP32": np.float32, "INT32": np.int32}
SIZES = st.integers(0, 3)


@st.composite
def configs(draw: st.DrawFn) -> mc.ModelConfig:
    made = mc.ModelConfig(name="m", max_batch_size=draw(st.sampled_from([0, 1, 2])))
    for name in draw(st.lists(st.sampled_from("ABC"), min_size=1, max_size=3, unique=True)):
        made.input.add(
            name=name,
            data_type=draw(st.sampled_from([mc.TYPE_FP32, mc.TYPE_INT32])),
            dims=draw(st.lists(st.sampled_from([-1, 1, 2]), min_size=1, max_size=2)),
            optional=draw(st.booleans()),
            is_shape_tensor=draw(st.integers(0, 4)) == 0,
        )
    return made


@st.composite
def requests(draw: st.DrawFn, made: mc.ModelConfig) -> InferRequest:
    """Draw requests that mostly fit, with something wrong here and there."""
    inputs = {}
    rows = draw(SIZES)
    for declared in made.input:
        if draw(st.integers(0, 5)) == 0:
            continue
        shape = [draw(SIZES) if dim == -1 or draw(st.integers(0, 7)) == 0 else dim for dim in declared.dims]
        if made.max_batch_size and not declared.is_shape_tensor:
            shape = [rows if draw(st.integers(0, 7)) else draw(SIZES), *shape]
        shape = shape[: len(shape) - (draw(st.integers(0, 9)) == 0)]
        right = "FP32" if declared.data_type == mc.TYPE_FP32 else "INT32"
        kind = right if draw(st.integers(0, 9)) else draw(st.sampled_from(sorted(TYPES)))
        inputs[declared.name] = Tensor(declared.name, kind, np.zeros(shape, TYPES[kind]))
    if draw(st.integers(0, 9)) == 0:
        inputs["X"] = Tensor("X", "FP32", np.zeros(1, np.float32))
    return InferRequest("m", inputs)


def refusal(made: mc.ModelConfig, request: InferRequest) -> str | None:
    try:
        Admission(made).check(request)
    except ServingError as error:
        return error.message.removeprefix(request.log_prefix)
    return None


def is_empty(made: mc.ModelConfig, request: InferRequest) -> bool:
    shaped = {declared.name for declared in made.input if declared.is_shape_tensor}
    batched = [tensor for name, tensor in request.inputs.items() if name not in shaped]
    return bool(made.max_batch_size and batched and batched[0].shape[0] == 0)


@given(st.data())
def test_the_quick_check_takes_what_the_slow_one_has_nothing_against(data: st.DataObject):
    made = data.draw(configs())
    request = data.draw(requests(made))
    message = shapes.check_request(
        made, {name: (tensor.datatype, tensor.shape) for name, tensor in request.inputs.items()}
    )
    if message is None and is_empty(made, request):
        message = "inference request batch-size must be >= 1 for 'm'"
    assert refusal(made, request) == message
