"""The cache of what tells of devices of DRA drivers: ResourceSlices, what others' ResourceClaims have, and taint rules.

It is filled only where the API server has `resource.k8s.io/v1`.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from argosy.cluster.client.kinds import Key, key_of
from argosy.planning.facts import Node
from argosy.planning.nodes.dra.documents import (
    Allocation,
    PublishedSlice,
    TaintRule,
    allocations_of,
    claim_name,
    rule_of,
    slice_of,
)
from argosy.planning.nodes.dra.pools import NodeDevices, node_devices, with_devices, with_holders

Reduced = TypeVar("Reduced")


class ReducedObjects(Generic[Reduced]):
    """Objects of a kind, each reduced; None and an empty form are not stored. `changed` hears of what is new."""

    def __init__(self, reduce: Callable[[Mapping[str, Any]], Reduced | None], changed: Callable[[], None]) -> None:
        self._reduce, self._changed = reduce, changed
        self.objects: dict[Key, Reduced] = {}

    def update(self, body: Mapping[str, Any]) -> None:
        """Store an object that a list or watch reports."""
        self._set(key_of(body), self._reduce(body))

    def delete(self, body: Mapping[str, Any]) -> None:
        """Remove an object that a watch reports as deleted."""
        self._set(key_of(body), None)

    def retain(self, namespace: str, keys: Collection[Key]) -> None:
        """Remove the namespace's (empty: all) other objects."""
        for key in [one for one in self.objects if one not in keys and namespace in ("", one[0])]:
            self._set(key, None)

    def _set(self, key: Key, now: Reduced | None) -> None:
        if self.objects.get(key) == (now or None):
            return
        if now:
            self.objects[key] = now
        else:
            del self.objects[key]
        self._changed()


@dataclass(frozen=True, slots=True)
class _Held:
    """The devices of a ResourceClaim of others, with its name."""

    holder: str
    devices: tuple[Allocation, ...] = ()


@dataclass(slots=True)
class DeviceCache:
    """The published devices of nodes. `is_ours` decides by a ResourceClaim's metadata."""

    changed: Callable[[], None]
    is_ours: Callable[[Mapping[str, Any]], bool]
    slices: ReducedObjects[PublishedSlice] = field(init=False)
    claims: ReducedObjects[_Held] = field(init=False)
    rules: ReducedObjects[TaintRule] = field(init=False)
    _published: Mapping[str, NodeDevices] = field(default_factory=dict)
    _devices: Mapping[str, NodeDevices] = field(default_factory=dict)
    _nodes: dict[str, tuple[Node, NodeDevices, Node]] = field(default_factory=dict)
    _outdated: bool = False
    _unheld: bool = False

    def __post_init__(self) -> None:
        self.slices = ReducedObjects(slice_of, self._mark)
        self.claims = ReducedObjects(self._held, self._mark_claims)
        self.rules = ReducedObjects(rule_of, self._mark)

    def with_devices(self, nodes: Collection[Node]) -> tuple[Node, ...]:
        """Return the nodes with their published devices. A node of which nothing changed is the same object again."""
        self._refresh()
        return tuple(self._with_devices(node) for node in nodes)

    def _refresh(self) -> None:
        if self._outdated:
            slices, rules = self.slices.objects, self.rules.objects
            ordered = [rules[key] for key in sorted(rules)]
            self._published = node_devices([slices[key] for key in sorted(slices)], ordered, self._published)
        if self._outdated or self._unheld:
            holders = {device: held.holder for held in self.claims.objects.values() for device in held.devices}
            self._devices = with_holders(self._published, holders)
            self._nodes = {name: cached for name, cached in self._nodes.items() if name in self._devices}
        self._outdated = self._unheld = False

    def _with_devices(self, node: Node) -> Node:
        devices = self._devices.get(node.name)
        if devices is None:
            return node
        cached = self._nodes.get(node.name)
        if cached is None or cached[0] is not node or cached[1] is not devices:
            (merged,) = with_devices([node], {node.name: devices})
            cached = self._nodes[node.name] = node, devices, merged
        return cached[2]

    def _held(self, body: Mapping[str, Any]) -> _Held | None:
        devices = () if self.is_ours(body["metadata"]) else allocations_of(body)
        return _Held(claim_name(body["metadata"]), devices) if devices else None

    def _mark(self) -> None:
        self._outdated = True
        self.changed()

    def _mark_claims(self) -> None:
        self._unheld = True
        self.changed()
