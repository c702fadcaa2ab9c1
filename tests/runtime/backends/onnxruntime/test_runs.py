"""Batches become runs of real sessions, and everyone gets their rows."""

from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto
from tests.runtime.backends.onnxruntime.graphs import ADD_SUB, IO, OUT, add_sub, graph, identity, request

from argosy_runtime.errors import ErrorKind
from argosy_runtime.messages import InferRequest, Tensor


def test_a_batch_is_one_run_and_everyone_gets_their_rows(
    loaded: Any, responder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = loaded(ADD_SUB, add_sub)
    runs = []
    run = onnxruntime.InferenceSession.run
    monkeypatch.setattr(onnxruntime.InferenceSession, "run", lambda *args: runs.append(1) or run(*args))
    first = request(A=[[1, 2]], B=[[3, 4]])
    second = request(A=[[5, 6], [7, 8]], B=[[1, 1], [2, 2]])
    second.requested_outputs = ("DIFF",)
    times = instance.execute([first, second], responder)
    assert runs == [1]
    assert times.compute_infer_ns > 0
    outputs = {output.name: output.array.tolist() for output in responder.only(0).outputs}
    assert outputs == {"SUM": [[4, 6]], "DIFF": [[-2, -2]]}
    (diff,) = responder.only(1).outputs
    assert (diff.name, diff.datatype, diff.array.tolist()) == ("DIFF", "FP32", [[4, 5], [5, 6]])


def test_requests_of_other_shapes_run_apart(loaded: Any, responder: Any) -> None:
    loaded(ADD_SUB, add_sub).execute(
        [request(A=[[1]], B=[[1]]), request(A=[[1, 2]], B=[[1, 2]]), request(A=[[3]], B=[[4]])], responder
    )
    assert [responder.only(index).outputs[0].array.tolist() for index in range(3)] == [[[2]], [[2, 4]], [[7]]]


def test_a_run_that_fails_fails_only_its_own_requests(loaded: Any, responder: Any) -> None:
    loaded(ADD_SUB, add_sub).execute([request(A=[[1, 2]], B=[[1, 2, 3]]), request(A=[[1]], B=[[1]])], responder)
    error = responder.only(0).error
    assert error.kind is ErrorKind.INTERNAL
    assert error.message.startswith("onnx runtime error ")
    assert responder.only(1).outputs[0].array.tolist() == [[2]]


def test_more_rows_than_allowed(loaded: Any, responder: Any) -> None:
    rows = [[1]] * 5
    loaded(ADD_SUB, add_sub).execute([request(A=rows, B=rows), request(A=rows, B=rows)], responder)
    assert responder.only(0).error.message == "batch size 10 for 'm', max allowed is 8"


def test_a_model_without_a_batch(loaded: Any, responder: Any) -> None:
    pbtxt = ADD_SUB.replace("max_batch_size: 8", "max_batch_size: 0").replace("[ -1 ]", "[ 3 ]")
    loaded(pbtxt, lambda path: add_sub(path, [3])).execute(
        [request(A=[1, 2, 3], B=[1, 1, 1]), request(A=[0, 0, 0], B=[1, 1, 1])], responder
    )
    assert responder.only(0).outputs[0].array.tolist() == [2, 3, 4]
    assert responder.only(1).outputs[1].array.tolist() == [-1, -1, -1]


def test_strings(loaded: Any, responder: Any) -> None:
    pbtxt = 'name: "m" max_batch_size: 2 ' + IO % ("A", "TYPE_STRING", "[ -1 ]")
    instance = loaded(
        pbtxt + OUT % ("OUT", "TYPE_STRING", "[ -1 ]"),
        lambda path: identity(path, TensorProto.STRING, ["n", None]),
    )
    texts = np.array([["é".encode(), b"a\x00b"]], np.object_)
    broken = np.array([[b"\xff", b""]], np.object_)
    requests = [InferRequest("m", {"A": Tensor("A", "BYTES", array)}) for array in (texts, broken)]
    instance.execute(requests[:1], responder)
    (output,) = responder.only(0).outputs
    assert (output.datatype, output.array.tolist()) == ("BYTES", texts.tolist())
    responder.sent.clear()
    instance.execute(requests[1:], responder)
    assert "input 'A': ONNX strings must be UTF-8" in responder.only(0).error.message


def test_bfloat16(loaded: Any, responder: Any) -> None:
    pbtxt = 'name: "m" max_batch_size: 2 ' + IO % ("A", "TYPE_BF16", "[ 3 ]")
    instance = loaded(
        pbtxt + OUT % ("OUT", "TYPE_BF16", "[ 3 ]"),
        lambda path: identity(path, TensorProto.BFLOAT16, ["n", 3]),
    )
    values = np.array([[1, -2, 0.5]]).astype(ml_dtypes.bfloat16)
    instance.execute([InferRequest("m", {"A": Tensor("A", "BF16", values)})], responder)
    (output,) = responder.only().outputs
    assert (output.datatype, output.array.dtype) == ("BF16", ml_dtypes.bfloat16)
    assert output.array.tolist() == values.tolist()


def test_a_reshape_was_applied_before_and_is_undone_after(loaded: Any, responder: Any) -> None:
    reshaped = 'input { name: "A" data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ] } } '
    reshaped += 'output { name: "OUT" data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ] } } '
    instance = loaded('name: "m" max_batch_size: 4 ' + reshaped, lambda path: identity(path, TensorProto.FLOAT, ["n"]))
    instance.execute([request(A=[1, 2]), request(A=[3])], responder)
    assert responder.only(0).outputs[0].array.tolist() == [1, 2]
    assert responder.only(1).outputs[0].array.tolist() == [3]


def test_a_true_scalar(loaded: Any, responder: Any) -> None:
    pbtxt = 'name: "m" ' + IO % ("A", "TYPE_FP32", "[ 1 ]") + OUT % ("OUT", "TYPE_FP32", "[ 1 ]")
    loaded(pbtxt, lambda path: identity(path, TensorProto.FLOAT, [])).execute([request(A=[5])], responder)
    assert responder.only().outputs[0].array.tolist() == [5]


def test_an_optional_input_keeps_its_initializer(loaded: Any, responder: Any) -> None:
    pbtxt = 'name: "m" ' + IO % ("A", "TYPE_FP32", "[ 2 ]") + OUT % ("SUM", "TYPE_FP32", "[ 2 ]")
    pbtxt += 'input { name: "B" data_type: TYPE_FP32 dims: [ 2 ] optional: true }'
    tensor = (TensorProto.FLOAT, [2])
    instance = loaded(
        pbtxt,
        lambda path: graph(
            path,
            [("Add", ["A", "B"], ["SUM"])],
            {"A": tensor, "B": tensor},
            {"SUM": tensor},
            {"B": np.array([10, 20], np.float32)},
        ),
    )
    instance.execute([request(A=[1, 2]), request(A=[1, 2], B=[1, 1])], responder)
    assert responder.only(0).outputs[0].array.tolist() == [11, 22]
    assert responder.only(1).outputs[0].array.tolist() == [2, 3]


def test_implicit_state_is_always_computed(loaded: Any, responder: Any) -> None:
    state = 'sequence_batching { state { input_name: "B" output_name: "DIFF" data_type: TYPE_FP32 dims: [ -1 ] } }'
    pbtxt = 'name: "m" max_batch_size: 4 ' + IO % ("A", "TYPE_FP32", "[ -1 ]")
    pbtxt += OUT % ("SUM", "TYPE_FP32", "[ -1 ]") + state
    sum_only = request(A=[[5]], B=[[2]])
    sum_only.requested_outputs = ("SUM",)
    loaded(pbtxt, add_sub).execute([sum_only], responder)
    assert {output.name: output.array.tolist() for output in responder.only().outputs} == {
        "SUM": [[7]],
        "DIFF": [[3]],
    }
