"""A model that calls another (business logic scripting): what it reads where that cannot be."""

import numpy as np
import pytest
from tests.runtime.service.conftest import infer

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.messages import InferRequest, Tensor

CALLER = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self.call(request) for request in requests]

    def call(self, request):
        name = pb_utils.get_input_tensor_by_name(request, "MODEL").as_numpy()[0].decode()
        x = pb_utils.get_input_tensor_by_name(request, "X")
        answer = pb_utils.InferenceRequest(model_name=name, inputs=[x], requested_output_names=["Y"]).exec()
        if answer.has_error():
            return pb_utils.InferenceResponse(error=answer.error())
        return pb_utils.InferenceResponse([pb_utils.Tensor("Y", answer.output_tensors()[0].as_numpy())])
"""
CONFIG = """
backend: "python"
input [ { name: "MODEL" data_type: TYPE_STRING dims: [ 1 ] }, { name: "X" data_type: TYPE_FP32 dims: [ 1, 1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1, 1 ] } ]
"""
STREAM = """
backend: "python"
input [ { name: "OTHER" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]
model_transaction_policy { decoupled: true }
"""


def through(model: str) -> InferRequest:
    """Asks the caller to call `model`."""
    name = np.array([model.encode()], np.object_)
    x = np.ones((1, 1), np.float32)
    return InferRequest("caller", {"MODEL": Tensor("MODEL", "BYTES", name), "X": Tensor("X", "FP32", x)})


@pytest.mark.parametrize(
    ("model", "kind", "message"),
    [
        (
            "nope",
            ErrorKind.UNAVAILABLE,
            (
                "Model nope - Error when running inference: Failed for execute the inference request. Model 'nope' "
                "is not ready."
            ),
        ),
        (
            "stream",
            ErrorKind.UNSUPPORTED,
            (
                "Model stream - Error when running inference: Model stream is using the decoupled. The current BLS "
                "request call doesn't support models using the decoupled transaction policy. Please use "
                "'decoupled=True' argument to the 'exec' or 'async_exec' calls for decoupled models.'"
            ),
        ),
        (
            "caller",
            ErrorKind.INVALID_ARG,
            (
                "Model caller - Error when running inference: [request id: <id_unknown>] expected 2 inputs but got 1 "
                "inputs for model 'caller'. Got input(s) ['X'], but missing required input(s) ['MODEL']. Please "
                "provide all required input(s)."
            ),
        ),
        ("says no", ErrorKind.NOT_FOUND, "its own words"),
    ],
)
async def test_what_the_caller_reads(repository, serve, model, kind, message):
    repository.write("caller", {"1/model.py": CALLER}, CONFIG)
    repository.write("stream", {"1/model.py": CALLER}, STREAM)
    error = "answers.append(pb_utils.InferenceResponse(error=pb_utils.TritonError('its own words', 2))); continue"
    repository.add("says no", execute=error)
    plane = await serve()
    for name in ("caller", "stream", "says no"):
        await plane.load(name, None, {})
    with pytest.raises(ServingError) as caught:
        await infer(plane, through(model))
    assert (caught.value.kind, caught.value.message) == (kind, message)


async def test_the_answer_comes_back(repository, serve):
    repository.write("caller", {"1/model.py": CALLER}, CONFIG)
    repository.add("double", execute="y = 2 * x")
    plane = await serve()
    for name in ("caller", "double"):
        await plane.load(name, None, {})
    assert (await infer(plane, through("double"))).outputs[0].array.tolist() == [[2.0]]
