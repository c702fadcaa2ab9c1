"""The documents of `resource.k8s.io/v1` that tell of devices, reduced to what planning needs of them.

A ResourceSlice of which a part cannot be read has a `fault`, and what can be read of it. Drivers of other devices than
GPUs are left out by `slice_of`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from argosy.api.values.identity import Identity
from argosy_common.quantity import parse_bytes, parse_quantity
from argosy_common.wording import shortened

RESOURCE_SLICE = "ResourceSlice"
NVIDIA = "gpu.nvidia.com"
"""The driver whose devices are GPUs that CUDA sees."""
_SHUTS = ("NoSchedule", "NoExecute")
"""Effects of taints that count; unknown ones count as `None`, as Kubernetes has it."""
_WORDS = 100
Value = str | int | bool


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a device that keeps new Pods away; with the effect NoExecute it ends what runs, too."""

    text: str
    evicts: bool

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> "Taint | None":
        """Return the taint in a document; None of one without effect."""
        effect = str(body.get("effect"))
        if effect not in _SHUTS:
            return None
        value = f"={body['value']}" if body.get("value") else ""
        return cls(f"{body.get('key')}{value}:{effect}", effect == "NoExecute")


@dataclass(frozen=True, slots=True)
class PublishedDevice:
    """A device of a ResourceSlice.

    Names of `attributes` and `capacities` are qualified; `versions`: attributes that are versions. `memory` in bytes,
    None where it is not published or cannot be. `node`: where it is, empty where its slice says so; `on_several`: it is
    on several nodes. `consumes`: thousandths, by counter set and counter. `shared`: several ResourceClaims may have it.
    """

    name: str
    attributes: Mapping[str, Value] = field(default_factory=dict)
    versions: frozenset[str] = frozenset()
    capacities: frozenset[str] = frozenset()
    memory: int | None = None
    consumes: Mapping[tuple[str, str], int] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    node: str = ""
    on_several: bool = False
    shared: bool = False


@dataclass(frozen=True, slots=True)
class PublishedSlice:
    """A ResourceSlice. `count`: how many its pool has in this generation. `node`: where its devices are; empty where
    each device says so, or where they are on several nodes (`on_several`).
    """

    name: str
    driver: str
    pool: str
    generation: int
    count: int
    node: str = ""
    on_several: bool = False
    counters: Mapping[tuple[str, str], int] = field(default_factory=dict)
    devices: tuple[PublishedDevice, ...] = ()
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Allocation:
    """A device that a ResourceClaim has been given."""

    driver: str
    pool: str
    device: str


@dataclass(frozen=True, slots=True)
class TaintRule:
    """A DeviceTaintRule: its taint, and the devices that it is for; empty fields are for all."""

    taint: Taint
    driver: str = ""
    pool: str = ""
    device: str = ""

    def concerns(self, driver: str, pool: str, device: str) -> bool:
        """Return whether it is for a device."""
        named = zip((self.driver, self.pool, self.device), (driver, pool, device), strict=True)
        return all(mine in ("", other) for mine, other in named)


def slice_of(body: Mapping[str, Any]) -> PublishedSlice | None:
    """Return a ResourceSlice; None of a driver of other devices than GPUs."""
    name = str((body.get("metadata") or {}).get("name"))
    spec = body.get("spec") or {}
    if not isinstance(spec, Mapping) or spec.get("driver") != NVIDIA:
        return None
    pool = spec.get("pool") or {}
    node, on_several = _location(spec)
    faults: list[str] = []
    devices = tuple(_devices(spec, faults))
    return PublishedSlice(
        name=name,
        driver=str(spec["driver"]),
        pool=str(pool.get("name")),
        generation=_number(pool, "generation", faults),
        count=_number(pool, "resourceSliceCount", faults),
        node=node,
        on_several=on_several,
        counters=dict(_counters(spec, faults)),
        devices=devices,
        fault=f"ResourceSlice {name}: {faults[0]}" if faults else "",
    )


