"""A device that a DRA driver publishes becomes a GPU, or a partition of one, with what a ResourceClaim asks for.

A CEL expression of a ResourceClaim sees attributes and capacities of devices, and not their names. So a device is asked
for by its UUID, or, where it has none until it is made, by all of its attributes and the names of its capacities. What
these do not tell from another device of the node is withheld.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from argosy.planning.facts import DraDevice, Gpu
from argosy.planning.nodes.dra.documents import NVIDIA, PublishedDevice, PublishedSlice, TaintRule, Value
from argosy.planning.nodes.holders import RESOURCE_SLICE
from argosy.planning.nodes.slices import MOST_MEMORY, compute_share, dra_index, parts_of

FULL, PART = "gpu", "mig"
_CLASSES = {FULL: "gpu.nvidia.com", PART: "mig.nvidia.com"}


@dataclass(frozen=True, slots=True)
class Published:
    """A device with the slice that publishes it. `fault`: why its pool cannot be used; empty where it can."""

    slice: PublishedSlice
    device: PublishedDevice
    fault: str = ""

    @property
    def node(self) -> str:
        """The node where it is; empty where it is on several."""
        return self.device.node or ("" if self.device.on_several else self.slice.node)

    @property
    def kind(self) -> str:
        """`gpu`, `mig`, or another type of device."""
        return str(self.device.attributes.get(f"{NVIDIA}/type", ""))

    @property
    def key(self) -> tuple[str, str, str]:
        """Driver, pool and name, by which allocations and rules name it."""
        return self.slice.driver, self.slice.pool, self.device.name

    def attribute(self, name: str) -> str:
        """Return an attribute of the driver's own, as text; empty without one."""
        return str(self.device.attributes.get(f"{NVIDIA}/{name}", ""))


def device_class(*, part: bool) -> str:
    """Return the DeviceClass that a ResourceClaim asks for: of a whole GPU, or of a part of one."""
    return _CLASSES[PART if part else FULL]


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Sort key under which `gpu-2` comes before `gpu-10`."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name))


def product_of(device: Published) -> str:
    """Return a device's product as GPU feature discovery writes it."""
    return device.attribute("productName").replace(" ", "-")


def capability_of(device: Published) -> str:
    """Return the compute capability of a device, as `9.0`; empty where it is not published."""
    return ".".join(device.attribute("cudaComputeCapability").split(".")[:2])


def gpus_of_node(devices: Iterable[Published], product: str, rules: Sequence[TaintRule]) -> tuple[Gpu, ...]:
    """Return the GPUs and partitions among the devices of a node, by index. Of another `product` they are withheld."""
    usable = sorted((one for one in devices if one.kind in _CLASSES), key=_precedence)
    twins = _twins([one for one in usable if not one.fault])
    gpus: dict[int, Gpu] = {}
    for order, one in enumerate(usable):
        gpu = _gpu(one, order, product, rules)
        if one.key in twins:
            gpu = _withheld(gpu, f"no attribute tells it from {twins[one.key]}")
        while gpu.index in gpus:
            gpu = replace(gpu, index=gpu.index + 1)
        gpus[gpu.index] = gpu
    return tuple(gpus[index] for index in sorted(gpus))


def _precedence(one: Published) -> tuple[bool, bool, tuple[tuple[int, str], ...]]:
    """Sort key: devices that can be used come first, and those of the node's own pool, which has its name."""
    return bool(one.fault), one.slice.pool != one.node, natural(one.device.name)


def _gpu(one: Published, order: int, product: str, rules: Sequence[TaintRule]) -> Gpu:
    profile = one.attribute("profile") if one.kind == PART else ""
    parts = parts_of(profile) if one.kind == PART else None
    selector, of_class = _expression(one.device), _CLASSES[one.kind]
    taints = [*one.device.taints, *(rule.taint for rule in rules if rule.concerns(*one.key))]
    taint = max(taints, key=lambda taint: (taint.evicts, taint.text), default=None)
    device = DraDevice(
        driver=one.slice.driver,
        pool=one.slice.pool,
        name=one.device.name,
        device_class=of_class,
        selector=selector,
        profile=profile,
        order=order,
        consumes=tuple(sorted((counter_key(one.slice, key), amount) for key, amount in one.device.consumes.items())),
        taint=taint.text if taint is not None else "",
        evicts=taint is not None and taint.evicts,
        fault=one.fault,
    )
    index = dra_index(of_class, selector, part=one.kind == PART)
    compute = compute_share(parts, product) if parts is not None else 1000
    gpu = Gpu(index, one.device.memory or 0, uuid=one.attribute("uuid"), compute=compute, device=device)
    why = _why_unusable(one, parts, product)
    return _withheld(gpu, why) if why else gpu


