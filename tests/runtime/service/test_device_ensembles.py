"""Tensors stay on the device between the steps of an ensemble; the device is this machine's own memory."""

import numpy as np
import pytest
from tests.runtime.backends.fake_device import FakeStream, count_transfers, fake_device
from tests.runtime.service.conftest import Repository, Serve, infer
from tests.runtime.service.device_models import chain, write_models

from argosy_runtime.backends import onnxruntime as onnx_backend
from argosy_runtime.backends.pytorch import transfers
from argosy_runtime.messages import InferRequest, Tensor

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.:DeprecationWarning")


@pytest.fixture
def models(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfers, "HOSTS", [])
    monkeypatch.setattr(onnx_backend, "device_of", lambda spec: fake_device(FakeStream()))
    write_models(repository, "KIND_CPU")


def ask(name: str, *values: float) -> InferRequest:
    return InferRequest(name, {"IN": Tensor("IN", "FP32", np.array([values], np.float32))})


@pytest.mark.usefixtures("models")
async def test_nothing_comes_to_the_host_between_steps_on_devices(repository: Repository, serve: Serve) -> None:
    repository.write("e", {"1/keep": ""}, chain("e", "twice", "square", "twice"))
    plane = await serve()
    for name in ("twice", "square", "e"):
        await plane.load(name, None, {})
    with count_transfers() as counts:
        response = await infer(plane, ask("e", 1, 2, 3, 4))
    assert response.outputs[0].array.tolist() == [[8, 32, 72, 128]]
    assert (counts.to_device, counts.to_host) == (1, 1), "the client's request, and the answer to it"


@pytest.mark.usefixtures("models")
async def test_a_step_in_a_process_gets_its_tensors_from_the_host(repository: Repository, serve: Serve) -> None:
    repository.write("e", {"1/keep": ""}, chain("e", "twice", "plus", "twice"))
    plane = await serve()
    for name in ("twice", "plus", "e"):
        await plane.load(name, None, {})
    with count_transfers() as counts:
        response = await infer(plane, ask("e", 1, 2, 3, 4))
    assert response.outputs[0].array.tolist() == [[8, 12, 16, 20]]
    assert (counts.to_device, counts.to_host) == (2, 2)


@pytest.mark.usefixtures("models")
async def test_a_client_of_a_model_is_answered_from_the_host(serve: Serve) -> None:
    plane = await serve()
    await plane.load("twice", None, {})
    request = InferRequest("twice", {"x": Tensor("x", "FP32", np.ones((1, 4), np.float32))})
    response = await infer(plane, request)
    assert response.outputs[0].device is None
