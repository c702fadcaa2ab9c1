"""Controls and implicit state for models that frameworks run."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.runtime.service.conftest import ask, infer

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")

STATEFUL = """
backend: "{backend}"
max_batch_size: 4
input [ {{ name: "X{first}" data_type: TYPE_FP32 dims: [ 1 ] }} ]
output [ {{ name: "Y{first}" data_type: TYPE_FP32 dims: [ 1 ] }} ]
instance_group [ {{ kind: KIND_CPU count: 1 }} ]
sequence_batching {{
  max_sequence_idle_microseconds: 60000000
  {strategy}
  control_input [
    {{ name: "START{third}" control [ {{ kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] }} ] }}
  ]
  state [ {{ input_name: "STATE{second}" output_name: "NEXT{second}" data_type: TYPE_FP32 dims: [ 1 ] }} ]
}}
"""
STRATEGIES = ["direct {}", "oldest { max_candidate_sequences: 4 }"]


def _config(backend: str, strategy: str) -> str:
    """Return a configuration; PyTorch's tensors are numbered."""
    numbers = ("__0", "__1", "__2") if backend == "pytorch" else ("", "", "")
    first, second, third = numbers
    return STATEFUL.format(backend=backend, strategy=strategy, first=first, second=second, third=third)


def _save_onnx(folder: Path) -> None:
    """Save Y = X + STATE, plus 10 at the start; NEXT is Y."""
    onnx = pytest.importorskip("onnx")
    helper, number = onnx.helper, onnx.TensorProto.FLOAT
    tensors = {name: helper.make_tensor_value_info(name, number, ["n", 1]) for name in ("X", "STATE", "START")}
    outputs = [helper.make_tensor_value_info(name, number, ["n", 1]) for name in ("Y", "NEXT")]
    ten = onnx.numpy_helper.from_array(np.array([[10]], np.float32), "TEN")
    nodes = [
        helper.make_node("Mul", ["START", "TEN"], ["MORE"]),
        helper.make_node("Add", ["X", "STATE"], ["SUM"]),
        helper.make_node("Add", ["SUM", "MORE"], ["Y"]),
        helper.make_node("Identity", ["Y"], ["NEXT"]),
    ]
    graph = helper.make_graph(nodes, "g", list(tensors.values()), outputs, [ten])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "model.onnx"
    )


def _save_torch(folder: Path) -> None:
    class Sum(torch.nn.Module):
        def forward(
            self, x: torch.Tensor, state: torch.Tensor, start: torch.Tensor
        ) -> tuple[torch.Tensor, torch.Tensor]:
            y = x + state + 10 * start
            return y, y.clone()

    torch.jit.script(Sum()).save(str(folder / "model.pt"))


SAVE = {"onnxruntime": _save_onnx, "pytorch": _save_torch}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("backend", SAVE)
async def test_a_framework_gets_controls_and_state(repository, serve, backend, strategy):
    folder = repository.write("m", {}, _config(backend, strategy)) / "1"
    folder.mkdir()
    SAVE[backend](folder)
    plane = await serve()
    await plane.load("m", None, {})
    name = "X__0" if backend == "pytorch" else "X"

    async def total(x: float, sequence: int, start: bool = False, end: bool = False) -> float:
        request = ask("m", x, sequence_id=sequence, sequence_start=start, sequence_end=end)
        request.inputs = {name: request.inputs["X"].renamed(name)}
        response = await infer(plane, request)
        assert len(response.outputs) == 1
        return float(response.outputs[0].array[0, 0])

    assert await total(1, 7, start=True) == 11
    assert await total(1, 8, start=True) == 11
    assert await total(2, 7) == 13
    assert await total(5, 8) == 16
    assert await total(3, 7, end=True) == 16
    assert await total(1, 7, start=True, end=True) == 11
    assert await total(1, 8, end=True) == 17
