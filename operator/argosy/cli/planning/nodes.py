"""Nodes from a file, as `kubectl get nodes -o yaml` writes them, with the ResourceSlices that are there, too."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from argosy.api.yamltext import YamlTextError, read_documents
from argosy.local.manifests.reading import unreadable
from argosy.planning.facts import Node
from argosy.planning.nodes.dra.documents import RESOURCE_SLICE, PublishedSlice, slice_of
from argosy.planning.nodes.dra.partitions import offered
from argosy.planning.nodes.dra.pools import node_devices, with_devices
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
    """Return the nodes in a text, with the devices that its ResourceSlices publish; `source` is its name in messages.
    Raises NodesError.
    """
    nodes: dict[str, Node] = {}
    slices: list[PublishedSlice] = []
    problems: list[str] = []
    try:
        for label, body in (item for document in read_documents(text) for item in _bodies(document.value)):
            try:
                _read(body, nodes, slices)
            except BadNodeError as error:
                problems.append(f"{source}: {label}: {error}")
    except YamlTextError as error:
        problems.append(f"{source}: {error}")
    if not nodes and not problems:
        problems.append(f"{source}: holds no Node; write nodes to a file with: kubectl get nodes -o yaml > nodes.yaml")
    every = with_devices(nodes.values(), node_devices(slices))
    wrong = (node for node in every if node.fault != nodes[node.name].fault)
    problems += [f"{source}: Node {node.name}: {node.fault}" for node in wrong]
    if problems:
        raise NodesError(problems)
    return offered(every, ())


def _read(body: Mapping[str, Any], nodes: dict[str, Node], slices: list[PublishedSlice]) -> None:
    """Add a Node, or a ResourceSlice of GPUs, to those before it. Raises BadNodeError."""
    if body.get("kind") == RESOURCE_SLICE:
        try:
            published = slice_of(body)
        except (AttributeError, TypeError, ValueError) as error:
            raise BadNodeError(f"is not as resource.k8s.io/v1 has it ({error}); write it with kubectl") from error
        slices += [published] if published is not None else []
        return
    node = node_of(body)
    if node.name in nodes:
        raise BadNodeError(f"there are two nodes named {node.name}; keep one")
    nodes[node.name] = node


def _bodies(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every Node and every ResourceSlice with a label for messages. Other kinds are skipped."""
    if not isinstance(value, Mapping):
        return
    items = value.get("items")
    if isinstance(items, list):
        for item in items:
            yield from _bodies(item)
    elif value.get("kind") in ("Node", RESOURCE_SLICE):
        metadata = value.get("metadata")
        name = metadata.get("name", "") if isinstance(metadata, Mapping) else ""
        yield f"{value['kind']} {name}".rstrip(), value
