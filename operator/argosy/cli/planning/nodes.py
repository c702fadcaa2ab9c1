"""Nodes from a file, as `kubectl get nodes -o yaml` writes them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from argosy.api.yamltext import YamlTextError, read_documents
from argosy.local.manifests.reading import unreadable
from argosy.planning.facts import Node
from argosy.planning.nodes.parse import BadNodeError, node_of


class NodesError(Exception):
    """The file has no valid nodes; `problems` has every reason."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


def read_nodes(path: Path) -> tuple[Node, ...]:
    """Return the nodes in a YAML or JSON file: Nodes, a NodeList or a List. Raises NodesError."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise NodesError([f"{path}: {unreadable(error)}"]) from error
    return parse_nodes(text, str(path))


def parse_nodes(text: str, source: str) -> tuple[Node, ...]:
    """Return the nodes in a text; `source` is its name in messages. Raises NodesError."""
    nodes: dict[str, Node] = {}
    problems: list[str] = []
    try:
        for label, body in (item for document in read_documents(text) for item in _bodies(document.value)):
            try:
                node = node_of(body)
                if node.name in nodes:
                    raise BadNodeError(f"there are two nodes named {node.name}; keep one")
                nodes[node.name] = node
            except BadNodeError as error:
                problems.append(f"{source}: {label}: {error}")
    except YamlTextError as error:
        problems.append(f"{source}: {error}")
    if not nodes and not problems:
        problems.append(f"{source}: holds no Node; write nodes to a file with: kubectl get nodes -o yaml > nodes.yaml")
    if problems:
        raise NodesError(problems)
    return tuple(nodes.values())


def _bodies(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every Node with a label for messages. Other kinds are skipped."""
    if not isinstance(value, Mapping):
        return
    items = value.get("items")
    if isinstance(items, list):
        for item in items:
            yield from _bodies(item)
    elif value.get("kind") == "Node":
        metadata = value.get("metadata")
        name = metadata.get("name", "") if isinstance(metadata, Mapping) else ""
        yield f"Node {name}".rstrip(), value
