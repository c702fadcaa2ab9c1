"""The pools of ResourceSlices become devices of nodes: the newest generation of each, where all of it is there."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from argosy.planning.facts import Gpu, Node
from argosy.planning.nodes.dra.devices import (
    FULL,
    Published,
    capability_of,
    counter_key,
    gpus_of_node,
    natural,
    product_of,
)
from argosy.planning.nodes.dra.documents import Allocation, PublishedSlice, TaintRule
from argosy.planning.nodes.parse import PARTITIONS, BadNodeError, nvlink_of

_CORDONED = "node.kubernetes.io/unschedulable"
_TWICE = (
    "a device plugin and a DRA driver both offer its GPUs, and neither knows what the other one has given away; turn "
    "one of them off there"
)


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """The devices that DRA drivers publish of one node. `order`: the indexes of whole GPUs, as their names count them;
    `fault`: why nothing new may have them, where no pool of them can be used; of several pools one that cannot be used
    has its fault with its devices. They were made from `slices`, `rules` and the pools' `faults`.
    """

    gpus: tuple[Gpu, ...] = ()
    order: tuple[int, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    product: str = ""
    compute_capability: str = ""
    fault: str = ""
    slices: tuple[PublishedSlice, ...] = ()
    rules: tuple[TaintRule, ...] = ()
    faults: tuple[str, ...] = ()


def node_devices(
    slices: Iterable[PublishedSlice],
    rules: Iterable[TaintRule] = (),
    before: Mapping[str, NodeDevices] | None = None,
) -> dict[str, NodeDevices]:
    """Return the published devices of each node. What did not change is reused of the nodes `before`."""
    pools: dict[tuple[str, str], list[PublishedSlice]] = {}
    for one in slices:
        pools.setdefault((one.driver, one.pool), []).append(one)
    devices: dict[str, list[Published]] = {}
    counters: dict[str, dict[str, int]] = {}
    faults: dict[str, list[str]] = {}
    for key in sorted(pools):
        newest, fault = _newest(pools[key])
        published = [Published(one, device, fault) for one in newest for device in one.devices]
        shared = {counter_key(one, name): amount for one in newest for name, amount in one.counters.items()}
        for device in published:
            devices.setdefault(device.node, []).append(device)
        for node in {*(device.node for device in published), *(one.node for one in pools[key])} - {""}:
            counters.setdefault(node, {}).update(shared)
            faults.setdefault(node, []).append(fault)
    former, ruled = before or {}, tuple(rules)
    return {
        node: _of_node(tuple(devices.get(node, ())), counters[node], tuple(faults[node]), ruled, former.get(node))
        for node in sorted(faults)
    }


def with_holders(devices: Mapping[str, NodeDevices], holders: Mapping[Allocation, str]) -> dict[str, NodeDevices]:
    """Return the devices of each node with the ResourceClaims of others that have them, by their names."""
    pools = {(device.driver, device.pool) for device in holders}
    return {
        node: replace(of_node, gpus=tuple(_held(gpu, holders) for gpu in of_node.gpus))
        if any((one.driver, one.pool) in pools for one in of_node.slices)
        else of_node
        for node, of_node in devices.items()
    }


def _newest(pool: Sequence[PublishedSlice]) -> tuple[list[PublishedSlice], str]:
    """Return the slices of a pool's newest generation, and why they cannot be used; empty where they can."""
    generation = max(one.generation for one in pool)
    newest = sorted((one for one in pool if one.generation == generation), key=lambda one: one.name)
    count = max(one.count for one in newest)
    if len(newest) != count:
        return newest, (
            f"pool {newest[0].pool} of {newest[0].driver} has {len(newest)} of {count} ResourceSlices of generation "
            f"{generation}; wait for the driver to publish them, or see its log"
        )
    return newest, next((one.fault for one in newest if one.fault), "")


