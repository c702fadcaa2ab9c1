"""The GPUs of a node that does not report them, as they were last noted with the servers that run there."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from argosy.planning.facts import Gpu, Node
from argosy.planning.nodes.slices import compute_of, is_slice


def with_last_reported(nodes: Iterable[Node], noted: Mapping[str, Node]) -> tuple[Node, ...]:
    """Return the nodes. A node that reports no GPU gets those recorded in its servers' ConfigMaps."""
    return tuple(_with_gpus(node, noted[node.name]) if _lacks(node, noted) else node for node in nodes)


def hardware_text(node: Node) -> str:
    """Return the GPUs of a node as JSON: bytes of each, indexes if there are slices, holders, NVLink, product and
    compute capability.
    """
    gpus = [gpu for gpu in node.gpus if not gpu.is_cpu]
    return json.dumps(
        {
            "memory": [gpu.memory for gpu in gpus],
            **({"indexes": [gpu.index for gpu in gpus]} if any(is_slice(gpu.index) for gpu in gpus) else {}),
            "withheld": {str(gpu.index): gpu.withheld_by for gpu in gpus if gpu.withheld_by},
            "nvlink": [sorted(joined) for joined in node.nvlink],
            "product": node.product,
            "computeCapability": node.compute_capability,
        },
        sort_keys=True,
    )


def parse_hardware(name: str, text: str) -> Node | None:
    """Return the node of this name, as a text of `hardware_text` has it. None where it is no such text: people edit
    ConfigMaps.
    """
    try:
        read: dict[str, Any] = json.loads(text)
        withheld = {int(index): str(holder) for index, holder in read["withheld"].items()}
        product = str(read["product"])
        gpus = tuple(
            Gpu(index, int(memory), withheld_by=withheld.get(index, ""), compute=compute_of(index, product))
            for index, memory in zip(read.get("indexes") or range(len(read["memory"])), read["memory"], strict=True)
        )
        nvlink = tuple(frozenset(map(int, joined)) for joined in read["nvlink"])
        return Node(name, gpus, product, str(read["computeCapability"]), nvlink)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _lacks(node: Node, noted: Mapping[str, Node]) -> bool:
    return node.name in noted and all(gpu.is_cpu for gpu in node.gpus)


def _with_gpus(node: Node, noted: Node) -> Node:
    return replace(
        node,
        gpus=noted.gpus,
        product=noted.product,
        compute_capability=noted.compute_capability,
        nvlink=noted.nvlink,
        schedulable=False,
    )
