"""Small graphs as real files, their configurations, and what they are asked."""

from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper
from tests.runtime.backends.requests import named

from argosy_runtime.messages import InferRequest

IO = 'input { name: "%s" data_type: %s dims: %s } '
OUT = 'output { name: "%s" data_type: %s dims: %s } '
ADD_SUB = (
    'name: "m" backend: "onnxruntime" max_batch_size: 8 '
    + IO % ("A", "TYPE_FP32", "[ -1 ]")
    + IO % ("B", "TYPE_FP32", "[ -1 ]")
    + OUT % ("SUM", "TYPE_FP32", "[ -1 ]")
    + OUT % ("DIFF", "TYPE_FP32", "[ -1 ]")
)
Shape = list[int | str | None]


def graph(
    path: Path,
    nodes: list[tuple[str, list[str], list[str]]],
    inputs: dict[str, tuple[int, Shape]],
    outputs: dict[str, tuple[int, Shape]],
    initializers: dict[str, Any] | None = None,
) -> None:
    """Save a model."""
    read, written = (
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in side.items()]
        for side in (inputs, outputs)
    )
    constants = [onnx.numpy_helper.from_array(value, name) for name, value in (initializers or {}).items()]
    made = helper.make_graph([helper.make_node(*node) for node in nodes], "g", read, written, constants)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(path))


def add_sub(path: Path, shape: Shape | None = None) -> None:
    tensor = (TensorProto.FLOAT, shape or ["batch", None])
    nodes = [("Add", ["A", "B"], ["SUM"]), ("Sub", ["A", "B"], ["DIFF"])]
    graph(path, nodes, {"A": tensor, "B": tensor}, {"SUM": tensor, "DIFF": tensor})


def identity(path: Path, kind: int, shape: Shape) -> None:
    graph(path, [("Identity", ["A"], ["OUT"])], {"A": (kind, shape)}, {"OUT": (kind, shape)})


def request(**arrays: Any) -> InferRequest:
    return named(arrays)
