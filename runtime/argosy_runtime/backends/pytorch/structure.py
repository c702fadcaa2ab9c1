"""Nested arguments and results as flat lists of tensors with paths, such as ARGS[1][key] and RESULT[0]."""

from collections.abc import Sequence
from typing import Any

from torch.utils import _pytree as pytree

from .naming import Leaf


def argument_leaves(spec: pytree.TreeSpec, names: Sequence[str] = ()) -> list[Leaf]:
    """The leaves of a call's (args, kwargs). `names` are forward's own, in order, where they are known."""
    tree = pytree.tree_unflatten(list(range(spec.num_leaves)), spec)
    flat: list[tuple[Any, Any]] = pytree.tree_flatten_with_path(tree)[0]
    leaves = []
    for place, (path, _) in enumerate(flat):
        root = "KWARGS" if path[0].idx else "ARGS"
        known = {root + _suffix(path[1:])}
        if place < len(names):
            known.add(names[place])
        leaves.append(Leaf(frozenset(known)))
    return leaves


def result_leaves(result: Any) -> tuple[list[Leaf], list[Any]]:
    """What forward returned, flat: names by path, and by key for the entries of a dictionary.

    Lists of text are one leaf.
    """
    flat, _ = pytree.tree_flatten_with_path(result, is_leaf=is_texts)
    leaves = []
    for path, _ in flat:
        names = {"RESULT" + _suffix(path)}
        if len(path) == 1 and isinstance(path[0], pytree.MappingKey):
            names.add(str(path[0].key))
        leaves.append(Leaf(frozenset(names)))
    return leaves, [value for _, value in flat]


def is_texts(value: Any) -> bool:
    """Whether this is how TorchScript holds strings: a list of str."""
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)


def _suffix(path: Sequence[Any]) -> str:
    return "".join(f"[{key.key if isinstance(key, pytree.MappingKey) else key.idx}]" for key in path)
