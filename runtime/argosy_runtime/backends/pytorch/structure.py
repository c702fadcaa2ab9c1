"""Nested arguments and results as flat lists of tensors with paths, such as ARGS[1][key] and RESULT[0]."""

from collections.abc import Iterable, Sequence
from typing import Any

from torch.utils import _pytree as pytree

from .naming import Leaf


def argument_leaves(spec: pytree.TreeSpec, names: Sequence[str] = ()) -> list[Leaf]:
    """Return the leaves of a call's (args, kwargs). `names` are forward's own, in order, where they are known."""
    tree = pytree.tree_unflatten(list(range(spec.num_leaves)), spec)
    flat: list[tuple[Any, Any]] = pytree.tree_flatten_with_path(tree)[0]
    leaves = []
    for index, (path, _) in enumerate(flat):
        root = "KWARGS" if path[0].idx else "ARGS"
        names_by_path = {root + suffix for suffix in _suffixes(path[1:], spec, index)}
        if index < len(names):
            names_by_path.add(names[index])
        leaves.append(Leaf(frozenset(names_by_path)))
    return leaves


def result_leaves(result: Any) -> tuple[list[Leaf], list[Any]]:
    """Return forward's result as a flat list: names by path, and by key or field for a dictionary or named tuple.

    A list of strings is one leaf.
    """
    flat, spec = pytree.tree_flatten_with_path(result, is_leaf=is_texts)
    leaves = []
    for index, (path, _) in enumerate(flat):
        names = {"RESULT" + suffix for suffix in _suffixes(path, spec, index)}
        if len(path) == 1 and not isinstance(path[0], pytree.SequenceKey):
            names.add(_part(path[0]))
        leaves.append(Leaf(frozenset(names)))
    return leaves, [value for _, value in flat]


def is_texts(value: Any) -> bool:
    """Return whether a value is TorchScript's list of strings."""
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)


def _suffixes(path: Sequence[Any], spec: pytree.TreeSpec, index: int) -> set[str]:
    """Return the end of leaf `index`'s path in brackets: fields by name and by position, as named tuples allow both."""
    parts = [_part(key) for key in path]
    suffixes = {_bracketed(parts)}
    if any(isinstance(key, pytree.GetAttrKey) for key in path):  # seldom, and each result comes through here
        positions = _positions(spec, index)[-len(path) :]
        named = zip(path, parts, positions, strict=True)
        suffixes.add(_bracketed(str(at) if isinstance(key, pytree.GetAttrKey) else part for key, part, at in named))
    return suffixes


def _bracketed(parts: Iterable[str]) -> str:
    return "".join(f"[{part}]" for part in parts)


def _part(key: Any) -> str:
    if isinstance(key, pytree.GetAttrKey):
        return key.name
    return str(key.key if isinstance(key, pytree.MappingKey) else key.idx)


def _positions(spec: pytree.TreeSpec, index: int) -> list[int]:
    """Return the position among its siblings, at each level down to leaf number `index`."""
    positions = []
    while not spec.is_leaf():
        position = 0
        while index >= spec.child(position).num_leaves:
            index -= spec.child(position).num_leaves
            position += 1
        positions.append(position)
        spec = spec.child(position)
    return positions