def counter_key(of: PublishedSlice, key: tuple[str, str]) -> str:
    """Return the name of a counter of a pool: counter sets have names that are unique in theirs."""
    return "/".join((of.driver, of.pool, *key))


def _why_unusable(one: Published, parts: int | None, product: str) -> str:
    """Return why a device cannot be used as it is published; empty where it can."""
    if not one.device.memory or one.device.memory > MOST_MEMORY:
        return f"its capacity memory is {one.device.memory or 'not there, or 0'}"
    if one.kind == PART and parts is None:
        return f"its profile {one.attribute('profile')!r} is not supported"
    if one.device.shared:
        return "several ResourceClaims may have it"
    return "" if product_of(one) == product else f"its product is {product_of(one)!r}, and the node's is {product!r}"


def _withheld(gpu: Gpu, why: str) -> Gpu:
    assert gpu.device is not None
    return replace(gpu, withheld_by=gpu.withheld_by or f"{RESOURCE_SLICE} ({gpu.device.name}: {why})")


def _conditions(device: PublishedDevice) -> dict[str, Value]:
    """Return the attributes by which a ResourceClaim finds a device. Versions change with the driver."""
    uuid = f"{NVIDIA}/uuid"
    if device.attributes.get(uuid):
        return {uuid: device.attributes[uuid]}
    return {name: device.attributes[name] for name in sorted(device.attributes.keys() - device.versions)}


def _by_uuid(conditions: Mapping[str, Value]) -> bool:
    return f"{NVIDIA}/uuid" in conditions


def _twins(devices: Sequence[Published]) -> dict[tuple[str, str, str], str]:
    """Return the name of another device that the same expression finds, by device. Only those are compared that are
    equal in the attributes which all devices have. A device of the node's own pool stays when another pool repeats it.
    """
    names = [one.device.attributes.keys() - one.device.versions for one in devices]
    common = sorted(frozenset.intersection(*map(frozenset, names))) if names else []
    alike: dict[tuple[Value, ...], list[Published]] = {}
    for one in devices:
        alike.setdefault((one.kind, *(one.device.attributes[name] for name in common)), []).append(one)
    compared = ((one, _twin(one, group)) for group in alike.values() for one in group)
    return {one.key: twin.device.name for one, twin in compared if twin is not None}


def _twin(one: Published, others: Iterable[Published]) -> Published | None:
    conditions = _conditions(one.device)
    capacities = frozenset[str]() if _by_uuid(conditions) else one.device.capacities
    attributes = conditions.items()
    return next(
        (
            other
            for other in others
            if other is not one
            and not (one.slice.pool == one.node != other.slice.pool)
            and attributes <= other.device.attributes.items()
            and capacities <= other.device.capacities
        ),
        None,
    )


def _expression(device: PublishedDevice) -> str:
    """Return the CEL expression. What lacks an attribute is no error of it: each is looked for first."""
    conditions = _conditions(device)
    terms = [f"device.driver == {_cel(NVIDIA)}"]
    for name, value in conditions.items():
        domain, _, attribute = name.partition("/")
        of_domain = f"device.attributes[{_cel(domain)}]"
        terms += [f"{_cel(attribute)} in {of_domain}", f"{of_domain}[{_cel(attribute)}] == {_cel(value)}"]
    if not _by_uuid(conditions):
        for name in sorted(device.capacities):
            domain, _, capacity = name.partition("/")
            terms.append(f"{_cel(capacity)} in device.capacity[{_cel(domain)}]")
    return " && ".join(terms)


def _cel(value: Value) -> str:
    """Return a value as CEL writes it, which has no surrogate pairs as escapes."""
    return json.dumps(value, ensure_ascii=False)
