"""Tensors without elements whose other dimensions are endless: refused alone, on every way into and out of a model."""

import asyncio

import numpy as np
import pytest
from tests.runtime.service.conftest import ask, infer, value

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.messages import InferRequest, Tensor
from argosy_runtime.tensors import raw_tensor

THREAD = 'parameters { key: "ISOLATION" value { string_value: "thread" } }'
CONFIG = """
backend: "python"
max_batch_size: 8
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1, -1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ -1, -1 ] } ]
dynamic_batching { max_queue_delay_microseconds: 20000 preferred_batch_size: 2 }
"""
ECHO = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        outputs = [pb_utils.Tensor("Y", request.inputs()[0].as_numpy()) for request in requests]
        return [pb_utils.InferenceResponse([output]) for output in outputs]
"""
# Asks `echo` with an endless tensor, answers with one, or does neither.
ENDLESS = """
import numpy as np
import triton_python_backend_utils as pb_utils

ENDLESS = np.empty((1, 0, 2**41), np.float32)

class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request, request.inputs()[0].as_numpy()) for request in requests]

    def answer(self, request, x):
        if x[0, 0] == 1:
            tensor = pb_utils.Tensor("X", ENDLESS)
            answer = pb_utils.InferenceRequest(model_name="echo", inputs=[tensor], requested_output_names=["Y"]).exec()
            return pb_utils.InferenceResponse(error=answer.error())
        return pb_utils.InferenceResponse([pb_utils.Tensor("Y", ENDLESS if x[0, 0] == 2 else x)])
"""
REFUSAL = "causes total element count to exceed maximum size of 1099511627776"
both = pytest.mark.parametrize("isolation", ["", THREAD], ids=["process", "thread"])


def of_shape(shape: tuple[int, ...], count: int = 0) -> InferRequest:
    """Return a request whose input has `count` elements, whatever its shape says."""
    return InferRequest("echo", {"X": raw_tensor("X", "FP32", shape, b"\0" * 4 * count)})


@both
async def test_an_endless_empty_tensor_is_refused_and_its_batch_is_answered(repository, serve, isolation):
    repository.write("echo", {"1/model.py": ECHO}, CONFIG + isolation)
    plane = await serve()
    await plane.load("echo", None, {})
    right = InferRequest("echo", {"X": Tensor("X", "FP32", np.ones((1, 1, 3), np.float32))})
    empty = infer(plane, of_shape((1, 0, 2**20)))
    answers = await asyncio.gather(
        infer(plane, of_shape((1, 0, 2**41))), infer(plane, right), empty, return_exceptions=True
    )
    assert isinstance(answers[0], ServingError)
    assert answers[0].kind is ErrorKind.INVALID_ARG
    assert REFUSAL in answers[0].message
    assert answers[1].outputs[0].array.tolist() == [[[1.0, 1.0, 1.0]]]
    assert answers[2].outputs[0].shape == (1, 0, 2**20)


@both
async def test_a_model_that_sends_an_endless_tensor_is_refused_and_lives_on(repository, serve, isolation):
    repository.write("echo", {"1/model.py": ECHO}, CONFIG + isolation)
    config = CONFIG.replace("[ -1, -1 ]", "[ 1 ]", 1) + isolation
    repository.write("m", {"1/model.py": ENDLESS}, config)
    plane = await serve()
    await plane.load("echo", None, {})
    await plane.load("m", None, {})
    answers = await asyncio.gather(infer(plane, ask("m", 1.0)), value_of(plane, 3.0), return_exceptions=True)
    assert REFUSAL in str(answers[0])
    assert answers[1] == 3
    if not isolation:  # on a thread its answer goes nowhere that could not take it
        answers = await asyncio.gather(infer(plane, ask("m", 2.0)), value_of(plane, 3.0), return_exceptions=True)
        assert REFUSAL in str(answers[0])
        assert answers[1] == 3
    assert await value_of(plane, 4.0) == 4


async def value_of(plane, x: float) -> float:
    """Return `m`'s answer to x."""
    return await value(plane, "m", x)
