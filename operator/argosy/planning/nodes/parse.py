"""A Kubernetes Node becomes facts: GPUs by the labels of NVIDIA's GPU feature discovery."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from argosy.api.values.times import parse_time
from argosy.planning.facts import Gpu, Node
from argosy.planning.nodes.holders import MIG
from argosy.planning.nodes.slices import GPU_RESOURCE, MIG_RESOURCES, compute_of, first_index
from argosy_common.quantity import parse_bytes
from argosy_common.wording import shortened

NVLINK = "argosy.dev/nvlink"
"""An annotation: `all`, `none`, or the groups of joined GPUs by index, as `0,1;2,3`."""
PARTITIONS = "argosy.dev/gpu-partitions"
"""An annotation: the profiles that GPUs are divided into which a DRA driver can divide, as `3g.40gb,1g.10gb`."""
SETTINGS = (NVLINK, PARTITIONS)
_GPU = GPU_RESOURCE
_SINGLE = "-MIG-"
"""In a product's name before the profile of its slices, under the device plugin's single strategy."""
_HARDWARE_READY = "AcceleratedHardwareReady"
"""A condition of EKS' node monitoring agent, by which Karpenter repairs nodes: False where a GPU is broken."""
_WORDS = 200
"""Characters of such a condition's message."""
_JOINED_PRODUCTS = ("SXM", "NVL", "HBM3", "H200", "B200", "B300")
_MIB = 1 << 20
MOST_GPUS = 1024
"""GPUs, or slices of a kind, that a node may have: many times what any has, and few enough to be planned with."""
MOST_MIB = 1 << 24
"""MiB that a GPU may have: 16 TiB. A label with more would put every model there."""
_MOST_CAPABILITY = 99


class BadNodeError(Exception):
    """A node cannot be used; the message names the field and the way out."""


def node_of(body: Mapping[str, Any]) -> Node:
    """Return a Node's devices and state. A node without GPUs is one CPU device with its memory. Raises BadNodeError."""
    node, status = state_of(body), _map(body, "status")
    slices, unlabelled, unusable = _mixed_slices(node.labels, status)
    ailing = _ailing(status)
    offer = _offer(node.labels, status, has_slices=bool(slices), unlabelled=unlabelled)
    product = node.labels.get(f"{_GPU}.product", "")
    return replace(
        node,
        gpus=(*(_gpus(node.labels, offer) if offer.count else _unusable(unlabelled, unusable)), *slices)
        or _cpu_slot(status),
        product=product,
        compute_capability=_capability(node.labels),
        nvlink=nvlink_of(node.settings, product, offer.count),
        schedulable=offer.now and not ailing and not _map(body, "spec").get("unschedulable"),
        stale=False,
        lost=bool(ailing),
        fault=ailing,
        plugged=_is_plugged(status),
    )


def state_of(body: Mapping[str, Any]) -> Node:
    """Return a Node's state without its devices, for a Node whose devices cannot be parsed. Raises BadNodeError if it
    has no name, or if its labels are not a map.
    """
    metadata, spec = _map(body, "metadata"), _map(body, "spec")
    name, notes = metadata.get("name"), _map(metadata, "annotations")
    if not isinstance(name, str) or not name:
        raise BadNodeError("metadata.name: is required")
    readiness = _readiness(_map(body, "status"))
    return Node(
        name=name,
        gpus=(),
        labels={str(key): str(value) for key, value in _map(metadata, "labels").items()},
        taints=tuple(
            {key: str(value) for key, value in taint.items()}
            for taint in spec.get("taints") or []
            if isinstance(taint, Mapping)
        ),
        ready=all(condition.get("status") == "True" for condition in readiness),
        schedulable=False,
        unready_since=_since(readiness),
        stale=True,
        boot_id=str(_map(_map(body, "status"), "nodeInfo").get("bootID") or ""),
        settings={key: str(notes[key]) for key in SETTINGS if notes.get(key) is not None},
    )


