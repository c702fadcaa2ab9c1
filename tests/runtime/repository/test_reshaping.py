"""The way back of `reshape`, for every backend alike."""

import numpy as np
import pytest
from tritonclient.grpc import model_config_pb2 as mc

from argosy_runtime.errors import ErrorKind
from argosy_runtime.messages import InferResponse, Tensor
from argosy_runtime.repository.serving.reshaping import OutputShapes


def shapes(dims: list[int], own: list[int], max_batch_size: int) -> OutputShapes:
    config = mc.ModelConfig(name="m", max_batch_size=max_batch_size)
    config.output.add(name="PLAIN", dims=[-1])
    config.output.add(name="OUT", dims=dims)
    config.output[1].reshape.shape.extend(own)
    config.output[1].reshape.SetInParent()
    return OutputShapes(config)


def delivered(reshaping: OutputShapes, *shape: int) -> InferResponse:
    got: list[InferResponse] = []
    outputs = [Tensor("PLAIN", "FP32", np.zeros(7)), Tensor("OUT", "FP32", np.zeros(shape))]
    reshaping.before(got.append)(InferResponse("m", "1", outputs=outputs, final=False))
    (response,) = got
    assert not response.final
    return response


@pytest.mark.parametrize(
    ("dims", "own", "batch", "answered", "message"),
    [
        ([1], [], 4, (3,), (3, 1)),
        ([2, 3], [6], 0, (6,), (2, 3)),
        ([2, -1, 3], [-1, 6], 8, (5, 4, 6), (5, 2, 4, 3)),
        ([2, 3], [6], 0, (2, 3), (2, 3)),
    ],
    ids=["scalar", "flat", "variable", "declared already"],
)
def test_clients_see_the_declared_shape(dims, own, batch, answered, message):
    response = delivered(shapes(dims, own, batch), *answered)
    assert [tensor.shape for tensor in response.outputs] == [(7,), message]


def test_an_answer_that_does_not_fit_is_an_error():
    response = delivered(shapes([2, 3], [6], 1), 1, 5)
    assert not response.outputs
    assert response.error.kind is ErrorKind.INTERNAL
    assert response.error.message == (
        "model 'm', output 'OUT': the model returned shape [1,5], and its configuration says [-1,6]"
    )


def test_models_without_a_reshape_pay_nothing():
    deliver = [].append
    assert OutputShapes(mc.ModelConfig(name="m")).before(deliver) is deliver
