"""The two models: a perceptron as ONNX, an encoder as an exported program; and inputs for both."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from argosy_agent.contract.builds import DataSource, TensorSpec

WIDTH, LAYERS, CLASSES = 1024, 4, 16
TOKENS, HIDDEN, HEADS, BLOCKS = 64, 256, 4, 4
MOST = 16
SAMPLES = 64


@dataclass(frozen=True, slots=True)
class Subject:
    """A model to build from: `precision` is the engine's, `minimum` the cosine similarity that it must keep."""

    builder: str
    backend: str
    file: Path
    data: Path
    precision: str
    minimum: float
    calibrated: bool
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    options: dict[str, Any]

    @property
    def calibration(self) -> DataSource:
        """Its calibration data, if it takes any."""
        return DataSource(self.data.as_uri()) if self.calibrated else DataSource()


def perceptron(folder: Path) -> Subject:
    """Write five products of 1024 columns with Relu between them, to int8."""
    random = np.random.default_rng(1)
    nodes, weights, last = [], [], "x"
    for layer in range(LAYERS + 1):
        width = CLASSES if layer == LAYERS else WIDTH
        array = (random.normal(size=(WIDTH, width)) * np.sqrt(2 / WIDTH)).astype(np.float32)
        weights.append(numpy_helper.from_array(array, f"w{layer}"))
        nodes.append(helper.make_node("MatMul", [last, f"w{layer}"], [f"m{layer}"], f"product{layer}"))
        last = f"m{layer}"
        if layer < LAYERS:
            nodes.append(helper.make_node("Relu", [last], [f"r{layer}"], f"relu{layer}"))
            last = f"r{layer}"
    nodes[-1].output[0] = "y"
    graph = helper.make_graph(
        nodes,
        "perceptron",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("batch", WIDTH))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ("batch", CLASSES))],
        weights,
    )
    (folder / "model").mkdir(parents=True)
    file = folder / "model/model.onnx"
    onnx.save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)
    x, y = TensorSpec("x", "TYPE_FP32", (WIDTH,)), TensorSpec("y", "TYPE_FP32", (CLASSES,))
    data = _data(folder, (WIDTH,))
    return Subject("onnxruntime", "onnxruntime", file, data, "int8", 0.99, True, (x,), (y,), {})


def encoder(folder: Path) -> Subject:
    """Write four blocks of a transformer over 64 tokens of 256 numbers, to bf16."""
    torch.manual_seed(1)
    batch = {0: torch.export.Dim("batch", min=1, max=MOST)}
    program = torch.export.export(Encoder().eval(), (torch.zeros(2, TOKENS, HIDDEN),), dynamic_shapes=(batch,))
    (folder / "model").mkdir(parents=True)
    file = folder / "model/model.pt2"
    torch.export.save(program, file)
    x, y = TensorSpec("x", "TYPE_FP32", (TOKENS, HIDDEN)), TensorSpec("y", "TYPE_FP32", (CLASSES,))
    data = _data(folder, (TOKENS, HIDDEN))
    return Subject("aotinductor", "pytorch", file, data, "bf16", 0.99, False, (x,), (y,), {})


class Block(torch.nn.Module):
    """Attention and a feed-forward layer."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = torch.nn.Linear(HIDDEN, 3 * HIDDEN), torch.nn.Linear(HIDDEN, HIDDEN)
        self.before, self.between = torch.nn.LayerNorm(HIDDEN), torch.nn.LayerNorm(HIDDEN)
        self.up, self.down = torch.nn.Linear(HIDDEN, 4 * HIDDEN), torch.nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [batch, tokens, hidden] to the same shape."""
        batch, tokens, width = x.shape
        parts = self.qkv(self.before(x)).view(batch, tokens, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        attended = torch.nn.functional.scaled_dot_product_attention(*parts)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(torch.nn.functional.gelu(self.up(self.between(x))))


class Encoder(torch.nn.Module):
    """Blocks, a mean, and a score a class."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block() for _ in range(BLOCKS)])
        self.score = torch.nn.Linear(HIDDEN, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [batch, tokens, hidden] to [batch, classes]."""
        for block in self.blocks:
            x = block(x)
        scores: torch.Tensor = self.score(x.mean(1))
        return scores


def _data(folder: Path, shape: tuple[int, ...]) -> Path:
    target = folder / "data"
    target.mkdir()
    x = np.random.default_rng(2).normal(size=(SAMPLES, *shape)).astype(np.float32)
    np.savez(target / "data.npz", x=x)
    return target
