"""Circles in a directed graph."""

from collections.abc import Hashable, Mapping
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def find_cycle(edges: Mapping[Node, tuple[Node, ...]]) -> tuple[Node, ...]:
    """Return the first circle met when following `edges` from each node in order, each node once; empty if none."""
    done: set[Node] = set()
    for start in edges:
        path: dict[Node, None] = {}
        stack = [(start, iter(edges[start]))] if start not in done else []
        path.update(dict.fromkeys(node for node, _ in stack))
        while stack:
            node, following = stack[-1]
            after = next((other for other in following if other not in done), None)
            if after is None:
                done.add(node)
                path.pop(node)
                stack.pop()
            elif after in path:
                nodes = list(path)
                return tuple(nodes[nodes.index(after) :])
            else:
                path[after] = None
                stack.append((after, iter(edges.get(after, ()))))
    return ()