def allocations_of(body: Mapping[str, Any]) -> tuple[Allocation, ...]:
    """Return the devices of GPU drivers that a ResourceClaim has; what it has for administration it does not hold."""
    allocation = (body.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    held = (one for one in results if one.get("driver") == NVIDIA and not one.get("adminAccess"))
    return tuple(Allocation(str(one["driver"]), str(one.get("pool")), str(one.get("device"))) for one in held)


def rule_of(body: Mapping[str, Any]) -> TaintRule | None:
    """Return a DeviceTaintRule; None of one that is for no device, or whose taint has no effect."""
    spec = body.get("spec") or {}
    selector, taint = spec.get("deviceSelector"), Taint.of(spec.get("taint") or {})
    if selector is None or taint is None:
        return None
    driver, pool, device = (str(selector.get(part) or "") for part in ("driver", "pool", "device"))
    return TaintRule(taint, driver, pool, device)


def _number(pool: Mapping[str, Any], key: str, faults: list[str]) -> int:
    value = pool.get(key, 0)
    if type(value) is int and value >= 0:
        return value
    faults.append(f"spec.pool.{key}: expected a whole number; found {shortened(repr(value), _WORDS)}")
    return 0


def _location(part: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the node of a slice or of a device, and whether it is on several nodes.

    A selector of one node by its name is as its name.
    """
    if part.get("nodeName"):
        return str(part["nodeName"]), False
    names = _selected_names(part.get("nodeSelector") or {})
    if len(names) == 1:
        return names[0], False
    return "", bool(part.get("allNodes") or part.get("nodeSelector"))


def _selected_names(selector: Mapping[str, Any]) -> Sequence[str]:
    """Return the nodes that a selector names; nothing where it selects otherwise."""
    terms: Sequence[Mapping[str, Any]] = selector.get("nodeSelectorTerms") or []
    if len(terms) != 1:
        return ()
    by_name = [one for one in terms[0].get("matchFields") or () if one.get("key") == "metadata.name"]
    by_label = [one for one in terms[0].get("matchExpressions") or () if one.get("key") == "kubernetes.io/hostname"]
    named = [one for one in (*by_name, *by_label) if one.get("operator") == "In"]
    return tuple(map(str, named[0].get("values") or ())) if named else ()


def _counters(spec: Mapping[str, Any], faults: list[str]) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield what each counter of each set has."""
    for at, one in enumerate(spec.get("sharedCounters") or ()):
        path = f"spec.sharedCounters[{at}]"
        for counter, amount in _amounts(one.get("counters") or {}, path, faults):
            yield (str(one.get("name")), counter), int(amount)


def _amounts(counters: Mapping[str, Any], path: str, faults: list[str]) -> Iterator[tuple[str, Decimal]]:
    """Yield the counters of a set in thousandths, in which fractions are whole."""
    for counter, amount in counters.items():
        try:
            value = parse_quantity(str(amount.get("value")))
        except ValueError as error:
            faults.append(f"{path}.counters[{counter}]: {error}")
            continue
        if value < 0:
            faults.append(f"{path}.counters[{counter}]: must be 0 or more; found {amount.get('value')}")
        else:
            yield str(counter), value * 1000


def _devices(spec: Mapping[str, Any], faults: list[str]) -> Iterator[PublishedDevice]:
    for body in spec.get("devices") or ():
        name = str(body.get("name"))
        path, attributes = f"spec.devices[{name}]", body.get("attributes") or {}
        consumed = {
            (str(one.get("counterSet")), counter): -int(-amount)
            for one in body.get("consumesCounters") or ()
            for counter, amount in _amounts(one.get("counters") or {}, f"{path}.consumesCounters", faults)
        }
        node, on_several = _location(body)
        yield PublishedDevice(
            name=name,
            attributes={_qualified(key): value for key, one in attributes.items() for value in _value(one)},
            versions=frozenset(_qualified(key) for key, one in attributes.items() if "version" in one),
            capacities=frozenset(map(_qualified, body.get("capacity") or {})),
            memory=_memory(body.get("capacity") or {}, path, faults),
            consumes=consumed,
            taints=tuple(taint for one in body.get("taints") or () if (taint := Taint.of(one))),
            node=node,
            on_several=on_several,
            shared=bool(body.get("allowMultipleAllocations")),
        )


def _qualified(name: str) -> str:
    """Return the qualified name of an attribute or a capacity: one without a domain is its driver's."""
    return name if "/" in name else f"{NVIDIA}/{name}"


def _value(attribute: Mapping[str, Any]) -> Iterator[Value]:
    """Yield the value of an attribute of a type that is known."""
    for kind in ("string", "int", "bool", "version"):
        if kind in attribute and attribute[kind] is not None:
            yield attribute[kind]


def _memory(capacity: Mapping[str, Any], path: str, faults: list[str]) -> int | None:
    named = {_qualified(key): one for key, one in capacity.items()}.get(f"{NVIDIA}/memory")
    if named is None:
        return None
    try:
        amount = parse_bytes(named.get("value"))
    except ValueError as error:
        faults.append(f"{path}.capacity[memory]: {error}")
        return None
    return amount


def claim_name(metadata: Mapping[str, Any]) -> str:
    """Return how a ResourceClaim is called as the holder of a device."""
    return str(Identity.of("ResourceClaim", str(metadata.get("namespace")), str(metadata.get("name"))))