def _map(body: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = body.get(key) or {}
    if not isinstance(value, Mapping):
        raise BadNodeError(f"{key}: expected a map; found {value!r}")
    return value


@dataclass(frozen=True, slots=True)
class _Offer:
    """GPUs of a node: how many, and whether they can be had `now`. The last ones, `sliced`, are had in slices only,
    which are called `slices`.
    """

    count: int
    now: bool = True
    sliced: int = 0
    slices: str = ""


def _offer(labels: Mapping[str, str], status: Mapping[str, Any], *, has_slices: bool, unlabelled: str) -> _Offer:
    """Return what the device plugin offers, or the physical GPUs where it offers shares of them.

    A plugin that restarts offers none for a while; what runs keeps its GPUs, which the capacity and the label still
    count. Of GPUs that MIG divides it goes on offering slices, under names of their own; `unlabelled` are those of
    which no label tells the memory.
    """
    label = f"metadata.labels[{_GPU}.count]"
    physical = _integer(labels.get(f"{_GPU}.count", "0"), label, MOST_GPUS)
    capacity, allocatable = (_map(status, kind).get(_GPU) for kind in ("capacity", "allocatable"))
    if allocatable is None and capacity is None and not has_slices and not unlabelled:
        return _Offer(physical)
    there = _integer("0" if capacity is None else capacity, f"status.capacity[{_GPU}]", MOST_GPUS)
    offered = there if allocatable is None else _integer(allocatable, f"status.allocatable[{_GPU}]", MOST_GPUS)
    if unlabelled:
        return _Offer(max(physical, offered), sliced=max(0, physical - offered), slices=unlabelled)
    if has_slices:
        return _Offer(offered)
    shared = labels.get(f"{_GPU}.sharing-strategy", "none") != "none" and physical > 0
    if offered == 0:
        count = physical if shared else max(there, physical)
        return _Offer(count, now=count == 0)
    return _Offer(physical if shared else offered)


def _is_plugged(status: Mapping[str, Any]) -> bool:
    """Return whether a device plugin offers GPUs or slices, if none that can be had now."""
    offered = {str(name): str(count) for name, count in _map(status, "capacity").items()}
    return any(count != "0" for name, count in offered.items() if name == _GPU or name.startswith(MIG_RESOURCES))


def _mixed_slices(labels: Mapping[str, str], status: Mapping[str, Any]) -> tuple[tuple[Gpu, ...], str, int]:
    """Return the slices that a node offers under names of their own, and of those that cannot be used the names with
    the reason, another profile or no label for their memory, and how many there are.
    """
    capacity, allocatable = _map(status, "capacity"), _map(status, "allocatable")
    slices, unlabelled, unusable = list[Gpu](), list[str](), 0
    for name in sorted(str(name) for name in capacity if str(name).startswith(MIG_RESOURCES)):
        count = _integer(allocatable.get(name, capacity[name]), f"status.allocatable[{name}]", MOST_GPUS)
        first, memory = first_index(name.removeprefix(MIG_RESOURCES), single=False), f"{name}.memory"
        if first is None or memory not in labels:
            why = "a profile that is not supported" if first is None else f"without the label {memory}"
            unlabelled += [f"{name}, {why}"] * bool(count)
            unusable += count
        else:
            slices += _devices(labels, memory, range(first, first + count))
    return tuple(slices), "; ".join(unlabelled), unusable


def _devices(labels: Mapping[str, str], label: str, indexes: Iterable[int]) -> list[Gpu]:
    """Return devices, of which a label tells the memory in MiB."""
    memory = _integer(labels[label], f"metadata.labels[{label}]", MOST_MIB)
    if memory == 0:
        raise BadNodeError(f"metadata.labels[{label}]: must be more than 0 MiB")
    product = labels.get(f"{_GPU}.product", "")
    return [Gpu(index, memory * _MIB, compute=compute_of(index, product)) for index in indexes]


def _gpus(labels: Mapping[str, str], offer: _Offer) -> tuple[Gpu, ...]:
    label = f"{_GPU}.memory"
    if label not in labels:
        raise BadNodeError(
            f"metadata.labels[{label}]: is required for a node with {offer.count} GPUs (MiB of each); install "
            "NVIDIA's GPU feature discovery, or add the label"
        )
    first = _first_index(labels.get(f"{_GPU}.product", ""))
    unsliced = offer.count - offer.sliced
    return tuple(
        replace(gpu, withheld_by="" if at < unsliced else f"{MIG} ({offer.slices})")
        for at, gpu in enumerate(_devices(labels, label, range(first, first + offer.count)))
    )


def _unusable(unlabelled: str, count: int) -> tuple[Gpu, ...]:
    """Return slices that cannot be used, as withheld devices of no known memory, on a node that names no GPUs."""
    return tuple(Gpu(index, 0, withheld_by=f"{MIG} ({unlabelled})") for index in range(min(count, MOST_GPUS)))


def _first_index(product: str) -> int:
    """Return the first index of a node's GPUs, which are slices where the product's name has their profile."""
    _, single, profile = product.partition(_SINGLE)
    if not single:
        return 0
    first = first_index(profile, single=True)
    if first is None:
        raise BadNodeError(
            f"metadata.labels[{_GPU}.product]: {product!r} has slices that are not supported, or not the same on all "
            "GPUs; give all GPUs of the node one profile, or choose the device plugin's mixed strategy"
        )
    return first


def _cpu_slot(status: Mapping[str, Any]) -> tuple[Gpu, ...]:
    memory = _map(status, "allocatable").get("memory", _map(status, "capacity").get("memory"))
    if memory is None:
        return ()
    try:
        return (Gpu(index=0, memory=parse_bytes(memory), is_cpu=True),)
    except ValueError as error:
        raise BadNodeError(f"status.capacity.memory: {error}") from error


def _capability(labels: Mapping[str, str]) -> str:
    major, minor = f"{_GPU}.compute.major", f"{_GPU}.compute.minor"
    if not labels.get(major):
        return ""
    parts = (labels[major], major), (labels.get(minor, "0"), minor)
    return ".".join(str(_integer(text, f"metadata.labels[{label}]", _MOST_CAPABILITY)) for text, label in parts)


def nvlink_of(settings: Mapping[str, str], product: str, count: int) -> tuple[frozenset[int], ...]:
    """Return the groups of a node's first GPUs, `count` of them, that NVLink joins: by annotation, or else by product.
    Raises BadNodeError.
    """
    every, annotation = (frozenset(range(count)),) if count > 1 else (), settings.get(NVLINK)
    if annotation is None:
        joined = _SINGLE not in product and any(mark in product.upper() for mark in _JOINED_PRODUCTS)
        return every if joined else ()
    if annotation in ("all", "none") or not count:
        return every if annotation == "all" else ()
    groups = [group.split(",") for group in annotation.split(";") if group.strip()]
    indexes = [[_index(part, annotation, count) for part in group] for group in groups]
    named = [index for group in indexes for index in group]
    if len(named) != len(set(named)):
        raise BadNodeError(f"metadata.annotations[{NVLINK}]: {annotation!r} names a GPU twice; name each once")
    return tuple(frozenset(group) for group in indexes if len(group) > 1)


def _index(text: str, annotation: str, count: int) -> int:
    if not text.strip().isdecimal() or int(text) >= count:
        raise BadNodeError(
            f"metadata.annotations[{NVLINK}]: {annotation!r} must be all, none, or groups of GPU indexes "
            f"below {count} such as 0,1;2,3"
        )
    return int(text)


def _readiness(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [c for c in status.get("conditions") or [] if isinstance(c, Mapping) and c.get("type") == "Ready"]


def _ailing(status: Mapping[str, Any]) -> str:
    """Return the condition that says that GPUs of a node are broken, in words; empty without one."""
    for condition in status.get("conditions") or []:
        reported = condition if isinstance(condition, Mapping) else {}
        if reported.get("type") == _HARDWARE_READY and reported.get("status") == "False":
            why = shortened(str(reported.get("message") or reported.get("reason") or "no reason is given"), _WORDS)
            return f"condition {_HARDWARE_READY} is False ({why}); repair or replace the node"
    return ""


def _since(readiness: list[Mapping[str, Any]]) -> datetime | None:
    """Return when the node stopped being ready; None if it is, or if that is not reported."""
    for condition in readiness:
        if condition.get("status") != "True":
            return parse_time(str(condition.get("lastTransitionTime")))
    return None


def _integer(value: Any, path: str, most: int) -> int:
    text = str(value)
    if isinstance(value, bool) or not (text.isascii() and text.isdecimal()):
        raise BadNodeError(f"{path}: expected a whole number; found {shortened(repr(value), _WORDS)}")
    if len(text.lstrip("0")) > len(str(most)) or int(text) > most:
        raise BadNodeError(f"{path}: must be {most} at most; found {shortened(text, _WORDS)}")
    return int(text)
