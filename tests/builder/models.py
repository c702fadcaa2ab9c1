"""Small models for builds that run for real, and data for them."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FEATURES, HIDDEN, CLASSES = 32, 64, 8


def perceptron(path: Path, *, opset: int = 17, seed: int = 7) -> Path:
    """Write MatMul, Add, Relu, MatMul of [batch, 32] to [batch, 8]."""
    random = np.random.default_rng(seed)
    weights = {
        "w1": random.normal(size=(FEATURES, HIDDEN)).astype(np.float32) / 6,
        "b1": random.normal(size=HIDDEN).astype(np.float32) / 6,
        "w2": random.normal(size=(HIDDEN, CLASSES)).astype(np.float32) / 8,
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["h0"], "first"),
        helper.make_node("Add", ["h0", "b1"], ["h1"], "bias"),
        helper.make_node("Relu", ["h1"], ["h2"], "relu"),
        helper.make_node("MatMul", ["h2", "w2"], ["y"], "second"),
    ]
    return _saved(path, nodes, weights, ("batch", FEATURES), ("batch", CLASSES), opset)


def convolution(path: Path) -> Path:
    """Write Conv, Relu, GlobalAveragePool, Flatten of [batch, 3, 16, 16] to [batch, 8]."""
    weights = {"w": np.random.default_rng(7).normal(size=(CLASSES, 3, 3, 3)).astype(np.float32) / 4}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("GlobalAveragePool", ["r"], ["p"], "pool"),
        helper.make_node("Flatten", ["p"], ["y"], "flat"),
    ]
    return _saved(path, nodes, weights, ("batch", 3, 16, 16), ("batch", CLASSES), 17)


def _saved(
    path: Path,
    nodes: list[onnx.NodeProto],
    weights: dict[str, np.ndarray],
    inputs: tuple[str | int, ...],
    outputs: tuple[str | int, ...],
    opset: int,
) -> Path:
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, inputs)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, outputs)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.save_model(model, path)
    return path


def samples(path: Path, shape: tuple[int, ...] = (FEATURES,), count: int = 24, seed: int = 3) -> Path:
    """Write an .npz with `x`; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, x=np.random.default_rng(seed).normal(size=(count, *shape)).astype(np.float32))
    return path
