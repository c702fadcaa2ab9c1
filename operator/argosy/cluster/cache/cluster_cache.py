"""The cluster's state, from lists and watches.

Without nodes, or without ConfigMaps (which have the servers' placements), planning would start from nothing, and move
or end running servers; without ControllerRevisions it would lose histories. If any of these is forbidden, `synced`
fails.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from argosy.api.values.identity import PoolKey
from argosy.cluster.cache.builds.build_objects import BuildPod, of_build_pod, of_job, of_report
from argosy.cluster.cache.device_cache import DeviceCache
from argosy.cluster.cache.indexer import Indexer, PoolLabel, Reduce
from argosy.cluster.cache.node_cache import NodeCache
from argosy.cluster.cache.ownership import is_managed
from argosy.cluster.cache.pods.pod_cache import ForeignGpus, PodCache
from argosy.cluster.cache.pool_view import PoolView, pool_label, pool_name, pool_view
from argosy.cluster.cache.server_objects import Desired, of_account, of_configmap, of_deployment, of_revision
from argosy.cluster.cache.watches.reflectors import Reflectors
from argosy.cluster.client import kinds
from argosy.cluster.client.connection import Connection
from argosy.cluster.client.kinds import Kind
from argosy.planning.facts import Node
from argosy.planning.history import ControllerRevision
from argosy.planning.nodes.last_reported import with_last_reported
from argosy.planning.nodes.reservations import PodGpus
from argosy.render.names import label
from argosy.render.workloads import (
    ACTIVATOR_LABEL,
    BUILD_LABEL,
    BUILDS_OF_LABEL,
    PLACEHOLDER_LABEL,
    SERVER_LABEL,
    Cluster,
    managed_selector,
)

Changed = Callable[[PoolKey | None], None]
"""Receives the key `namespace/name` of a pool that changed; None: every pool."""
_REDUCTIONS: Mapping[str, Reduce] = {
    kinds.CONFIG_MAP.name: lambda body: of_report(body) or of_configmap(body),
    kinds.CONTROLLER_REVISION.name: of_revision,
    kinds.DEPLOYMENT.name: of_deployment,
    kinds.SERVICE_ACCOUNT.name: of_account,
    kinds.JOB.name: of_job,
}
_OF_POOL = (kinds.CONFIG_MAP, kinds.DEPLOYMENT, kinds.JOB)
"""The kinds that a `PoolView` is made from."""
_OURS = frozenset((SERVER_LABEL, PLACEHOLDER_LABEL))
"""Labels of Pods whose GPUs are known from the plan, or count as free."""
_REQUIRED = (kinds.CONFIG_MAP, kinds.CONTROLLER_REVISION)


class ClusterCache:
    """Watches Argosy's objects, the nodes, and other Pods that use GPUs."""

    def __init__(self, connection: Connection, offered: Cluster, namespaces: Collection[str], changed: Changed) -> None:
        self._namespaces, self._changed = tuple(namespaces), changed
        owned = kinds.owned(offered.pdb_version, offered.inference_pools, offered.device_claims)
        self._indexers = {kind.name: self._indexer(kind) for kind in owned}
        self._nodes = NodeCache(lambda: changed(None))
        self._pods = PodCache(self._pool_changed)
        self._activator_pods = PodCache(self._pool_changed, ACTIVATOR_LABEL)
        self._build_pods = Indexer(kinds.POD, self._pool_changed, of_build_pod, BUILDS_OF_LABEL)
        self._foreign_gpus = ForeignGpus(lambda: changed(None), self._is_ours)
        self._devices = DeviceCache(lambda: changed(None), self._is_our_claim)
        self._reflectors = Reflectors(connection, namespaces)
        self._add_reflectors()
        self._add_devices(offered)

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._reflectors.run()

    async def synced(self) -> None:
        """Wait until every first list is complete or forbidden. Raises ForbiddenError where a required one is."""
        await self._reflectors.synced()

    @property
    def errors(self) -> Mapping[str, str]:
        """Errors of reading, by plural and, where there are several, namespace; of a node by `nodes/name`."""
        return self._reflectors.errors | {f"nodes/{name}": why for name, why in self._nodes.errors.items()}

    def nodes(self) -> tuple[Node, ...]:
        """Return the nodes with all devices that are published.

        A node that reports no GPUs gets those recorded with the servers on it.
        """
        details = (owned.detail for owned in self._indexers[kinds.CONFIG_MAP.name].all())
        noted = (detail.hardware for detail in details if isinstance(detail, Desired))
        nodes = self._devices.with_devices(self._nodes.all())
        return with_last_reported(nodes, (node for node in noted if node is not None))

    def foreign_gpus(self) -> PodGpus:
        """Return the GPUs that other Pods use, by node and Pod."""
        return self._foreign_gpus.by_node()

    def pools(self) -> set[PoolKey]:
        """Return the keys of the pools that have objects.

        A pool whose name is longer than a label is included only while it owns an object.
        """
        labels = {pool for indexer in self._indexers.values() for pool in indexer.pools()}
        return {key for pool in labels if (key := self._key(pool)) is not None}

    def pool(self, key: PoolKey) -> PoolView:
        """Return the state of a pool, by its key `namespace/name`."""
        pool = pool_label(key)
        objects = (owned for kind in _OF_POOL for _, owned in self._indexers[kind.name].of_pool(pool))
        details = (owned.detail for _, owned in self._build_pods.of_pool(pool))
        build_pods = [detail for detail in details if isinstance(detail, BuildPod)]
        return pool_view(objects, self._pods.of_pool(pool), build_pods, self._activator_pods.of_pool(pool))

    def revisions(self) -> dict[str, list[ControllerRevision]]:
        """Return the revisions of resources, by uid."""
        revisions: dict[str, list[ControllerRevision]] = {}
        for owned in self._indexers[kinds.CONTROLLER_REVISION.name].all():
            if owned.owner is not None and isinstance(owned.detail, ControllerRevision) and not owned.terminating:
                revisions.setdefault(owned.owner.uid, []).append(owned.detail)
        return revisions

    def indexer(self, kind: str) -> Indexer:
        """Return the index of Argosy's objects of a kind."""
        return self._indexers[kind]

    def indexers(self) -> Iterable[Indexer]:
        """Return the indexes of Argosy's objects, one for each kind."""
        return self._indexers.values()

    def pod_patched(self, body: Mapping[str, Any]) -> None:
        """Store the response to a patch of one of Argosy's Pods."""
        self._pods.patched(body)
        self._activator_pods.patched(body)

    def _pool_changed(self, pool: PoolLabel) -> None:
        key = self._key(pool)
        if key is not None:
            self._changed(key)

    def _key(self, pool: PoolLabel) -> PoolKey | None:
        namespace, value = pool
        if not value:
            return None
        name = pool_name(value, self._owners_of(pool))
        return PoolKey.of(namespace, name) if name is not None else None

    def _owners_of(self, pool: PoolLabel) -> Iterator[str]:
        """Yield the names of the pools that own objects with this label."""
        for indexer in self._indexers.values():
            for _, owned in indexer.of_pool(pool):
                if owned.owner is not None and owned.owner.kind == "ServingPool" and label(owned.owner.name) == pool[1]:
                    yield owned.owner.name

    def _indexer(self, kind: Kind) -> Indexer:
        return Indexer(kind, self._pool_changed, _REDUCTIONS.get(kind.name, lambda _: None))

    def _is_ours(self, metadata: Mapping[str, Any]) -> bool:
        """Return whether a Pod is a server or a placeholder of this operator: another one may watch other namespaces.

        A placeholder gives its GPUs up at once.
        """
        return self._has_one(metadata, _OURS)

    def _is_our_claim(self, metadata: Mapping[str, Any]) -> bool:
        """Return whether a ResourceClaim is of a server or a build of this operator, which knows where it is."""
        return self._has_one(metadata, _OURS | {BUILD_LABEL})

    def _has_one(self, metadata: Mapping[str, Any], labels: frozenset[str]) -> bool:
        """Return whether what has this metadata is of this operator, and has one of these labels."""
        ours = not self._namespaces or metadata.get("namespace") in self._namespaces
        return ours and is_managed(metadata) and not labels.isdisjoint(metadata.get("labels") or {})

    def _add_reflectors(self) -> None:
        managed = {"labelSelector": managed_selector()}
        for indexer in self._indexers.values():
            self._reflectors.add(indexer.kind, indexer, managed, required=indexer.kind in _REQUIRED)
        servers = {"labelSelector": f"{managed_selector()},!{BUILD_LABEL},!{ACTIVATOR_LABEL},!{PLACEHOLDER_LABEL}"}
        builds = {"labelSelector": f"{managed_selector()},{BUILD_LABEL}"}
        activators = {"labelSelector": f"{managed_selector()},{ACTIVATOR_LABEL}"}
        self._reflectors.add(kinds.POD, self._pods, servers)
        self._reflectors.add(kinds.POD, self._activator_pods, activators, label="pods of activators")
        self._reflectors.add(kinds.POD, self._build_pods, builds, label="pods of builds")
        self._reflectors.add(kinds.NODE, self._nodes, required=True, all_namespaces=True)
        # Pods that ended use no GPUs any more, and those without a node none yet.
        running = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!="}
        if not self._namespaces:
            running["labelSelector"] = f"!{SERVER_LABEL}"
        self._reflectors.add(kinds.POD, self._foreign_gpus, running, all_namespaces=True, label="pods of others")

    def _add_devices(self, offered: Cluster) -> None:
        """Watch what tells of devices of DRA drivers, where the API server has it."""
        if offered.device_claims:
            self._reflectors.add(kinds.RESOURCE_SLICE, self._devices.slices, all_namespaces=True)
            self._reflectors.add(kinds.RESOURCE_CLAIM, self._devices.claims, all_namespaces=True)
        if offered.device_taint_rules:
            self._reflectors.add(kinds.DEVICE_TAINT_RULE, self._devices.rules, all_namespaces=True)
