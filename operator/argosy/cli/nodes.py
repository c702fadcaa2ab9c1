"""Nodes from a file, as `kubectl get nodes -o yaml` writes them: GPUs by the labels of NVIDIA's GPU feature
discovery.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from argosy.api.quantity import parse_bytes
from argosy.api.yamltext import YamlTextError, read_documents
from argosy.fleet.facts import Gpu, Node

NVLINK = "argosy.dev/nvlink"
"""An annotation: `all`, `none`, or the groups of joined GPUs by index, as `0,1;2,3`."""
_GPU = "nvidia.com/gpu"
_JOINED_PRODUCTS = ("SXM", "NVL", "HBM3", "H200", "B200", "B300")
_MIB = 1 << 20


class NodesError(Exception):
    """The file holds no usable nodes; `problems` has every reason."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


class _BadNodeError(Exception):
    """One node cannot be used."""


def read_nodes(path: Path) -> tuple[Node, ...]:
    """The nodes in a YAML or JSON file: Nodes, a NodeList or a List. Raises NodesError."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise NodesError([f"{path}: cannot be read: {error}"]) from error
    return parse_nodes(text, str(path))


def parse_nodes(text: str, source: str) -> tuple[Node, ...]:
    """The nodes in a text; `source` is its name in messages. Raises NodesError."""
    nodes: dict[str, Node] = {}
    problems: list[str] = []
    try:
        for label, body in (found for document in read_documents(text) for found in _bodies(document.value)):
            try:
                node = node_of(body)
                if node.name in nodes:
                    raise _BadNodeError(f"there are two nodes named {node.name}; keep one")
                nodes[node.name] = node
            except _BadNodeError as error:
                problems.append(f"{source}: {label}: {error}")
    except YamlTextError as error:
        problems.append(f"{source}: {error}")
    if not nodes and not problems:
        problems.append(f"{source}: holds no Node; write one with: kubectl get nodes -o yaml > {source}")
    if problems:
        raise NodesError(problems)
    return tuple(nodes.values())


def node_of(body: Mapping[str, Any]) -> Node:
    """A Node's devices. A node without GPUs is one CPU slot with its memory."""
    metadata, status = _map(body, "metadata"), _map(body, "status")
    spec = _map(body, "spec")
    labels = {str(key): str(value) for key, value in _map(metadata, "labels").items()}
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise _BadNodeError("metadata.name: is required")
    count = _count(labels, status)
    product = labels.get(f"{_GPU}.product", "")
    return Node(
        name=name,
        gpus=_gpus(labels, count) if count else _cpu_slot(status),
        product=product,
        compute_capability=_capability(labels),
        nvlink=_nvlink(_map(metadata, "annotations").get(NVLINK), product, count),
        labels=labels,
        taints=tuple(
            {key: str(value) for key, value in taint.items()}
            for taint in spec.get("taints") or []
            if isinstance(taint, Mapping)
        ),
        ready=not spec.get("unschedulable") and _is_ready(status),
    )


def _bodies(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every Node with a name for messages; other kinds are passed over, as in a file with more in it."""
    if not isinstance(value, Mapping):
        return
    items = value.get("items")
    if isinstance(items, list):
        for item in items:
            yield from _bodies(item)
    elif value.get("kind") == "Node":
        yield f"Node {_map(value, 'metadata').get('name', '')}".rstrip(), value


def _map(body: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = body.get(key) or {}
    if not isinstance(value, Mapping):
        raise _BadNodeError(f"{key}: expected a map; found {value!r}")
    return value


def _count(labels: Mapping[str, str], status: Mapping[str, Any]) -> int:
    """GPUs of the node: what the device plugin offers, or the physical ones where it offers slices of them."""
    offered = _map(status, "allocatable").get(_GPU, _map(status, "capacity").get(_GPU))
    sliced = labels.get(f"{_GPU}.sharing-strategy", "none") != "none"
    found, path = (offered, f"status.capacity[{_GPU}]")
    if offered is None or (sliced and f"{_GPU}.count" in labels):
        found, path = labels.get(f"{_GPU}.count", "0"), f"metadata.labels[{_GPU}.count]"
    return _whole_number(found, path)


def _gpus(labels: Mapping[str, str], count: int) -> tuple[Gpu, ...]:
    label = f"{_GPU}.memory"
    if label not in labels:
        raise _BadNodeError(
            f"metadata.labels[{label}]: is required for a node with {count} GPUs (MiB of each); install "
            "NVIDIA's GPU feature discovery, or add the label"
        )
    memory = _whole_number(labels[label], f"metadata.labels[{label}]")
    if memory == 0:
        raise _BadNodeError(f"metadata.labels[{label}]: must be more than 0 MiB")
    return tuple(Gpu(index=index, memory=memory * _MIB) for index in range(count))


def _cpu_slot(status: Mapping[str, Any]) -> tuple[Gpu, ...]:
    memory = _map(status, "allocatable").get("memory", _map(status, "capacity").get("memory"))
    if memory is None:
        return ()
    try:
        return (Gpu(index=0, memory=parse_bytes(memory), is_cpu=True),)
    except ValueError as error:
        raise _BadNodeError(f"status.capacity.memory: {error}") from error


def _capability(labels: Mapping[str, str]) -> str:
    major = labels.get(f"{_GPU}.compute.major", "")
    return f"{major}.{labels.get(f'{_GPU}.compute.minor', '0')}" if major else ""


def _nvlink(annotation: Any, product: str, count: int) -> tuple[frozenset[int], ...]:
    every = (frozenset(range(count)),) if count > 1 else ()
    if annotation is None:
        return every if any(mark in product.upper() for mark in _JOINED_PRODUCTS) else ()
    if annotation in ("all", "none"):
        return every if annotation == "all" else ()
    groups = [group.split(",") for group in str(annotation).split(";") if group.strip()]
    indexes = [[_index(part, annotation, count) for part in group] for group in groups]
    named = [index for group in indexes for index in group]
    if len(named) != len(set(named)):
        raise _BadNodeError(f"metadata.annotations[{NVLINK}]: {annotation!r} names a GPU twice; name each once")
    return tuple(frozenset(group) for group in indexes if len(group) > 1)


def _index(text: str, annotation: Any, count: int) -> int:
    if not text.strip().isdecimal() or int(text) >= count:
        raise _BadNodeError(
            f"metadata.annotations[{NVLINK}]: {annotation!r} must be all, none, or groups of GPU indexes "
            f"below {count} such as 0,1;2,3"
        )
    return int(text)


def _is_ready(status: Mapping[str, Any]) -> bool:
    found = [c for c in status.get("conditions") or [] if isinstance(c, Mapping) and c.get("type") == "Ready"]
    return all(condition.get("status") == "True" for condition in found)


def _whole_number(value: Any, path: str) -> int:
    text = str(value)
    if isinstance(value, bool) or not text.isdecimal():
        raise _BadNodeError(f"{path}: expected a whole number; found {value!r}")
    return int(text)
