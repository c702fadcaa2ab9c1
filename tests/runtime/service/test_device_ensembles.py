"""Tensors stay on the device between the steps of an ensemble; the device is this machine's own memory."""

import numpy as np
import pytest
import torch
from tests.runtime.backends.fake_device import FakeStream, copies, fake_device
from tests.runtime.service.conftest import Repository, Serve, infer

from argosy_runtime.backends import onnxruntime as onnx_backend
from argosy_runtime.backends.pytorch import transfers
from argosy_runtime.messages import InferRequest, Tensor

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.:DeprecationWarning")

MODEL = """
name: "{name}" backend: "{backend}" max_batch_size: 8 dynamic_batching {{ }}
input [ {{ name: "{given}" data_type: TYPE_FP32 dims: {dims} {reshape} }} ]
output [ {{ name: "{made}" data_type: TYPE_FP32 dims: {dims} {reshape} }} ]
"""
STEP = """step {{ model_name: "{model}" model_version: -1
  input_map {{ key: "{given}" value: "{source}" }} output_map {{ key: "{made}" value: "{target}" }} }} """
ENSEMBLE = """
name: "{name}" platform: "ensemble" max_batch_size: 8
input [ {{ name: "IN" data_type: TYPE_FP32 dims: [ 4 ] }} ]
output [ {{ name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] }} ]
ensemble_scheduling {{ {steps} }}
"""
ADDS_TWO = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        found = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", array + 2)]) for array in found]
"""


class Twice(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def torch_file(path: str) -> bytes:
    torch.jit.save(torch.jit.script(Twice()), path)  # type: ignore[no-untyped-call]
    with open(path, "rb") as file:
        return file.read()


def onnx_file() -> bytes:
    """Squares; its dims are [2, 2], which the configuration reshapes from and to [4]."""
    from onnx import TensorProto, helper

    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 2, 2]) for name in ("A", "B")]
    made = helper.make_graph([helper.make_node("Mul", ["A", "A"], ["B"])], "g", infos[:1], infos[1:])
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def chain(name: str, *models: str) -> str:
    names = {"square": ("A", "B")}
    tensors = ["IN", *(f"t{place}" for place in range(len(models) - 1)), "OUT"]
    steps = []
    for model, source, target in zip(models, tensors, tensors[1:], strict=False):
        given, made = names.get(model, ("x", "y"))
        steps.append(STEP.format(model=model, given=given, made=made, source=source, target=target))
    return ENSEMBLE.format(name=name, steps=" ".join(steps))


@pytest.fixture
def models(repository: Repository, tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfers, "HOSTS", [])
    monkeypatch.setattr(onnx_backend, "device_of", lambda spec: fake_device(FakeStream()))
    reshape = "reshape { shape: [ 2, 2 ] }"
    twice = {"backend": "pytorch", "given": "x", "made": "y", "dims": "[ 4 ]", "reshape": ""}
    square = {"backend": "onnxruntime", "given": "A", "made": "B", "dims": "[ 4 ]", "reshape": reshape}
    repository.write("twice", {"1/model.pt": torch_file(f"{tmp_path}/twice.pt")}, MODEL.format(name="twice", **twice))
    repository.write("square", {"1/model.onnx": onnx_file()}, MODEL.format(name="square", **square))
    repository.write("plus", {"1/model.py": ADDS_TWO}, MODEL.format(name="plus", **{**twice, "backend": "python"}))


def ask(name: str, *values: float) -> InferRequest:
    return InferRequest(name, {"IN": Tensor("IN", "FP32", np.array([values], np.float32))})


@pytest.mark.usefixtures("models")
async def test_nothing_comes_to_the_host_between_steps_on_devices(repository: Repository, serve: Serve) -> None:
    repository.write("e", {"1/keep": ""}, chain("e", "twice", "square", "twice"))
    plane = await serve()
    for name in ("twice", "square", "e"):
        await plane.load(name, None, {})
    with copies() as counted:
        response = await infer(plane, ask("e", 1, 2, 3, 4))
    assert response.outputs[0].array.tolist() == [[8, 32, 72, 128]]
    assert (counted.to_device, counted.to_host) == (1, 1), "the client's request, and the answer to it"


@pytest.mark.usefixtures("models")
async def test_a_step_in_a_process_gets_its_tensors_from_the_host(repository: Repository, serve: Serve) -> None:
    repository.write("e", {"1/keep": ""}, chain("e", "twice", "plus", "twice"))
    plane = await serve()
    for name in ("twice", "plus", "e"):
        await plane.load(name, None, {})
    with copies() as counted:
        response = await infer(plane, ask("e", 1, 2, 3, 4))
    assert response.outputs[0].array.tolist() == [[8, 12, 16, 20]]
    assert (counted.to_device, counted.to_host) == (2, 2)


@pytest.mark.usefixtures("models")
async def test_a_client_of_a_model_is_answered_from_the_host(serve: Serve) -> None:
    plane = await serve()
    await plane.load("twice", None, {})
    request = InferRequest("twice", {"x": Tensor("x", "FP32", np.ones((1, 4), np.float32))})
    response = await infer(plane, request)
    assert response.outputs[0].device is None
