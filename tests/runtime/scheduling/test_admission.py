"""Requests at the door: what passes, what does not, and who may share a batch."""

import numpy as np
import pytest
from tritonclient.grpc import model_config_pb2 as mc

from argosy_runtime.errors import ServingError
from argosy_runtime.messages import InferRequest, Tensor
from argosy_runtime.scheduling.admission import Admission


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
        (request(A=A, B=B[:2]), r"input 'B' batch size does not match other inputs for 'm'"),
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
def test_unknown_names_are_told_without_the_request(bad, message):
    with pytest.raises(ServingError) as caught:
        Admission(config()).check(bad)
    assert caught.value.message == message


def test_an_optional_input_alone_is_not_enough():
    lone = mc.ModelConfig(name="m", max_batch_size=4)
    lone.input.add(name="A", data_type=mc.TYPE_FP32, dims=[-1])
    lone.input.add(name="C", data_type=mc.TYPE_BOOL, dims=[1], optional=True)
    told = (
        r"expected number of inputs between 1 and 2 but got 1 inputs for model 'm'. Got input\(s\) \['C'\], but missing"
    )
    with pytest.raises(ServingError, match=told):
        Admission(lone).check(request(C=C))


def test_the_batch_key_holds_what_varies():
    admission = Admission(config())
    assert admission.batch_key(request(A=A, B=B)) == (("A", (5,), None),)
    assert admission.batch_key(request(A=A, B=B, C=C)) == (("A", (5,), None), ("C", (1,), None))
    fixed = config()
    del fixed.input[2], fixed.input[0]
    assert Admission(fixed).batch_key(request(B=B)) is None


def test_reshape_is_what_the_model_sees():
    inputs = Admission(config()).reshape(request(A=A, B=B).inputs)
    assert inputs["B"].shape == (3, 4)
    assert inputs["A"].array is A
