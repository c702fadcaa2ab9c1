"""Ragged batches of plans, on the stand-in of TensorRT."""

from typing import Any

from onnx import TensorProto
from tests.runtime.backends.plans import FLOAT, ask, backend, gpu, info, load, model, node, plan, refusal, rows, trt

__all__ = ["backend", "gpu", "load", "trt"]

CONFIG = """
name: "m" backend: "tensorrt" platform: "tensorrt_plan" max_batch_size: 8
input { name: "X" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }
output { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "ENDS" data_type: TYPE_INT32 dims: [ 1 ] reshape: { shape: [ ] } }
batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "N" data_type: TYPE_INT32 source_input: "X" }
batch_output { target_name: "Y" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "X" }
instance_group { name: "m" kind: KIND_GPU gpus: [ 0 ] }
"""
PROFILE = {"profiles": [{"X": [[1], [8], [64]], "N": [[1], [4], [8]]}]}


def ragged(*dims: int | None) -> Any:
    """Return a model in which `Y` is twice `X`, and `ENDS` is `N`."""
    return model(
        [node("Add", ["X", "X"], ["Y"]), node("Identity", ["N"], ["ENDS"])],
        [info("X", FLOAT, *dims), info("N", TensorProto.INT32, None)],
        [info("Y", FLOAT, *dims), info("ENDS", TensorProto.INT32, None)],
    )


def test_requests_of_different_shapes_share_a_run(load: Any, responder: Any) -> None:
    instance = load(plan(ragged(None), **PROFILE), text=CONFIG)
    requests = [ask(rows(values)) for values in ([1, 2, 3], [4], [5, 6])]
    for request in requests:
        request.requested_outputs = ("Y", "ENDS")
    instance.execute(requests, responder)
    outputs = [{output.name: output.array.tolist() for output in responder.only(index).outputs} for index in range(3)]
    assert outputs == [
        {"Y": [[2, 4, 6]], "ENDS": [3]},
        {"Y": [[8]], "ENDS": [4]},
        {"Y": [[10, 12]], "ENDS": [6]},
    ]


def test_an_engine_must_take_one_dimension(load: Any) -> None:
    profile = {"profiles": [{"X": [[1, 1], [8, 1], [64, 1]], "N": [[1], [4], [8]]}]}
    error = refusal(lambda: load(plan(ragged(None, None), **profile), text=CONFIG))
    assert error.message == (
        "model 'm', tensor 'X': for the model to support ragged input, the engine shape is: [-1,-1] while the model "
        "config shape is: [-1]"
    )


def test_a_batch_input_must_be_an_input_of_the_engine(load: Any) -> None:
    error = refusal(
        lambda: load(plan(ragged(None), **PROFILE), text=CONFIG.replace('target_name: "N"', 'target_name: "Z"'))
    )
    assert error.message == "input 'Z' not found for m_0"
