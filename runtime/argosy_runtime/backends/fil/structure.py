"""Whether the nodes of a model's trees are whole: Treelite follows the numbers of a file without a look at them."""

import numpy as np
import treelite

from argosy_runtime.messages import Array

_LEAF = -1


def check(model: treelite.Model) -> None:
    """Raise ValueError for a model whose trees would be read outside of their nodes or features, or without an end."""
    header = model.get_header_accessor()
    _check_numbers("class_id", header.get_field("class_id"), model.num_tree, int(header.get_field("num_class")[0]))
    _check_numbers("target_id", header.get_field("target_id"), model.num_tree, int(header.get_field("num_target")[0]))
    for index in range(model.num_tree):
        _check_tree(index, model.get_tree_accessor(index), model.num_feature)


def _check_numbers(field: str, numbers: Array, trees: int, limit: int) -> None:
    """Raise ValueError where the trees' classes or targets are not below a limit; -1 stands for all of them."""
    if len(numbers) != trees or np.any(np.less(numbers, -1) | np.greater_equal(numbers, limit)):
        raise ValueError(f"its {field} is not one number below {limit} for each of its {trees} trees")


def _check_tree(index: int, tree: treelite.model.TreeAccessor, features: int) -> None:
    left, right, split = (tree.get_field(name) for name in ("cleft", "cright", "split_index"))
    nodes = int(tree.get_field("num_nodes")[0])
    if nodes < 1 or not len(left) == len(right) == len(split) == nodes:
        raise ValueError(f"tree {index} has not the {nodes} nodes that it names")
    inner = left != _LEAF
    children = np.concatenate([left[inner], right[inner]])
    # With one parent for each node and none for the first, no way down comes back.
    if np.any((children < 1) | (children >= nodes)) or len(np.unique(children)) != len(children):
        raise ValueError(f"tree {index} has a node whose children are not nodes of their own")
    wrong = split[inner & ((split < 0) | (split >= features))]
    if len(wrong):
        raise ValueError(f"tree {index} splits on feature {wrong[0]}, and the model has {features} features")
