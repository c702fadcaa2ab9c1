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
    known = {node.name for node in model.node} | set(there)
    found = {option: [*_nodes(option, options[option] or (), known, there)] for option in NODES}
    return found | {TYPES: _types(options[TYPES] or (), model, prepared)}


def _nodes(option: str, asked: Sequence[str], known: set[str], there: Sequence[str]) -> Iterator[str]:
    for name in asked:
        same = [each for each in there if each == name or each.startswith(f"{name}/")]
        if name not in known:
            raise _unknown(option, name, known)
        if not same:
            raise invalid(
                option,
                f"{name} was joined with its neighbours; set engine.options.skip_optimization: true to keep it apart",
            )
        yield from same
        yield from (f"{each}_MatMul" for each in same)  # what a Gemm becomes while it is quantized


def _types(asked: Sequence[str], model: onnx.GraphProto, prepared: onnx.GraphProto) -> list[str]:
    now = {node.op_type for node in prepared.node}
    known = now | {node.op_type for node in model.node}
    for name in asked:
        if name not in known:
            raise _unknown(TYPES, name, known)
    joined = [other for name in asked for other in _JOINED.get(name, ()) if other in now]
    return list(dict.fromkeys([*(name for name in asked if name in now), *joined]))


def _unknown(option: str, name: str, known: set[str]) -> BuildError:
    near = get_close_matches(name, known, 3) or sorted(known)[:5]
    return invalid(option, f"the model has no {name!r}; it has {', '.join(near)}, of {len(known)}")
