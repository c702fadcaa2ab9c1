"""Models for ensembles whose tensors may stay on a device: `twice` (torch), `square` (ONNX), `plus` (Python)."""

import io

import torch
from onnx import TensorProto, helper
from tests.runtime.service.conftest import Repository

MODEL = """
name: "{name}" backend: "{backend}" max_batch_size: 8 dynamic_batching {{ }}
input [ {{ name: "{given}" data_type: TYPE_FP32 dims: {dims} {reshape} }} ]
output [ {{ name: "{made}" data_type: TYPE_FP32 dims: {dims} {reshape} }} ]
instance_group [ {{ kind: {kind} }} ]
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


def torch_file() -> bytes:
    """Return a model that doubles."""
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(Twice()), buffer)  # type: ignore[no-untyped-call]
    return buffer.getvalue()


def onnx_file() -> bytes:
    """Return a model that squares; its dims are [2, 2], which the configuration reshapes from and to [4]."""
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 2, 2]) for name in ("A", "B")]
    made = helper.make_graph([helper.make_node("Mul", ["A", "A"], ["B"])], "g", infos[:1], infos[1:])
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def chain(name: str, *models: str) -> str:
    names = {"square": ("A", "B")}
    tensors = ["IN", *(f"t{number}" for number in range(len(models) - 1)), "OUT"]
    steps = []
    for model, source, target in zip(models, tensors, tensors[1:], strict=False):
        inputs, made = names.get(model, ("x", "y"))
        steps.append(STEP.format(model=model, given=inputs, made=made, source=source, target=target))
    return ENSEMBLE.format(name=name, steps=" ".join(steps))


def write_models(repository: Repository, kind: str) -> None:
    """Write all three, with instances of that kind; `plus` on the host."""
    reshape = "reshape { shape: [ 2, 2 ] }"
    twice = {"backend": "pytorch", "given": "x", "made": "y", "dims": "[ 4 ]", "reshape": "", "kind": kind}
    square = {**twice, "backend": "onnxruntime", "given": "A", "made": "B", "reshape": reshape}
    plus = {**twice, "backend": "python", "kind": "KIND_CPU"}
    repository.write("twice", {"1/model.pt": torch_file()}, MODEL.format(name="twice", **twice))
    repository.write("square", {"1/model.onnx": onnx_file()}, MODEL.format(name="square", **square))
    repository.write("plus", {"1/model.py": ADDS_TWO}, MODEL.format(name="plus", **plus))
