"""The devices of a node that does not report them, as they were last noted with the servers that run there."""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from argosy.planning.facts import DraDevice, Gpu, Node
from argosy.planning.nodes.dra.devices import device_class
from argosy.planning.nodes.slices import MOST_INDEXES, MOST_MEMORY, compute_of, dra_index, is_dra, is_slice

_GONE = (
    "servers have its GPUs by ResourceClaims, and no ResourceSlice has them now; wait for the node's DRA driver, or "
    "see its log"
)
_MOST_COMPUTE = 1000
"""Thousandths of a GPU's compute that a device may have."""


def with_last_reported(nodes: Iterable[Node], noted: Iterable[Node]) -> tuple[Node, ...]:
    """Return the nodes. A node that reports no GPU gets those recorded in its servers' ConfigMaps; one that lacks
    slices, or devices of DRA drivers, has these as former ones. What a node reports is never replaced by a record.
    """
    of_node: dict[str, list[Node]] = {}
    for one in noted:
        of_node.setdefault(one.name, []).append(one)
    return tuple(_with_noted(node, of_node[node.name]) if node.name in of_node else node for node in nodes)


def hardware_text(node: Node, of: Collection[int] = ()) -> str:
    """Return the GPUs of a node as JSON: bytes of each, indexes if there are slices, holders, NVLink, product and
    compute capability.

    Of the devices that DRA drivers publish, and of those that the node no longer reports, those are noted that the
    server has (`of`).
    """
    former = [gpu for gpu in node.former if gpu.index in of]
    gpus = [gpu for gpu in node.gpus if not gpu.is_cpu and (gpu.device is None or gpu.index in of)] + former
    parts = any(is_slice(gpu.index) or gpu.device is not None for gpu in gpus)
    published = {str(gpu.index): _device_note(gpu.device, gpu.compute) for gpu in gpus if gpu.device is not None}
    return json.dumps(
        {
            "memory": [gpu.memory for gpu in gpus],
            **({"indexes": [gpu.index for gpu in gpus]} if parts else {}),
            **({"devices": published} if published else {}),
            "withheld": {str(gpu.index): gpu.withheld_by for gpu in gpus if gpu.withheld_by},
            "nvlink": [sorted(joined) for joined in node.nvlink],
            "product": node.product,
            "computeCapability": node.compute_capability,
        },
        sort_keys=True,
    )


def _device_note(device: DraDevice, compute: int) -> dict[str, Any]:
    """Return what a ResourceClaim asks for by a device, and its share of compute. What it shares with others is no part
    of it: a device that is not published shares nothing.
    """
    return {
        "driver": device.driver,
        "pool": device.pool,
        "name": device.name,
        "deviceClass": device.device_class,
        "selector": device.selector,
        "profile": device.profile,
        "compute": compute,
    }


def parse_hardware(name: str, text: str) -> Node | None:
    """Return the node of this name, as a text of `hardware_text` has it. None where it is no such text: people edit
    ConfigMaps.
    """
    try:
        read: dict[str, Any] = json.loads(text)
        withheld = {int(index): str(holder) for index, holder in read["withheld"].items()}
        product, devices = str(read["product"]), read.get("devices", {})
        gpus = tuple(
            _gpu(index, memory, product, withheld.get(index, ""), devices.get(str(index)))
            for index, memory in zip(read.get("indexes") or range(len(read["memory"])), read["memory"], strict=True)
        )
        nvlink = tuple(frozenset(_natural(index, MOST_INDEXES) for index in joined) for joined in read["nvlink"])
        return Node(name, gpus, product, str(read["computeCapability"]), nvlink)
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError):
        return None


def _gpu(index: object, memory: object, product: str, withheld_by: str, note: dict[str, Any] | None) -> Gpu:
    """Return a GPU of a note. Raises ValueError where it cannot be one."""
    at, size = _natural(index, MOST_INDEXES), _natural(memory, MOST_MEMORY + 1)
    if is_dra(at) != (note is not None):
        raise ValueError(f"indexes: {at} is that of a device of a DRA driver, and devices lacks it, or the reverse")
    if note is None:
        return Gpu(at, size, withheld_by=withheld_by, compute=compute_of(at, product))
    return Gpu(at, size, compute=_natural(note["compute"], _MOST_COMPUTE + 1), device=_device(at, note))


def _device(index: int, note: dict[str, Any]) -> DraDevice:
    """Return the device of a note. Raises ValueError where its index is not that of what a ResourceClaim asks for: a
    note must not name another device than the one that its server has.
    """
    texts = {key: note[key] for key in ("driver", "pool", "name", "deviceClass", "selector", "profile")}
    of_class, selector = device_class(part=is_slice(index)), texts["selector"]
    if not all(isinstance(text, str) for text in texts.values()) or texts["deviceClass"] != of_class:
        raise ValueError(f"devices[{index}]: expected texts, and the class {of_class}")
    if dra_index(of_class, selector, part=is_slice(index)) != index:
        raise ValueError(f"devices[{index}]: is not the index of its class and selector")
    return DraDevice(texts["driver"], texts["pool"], texts["name"], of_class, selector, texts["profile"])


def _natural(value: object, limit: int) -> int:
    """Return a whole number from 0 on and below a limit. Raises ValueError for anything else."""
    if type(value) is int and 0 <= value < limit:
        return value
    raise ValueError(f"expected a whole number from 0 on and below {limit}")


def _with_noted(node: Node, noted: Sequence[Node]) -> Node:
    every = {gpu.index: gpu for one in noted for gpu in one.gpus}
    here = {gpu.index for gpu in node.gpus}
    former = tuple(
        gpu for index, gpu in sorted(every.items()) if index not in here and (is_slice(index) or is_dra(index))
    )
    last = {gpu.index: gpu for gpu in noted[-1].gpus} | {i: gpu for i, gpu in every.items() if is_dra(i)}
    if all(gpu.is_cpu for gpu in node.gpus):
        silent = _with_gpus(node, noted[-1], last.values())
        return replace(silent, fault=node.fault or _GONE) if any(map(is_dra, every)) else silent
    return replace(node, former=former) if former else node


def _with_gpus(node: Node, noted: Node, gpus: Iterable[Gpu]) -> Node:
    every = tuple(sorted(gpus, key=lambda gpu: gpu.index))
    return replace(
        node,
        gpus=every,
        product=noted.product,
        compute_capability=noted.compute_capability,
        nvlink=noted.nvlink,
        schedulable=False,
        stale=node.stale or any(gpu.device is not None for gpu in every),
    )