def _of_node(
    devices: tuple[Published, ...],
    counters: Mapping[str, int],
    faults: tuple[str, ...],
    rules: tuple[TaintRule, ...],
    before: NodeDevices | None,
) -> NodeDevices:
    slices = tuple({id(one.slice): one.slice for one in devices}.values())
    if before is not None and (before.rules, before.faults) == (rules, faults) and _same(before.slices, slices):
        return replace(before, counters=counters)
    ordered = sorted(devices, key=lambda one: (bool(one.fault), one.kind != FULL, natural(one.device.name)))
    first = ordered[0] if ordered else None
    product = product_of(first) if first is not None else ""
    gpus = gpus_of_node(devices, product, rules)
    by_name = sorted((_name(gpu), gpu.index) for gpu in gpus if gpu.device is not None and not gpu.device.profile)
    return NodeDevices(
        order=tuple(index for _, index in by_name),
        counters=counters,
        product=product,
        compute_capability=capability_of(first) if first is not None else "",
        fault=faults[0] if all(faults) else "",
        gpus=gpus,
        slices=slices,
        rules=rules,
        faults=faults,
    )


def _same(before: Sequence[PublishedSlice], now: Sequence[PublishedSlice]) -> bool:
    return len(before) == len(now) and all(one is other for one, other in zip(before, now, strict=True))


def _name(gpu: Gpu) -> tuple[tuple[int, str], ...]:
    return natural(gpu.device.name) if gpu.device is not None else ()


def _held(gpu: Gpu, holders: Mapping[Allocation, str]) -> Gpu:
    """Return the GPU with the ResourceClaim that has it."""
    device = gpu.device
    holder = holders.get(Allocation(device.driver, device.pool, device.name)) if device is not None else None
    return gpu if holder is None else replace(gpu, withheld_by=holder)


def with_devices(nodes: Iterable[Node], published: Mapping[str, NodeDevices]) -> tuple[Node, ...]:
    """Return the nodes with their published devices, of which a GPU may have several that exclude each other
    (`partitions.py`).
    """
    return tuple(_with_devices(node, published[node.name]) if node.name in published else node for node in nodes)


def _with_devices(node: Node, devices: NodeDevices) -> Node:
    if not devices.gpus and not devices.fault:
        return node
    if node.plugged:
        return replace(node, schedulable=False, fault=node.fault or _TWICE)
    nvlink, fault = _nvlink(node, devices)
    fault = node.fault or devices.fault or fault or _unknown_profile(node, devices)
    cordoned = any(taint.get("key") == _CORDONED for taint in node.taints)
    return replace(
        node,
        gpus=devices.gpus,
        product=devices.product,
        compute_capability=devices.compute_capability,
        nvlink=nvlink,
        counters=devices.counters,
        schedulable=not (cordoned or node.lost or fault),
        stale=node.stale or any(devices.faults),
        fault=fault,
    )


def _nvlink(node: Node, devices: NodeDevices) -> tuple[tuple[frozenset[int], ...], str]:
    """Return the GPUs that NVLink joins, and why that cannot be read; empty where it can."""
    try:
        groups = nvlink_of(node.settings, devices.product, len(devices.order))
    except BadNodeError as error:
        return (), str(error)
    return tuple(frozenset(devices.order[at] for at in group) for group in groups), ""


def _unknown_profile(node: Node, devices: NodeDevices) -> str:
    """Return which profile the node's annotation names that no device has; empty where there is none."""
    profiles = {gpu.device.profile for gpu in devices.gpus if gpu.device is not None and gpu.device.profile}
    unknown = [profile for profile in profiles_of(node) if profile not in profiles]
    if not unknown:
        return ""
    have = f"they have {', '.join(sorted(profiles))}" if profiles else "they have none"
    return f"metadata.annotations[{PARTITIONS}]: no device of the node has the profile {unknown[0]!r}; {have}"


def profiles_of(node: Node) -> tuple[str, ...]:
    """Return the profiles that a node's GPUs are to be divided into, the preferred first; nothing for whole GPUs."""
    return tuple(part.strip() for part in node.settings.get(PARTITIONS, "").split(",") if part.strip())
