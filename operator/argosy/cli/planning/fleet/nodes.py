"""Nodes from a file, as `kubectl get nodes -o yaml` writes them, with the ResourceSlices that are there, too."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from argosy.api.yamltext import YamlTextError, read_documents
from argosy.local.manifests.reading import unreadable
from argosy.planning.facts import Node
from argosy.planning.nodes.dra.documents import RESOURCE_SLICE, PublishedSlice, slice_of
from argosy.planning.nodes.dra.partitions import offered
from argosy.planning.nodes.dra.pools import node_devices, with_devices
from argosy.planning.nodes.parse import BadNodeError, node_of, state_of

_TAKES_NOTHING: Final = "takes nothing new"


class NodesError(Exception):
    """The file has no valid nodes; `problems` has every reason."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class ReadNodes:
    """The nodes of a file. `warnings`: of nodes that take nothing new, and of documents that count for nothing, with
    the reason.
    """

    nodes: tuple[Node, ...]
    warnings: tuple[str, ...] = ()


def read_nodes(path: Path) -> ReadNodes:
    """Return the nodes in a YAML or JSON file: Nodes, a NodeList or a List. Raises NodesError."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise NodesError([f"{path}: {unreadable(error)}"]) from error
    return parse_nodes(text, str(path))


def parse_nodes(text: str, source: str) -> ReadNodes:
    """Return the nodes in a text, with the devices that its ResourceSlices publish; `source` is its name in messages.

    As in a cluster, a node that cannot be read takes nothing new, and the others are planned with. Raises NodesError
    where no node can be read.
    """
    nodes: dict[str, Node] = {}
    slices: list[PublishedSlice] = []
    warnings: list[str] = []
    try:
        for label, body in (item for document in read_documents(text) for item in _bodies(document.value)):
            try:
                _read(body, nodes, slices)
            except BadNodeError as error:
                warnings.append(f"{source}: {label}: {error}")
    except YamlTextError as error:
        raise NodesError([f"{source}: {error}"]) from error
    every = with_devices(nodes.values(), node_devices(slices))
    warnings += [f"{source}: Node {node.name}: {_TAKES_NOTHING}: {node.fault}" for node in every if node.fault]
    if all(node.stale for node in nodes.values()):
        none = f"{source}: holds no Node; write nodes to a file with: kubectl get nodes -o yaml > nodes.yaml"
        raise NodesError(warnings or [none])
    return ReadNodes(offered(every, ()), tuple(warnings))


def faults_of(nodes: Iterable[Node]) -> tuple[str, ...]:
    """Return a line for each node of a cluster that takes nothing new because it cannot be read or is broken."""
    return tuple(f"Node {node.name}: {_TAKES_NOTHING}: {node.fault}" for node in nodes if node.fault)


def _read(body: Mapping[str, Any], nodes: dict[str, Node], slices: list[PublishedSlice]) -> None:
    """Add a Node, or a ResourceSlice of GPUs, to those before it. Raises BadNodeError."""
    if body.get("kind") == RESOURCE_SLICE:
        try:
            published = slice_of(body)
        except (AttributeError, TypeError, ValueError) as error:
            raise BadNodeError(f"is not as resource.k8s.io/v1 has it ({error}); write it with kubectl") from error
        slices += [published] if published is not None else []
        return
    node = _node(body)
    if node.name in nodes:
        raise BadNodeError(f"there are two nodes named {node.name}, and the first counts; keep one")
    nodes[node.name] = node


def _node(body: Mapping[str, Any]) -> Node:
    """Return a node, without devices and with the reason where these cannot be read. Raises BadNodeError."""
    try:
        return node_of(body)
    except BadNodeError as error:
        return replace(state_of(body), fault=str(error))


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
