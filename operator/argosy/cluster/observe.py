"""All that is watched, and what is known by it.

A kind that may not be read does not hold up the rest: it is named in `troubles` and asked for again now and then.
Some are needed though, and without them `synced` fails: with no nodes, with no ConfigMaps (where each server sits), or
with no resources of a kind, a plan would be made from nothing and move or end what runs.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from argosy.fleet.facts import Node
from argosy.fleet.nodes.reservations import PodGpus
from argosy.render.names import label
from argosy.render.workloads import SERVER_LABEL, managed_selector

from . import kinds
from .asking import answered
from .connection import Connection
from .details import of_configmap, of_deployment
from .inventory import PoolLabel, Shelf
from .kinds import Kind
from .living import Ended, Living
from .nodes import Nodes
from .ownership import is_managed
from .pods import GpuHolders, PodView, ServerPods
from .poolview import PoolView, pool_label, pool_name, pool_view
from .watch import Sink, Watch

__all__ = ["Observer", "PodView", "PoolView"]

Changed = Callable[[str | None], None]
"""Told which pool changed, by its key `namespace/name`; None: every pool."""
_NEEDED = (kinds.NODE, kinds.CONFIG_MAP, *kinds.RESOURCES.values())
_OWNED = (
    kinds.SERVICE_ACCOUNT,
    kinds.ROLE,
    kinds.ROLE_BINDING,
    kinds.CONFIG_MAP,
    kinds.SERVICE,
    kinds.NETWORK_POLICY,
    kinds.disruption_budgets("policy/v1"),
    kinds.DEPLOYMENT,
)
"""The kinds of objects that pools have."""


class Observer:
    """Watches what is ours, the nodes, who else holds GPUs, and which resources there are (`ended`: no more).

    `troubles` says what cannot be read, by plural and, where there are several, namespace, and which node is passed
    over, by `nodes/name`.
    """

    def __init__(
        self,
        connection: Connection,
        namespaces: Collection[str],
        changed: Changed,
        ended: Ended = lambda *_: None,
    ) -> None:
        self._connection, self._namespaces, self._changed = connection, tuple(namespaces), changed
        self._shelves = {kind.name: self._shelf(kind) for kind in _OWNED}
        self._nodes = Nodes(lambda: changed(None))
        self._pods = ServerPods(self._pool_changed)
        self._holders = GpuHolders(lambda: changed(None), self._is_ours)
        self._living = {kind: Living(kind, ended) for kind in kinds.RESOURCES.values()}
        self._refused: dict[str, str] = {}
        self._watches: list[Watch] = []
        self._started = asyncio.Event()

    async def run(self) -> None:
        """Watch until cancelled."""
        offered = await answered(self._connection.discovery, "what the API server offers")
        budgets = kinds.disruption_budgets(offered.pdb_version)
        self._shelves[budgets.name].kind = budgets
        self._watches = list(self._all_watches())
        self._started.set()
        async with asyncio.TaskGroup() as tasks:
            for watch in self._watches:
                tasks.create_task(watch.run())

    async def synced(self) -> None:
        """Until every first list is in, or is forbidden. ForbiddenError where that is one that nothing goes without."""
        await self._started.wait()
        for watch in self._watches:
            await watch.listed.wait()
        for watch in self._watches:
            if watch.forbidden is not None and watch.kind in _NEEDED:
                raise watch.forbidden

    @property
    def troubles(self) -> Mapping[str, str]:
        """What cannot be read or used, in words."""
        return self._refused | {f"nodes/{name}": why for name, why in self._nodes.troubles.items()}

    def resources(self) -> set[tuple[str, str]]:
        """Identity and uid of every resource of Argosy's."""
        return {each for living in self._living.values() for each in living.all()}

    def nodes(self) -> tuple[Node, ...]:
        """The nodes that can be used."""
        return self._nodes.all()

    def foreign_gpus(self) -> PodGpus:
        """GPUs that Pods hold which are not ours, by node and Pod."""
        return self._holders.by_node()

    def pools(self) -> set[str]:
        """The keys of the pools that have objects.

        A pool whose name is longer than a label is known while an object is there that belongs to it itself.
        """
        labels = {pool for shelf in self._shelves.values() for pool in shelf.pools()}
        return {key for pool in labels if (key := self._key(pool)) is not None}

    def pool(self, key: str) -> PoolView:
        """What is known of a pool, `namespace/name`."""
        pool = pool_label(key)
        shelves = (self._shelves[kinds.CONFIG_MAP.name], self._shelves[kinds.DEPLOYMENT.name])
        return pool_view((owned for shelf in shelves for _, owned in shelf.of_pool(pool)), self._pods.of_pool(pool))

    def shelf(self, kind: str) -> Shelf:
        """What is known of our objects of a kind."""
        return self._shelves[kind]

    def shelves(self) -> Iterable[Shelf]:
        """What is known of our objects, by kind."""
        return self._shelves.values()

    def learned_pod(self, body: Mapping[str, Any]) -> None:
        """An answer says that a Pod of ours stands like this."""
        self._pods.learned(body)

    def _pool_changed(self, pool: PoolLabel) -> None:
        key = self._key(pool)
        if key is not None:
            self._changed(key)

    def _key(self, pool: PoolLabel) -> str | None:
        namespace, value = pool
        if not value:
            return None
        name = pool_name(value, self._owners_of(pool))
        return f"{namespace}/{name}" if name is not None else None

    def _owners_of(self, pool: PoolLabel) -> Iterator[str]:
        """The names of pools that objects with this label belong to."""
        for shelf in self._shelves.values():
            for _, owned in shelf.of_pool(pool):
                if owned.owner is not None and owned.owner.kind == "ServingPool" and label(owned.owner.name) == pool[1]:
                    yield owned.owner.name

    def _shelf(self, kind: Kind) -> Shelf:
        reduce = {kinds.CONFIG_MAP.name: of_configmap, kinds.DEPLOYMENT.name: of_deployment}.get(kind.name)
        return Shelf(kind, self._pool_changed, *([reduce] if reduce else []))

    def _is_ours(self, metadata: Mapping[str, Any]) -> bool:
        """Whether a Pod is a server's of ours: another operator may watch other namespaces of the same cluster."""
        ours = not self._namespaces or metadata.get("namespace") in self._namespaces
        return ours and is_managed(metadata) and SERVER_LABEL in (metadata.get("labels") or {})

    def _all_watches(self) -> Iterator[Watch]:
        managed = {"labelSelector": managed_selector()}
        ours: list[tuple[Kind, Sink]] = [(shelf.kind, shelf) for shelf in self._shelves.values()]
        for kind, sink in (*ours, (kinds.POD, self._pods)):
            for namespace in self._namespaces or ("",):
                yield self._watch(kind, sink, managed, namespace)
        for kind, living in self._living.items():
            for namespace in self._namespaces or ("",):
                yield self._watch(kind, living, {}, namespace, metadata_only=True)
        yield self._watch(kinds.NODE, self._nodes, {})
        # What ended holds nothing, and what has no node holds nothing yet.
        running = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!="}
        if not self._namespaces:
            running["labelSelector"] = f"!{SERVER_LABEL}"
        yield self._watch(kinds.POD, self._holders, running)

    def _watch(
        self,
        kind: Kind,
        sink: Sink,
        selectors: Mapping[str, str],
        namespace: str = "",
        metadata_only: bool = False,
    ) -> Watch:
        place = f"{kind.plural}/{namespace}" if namespace else kind.plural
        if sink is self._holders:
            place = "pods of others"

        def failed(words: str) -> None:
            if words:
                self._refused[place] = words
            else:
                self._refused.pop(place, None)

        return Watch(self._connection, kind, sink, failed, namespace, selectors, metadata_only)
