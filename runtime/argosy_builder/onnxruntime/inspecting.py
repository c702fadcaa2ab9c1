"""Inspection of an ONNX file: its tensors, the types of its weights, its operators."""

from collections import Counter
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import onnx

from .files import loaded

INTEGER_OPS = frozenset(
    {
        "QLinearMatMul", "QLinearConv", "QGemm", "MatMulInteger", "ConvInteger", "MatMulIntegerToFloat",
        "DynamicQuantizeMatMul", "QAttention", "DynamicQuantizeLSTM", "QEmbedLayerNormalization",
        "QOrderedMatMul", "QOrderedAttention",
    }
)  # fmt: skip
"""Operators that multiply bytes."""
PRODUCTS = frozenset({"MatMul", "Gemm", "Conv", "ConvTranspose", "FusedMatMul", "FusedGemm", "FusedConv", "Attention"})
"""Operators that multiply by weights."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """`weights` counts elements of weights by the type's name, `operators` nodes; `integer` those that multiply bytes,
    be it as an operator of integers or between DequantizeLinear nodes; `products` those that could.

    `inputs` and `outputs` have each tensor's type and dimensions, -1 where any goes.
    """

    weights: dict[str, int]
    operators: dict[str, int]
    integer: int
    products: int
    inputs: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    outputs: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    quantized: frozenset[str] = frozenset()

    def share(self, *types: str) -> float:
        """Return the share of the weights' elements that are of these types."""
        return sum(self.weights.get(kind, 0) for kind in types) / max(sum(self.weights.values()), 1)


def inspected(path: Path) -> Inspection:
    """Inspect a file. Raises BuildError: MODEL_INVALID."""
    model = loaded(path, weights=False)
    graph = model.graph
    weights: Counter[str] = Counter()
    for tensor in graph.initializer:
        weights[onnx.TensorProto.DataType.Name(tensor.data_type).lower()] += prod(tensor.dims)
    constants = {tensor.name for tensor in graph.initializer}
    quantized = _quantized(graph)
    return Inspection(
        dict(weights),
        dict(Counter(node.op_type for node in graph.node)),
        len(quantized),
        sum(node.op_type in PRODUCTS and any(name in constants for name in node.input) for node in graph.node),
        {value.name: _type(value) for value in graph.input if value.name not in constants},
        {value.name: _type(value) for value in graph.output},
        frozenset(quantized),
    )


def _quantized(graph: onnx.GraphProto) -> list[str]:
    """Return the names of the nodes that multiply bytes."""
    made_by = {name: node for node in graph.node for name in node.output}

    def dequantized(name: str) -> bool:
        node = made_by.get(name)
        return node is not None and node.op_type == "DequantizeLinear"

    return [
        node.name
        for node in graph.node
        if node.op_type in INTEGER_OPS
        or (node.op_type in PRODUCTS and len(node.input) > 1 and all(map(dequantized, node.input[:2])))
    ]


def _type(value: onnx.ValueInfoProto) -> tuple[str, tuple[int, ...]]:
    tensor = value.type.tensor_type
    dims = tuple(dim.dim_value if dim.HasField("dim_value") else -1 for dim in tensor.shape.dim)
    return onnx.TensorProto.DataType.Name(tensor.elem_type).lower(), dims
