"""Nodes and operators that options name, in a model whose graph was tidied since. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import onnx

from argosy_builder.contract import BuildError
from argosy_builder.options import invalid

NODES = ("nodes_to_quantize", "nodes_to_exclude")
TYPES = "op_types_to_quantize"
_JOINED = {"MatMul": ("Gemm",)}
"""What tidying makes of a MatMul with an Add behind it."""


def in_prepared(model: onnx.GraphProto, prepared: onnx.GraphProto, options: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the three options with the names that the tidied graph has. Raises BuildError: INVALID_OPTIONS, by path.

    A node that was joined with its neighbours is named after it, as `first/MatMulAddFusion`.
    """
    there = [node.name for node in prepared.node]
    names = {node.name for node in model.node} | set(there)
    selected = {option: [*_nodes(option, options[option] or (), names, there)] for option in NODES}
    return selected | {TYPES: _types(options[TYPES] or (), model, prepared)}


def _nodes(option: str, requested: Sequence[str], names: set[str], there: Sequence[str]) -> Iterator[str]:
    for name in requested:
        same = [node for node in there if node == name or node.startswith(f"{name}/")]
        if name not in names:
            raise _unknown(option, name, names)
        if not same:
            raise invalid(
                option,
                f"{name} was joined with its neighbours; set engine.options.skip_optimization: true to keep it apart",
            )
        yield from same
        yield from (f"{node}_MatMul" for node in same)  # what a Gemm becomes while it is quantized


def _types(requested: Sequence[str], model: onnx.GraphProto, prepared: onnx.GraphProto) -> list[str]:
    now = {node.op_type for node in prepared.node}
    types = now | {node.op_type for node in model.node}
    for name in requested:
        if name not in types:
            raise _unknown(TYPES, name, types)
    joined = [other for name in requested for other in _JOINED.get(name, ()) if other in now]
    return list(dict.fromkeys([*(name for name in requested if name in now), *joined]))


def _unknown(option: str, name: str, names: set[str]) -> BuildError:
    near = get_close_matches(name, names, 3) or sorted(names)[:5]
    return invalid(option, f"the model has no {name!r}; it has {', '.join(near)}, of {len(names)}")
