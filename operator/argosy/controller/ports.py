"""The reconciler's ports to the cluster. Tests have a fake of each."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from argosy.api import Resource
from argosy.api.status import Status
from argosy.api.values.identity import PoolKey
from argosy.cluster.apply.applier import Applied
from argosy.cluster.cache.pods.pod_cache import PodView
from argosy.cluster.cache.pods.routing import Routes
from argosy.cluster.cache.pool_view import PoolView
from argosy.planning.facts import Node
from argosy.planning.history import ControllerRevision
from argosy.planning.nodes.reservations import PodGpus
from argosy.render.workloads import KubernetesObject


class Cache(Protocol):
    """Reads the cluster's state; implemented by `ClusterCache`."""

    def nodes(self) -> tuple[Node, ...]:
        """Return the nodes that can be used."""

    def foreign_gpus(self) -> PodGpus:
        """Return the GPUs that other Pods use, by node and Pod (`namespace/name`)."""

    def pools(self) -> set[PoolKey]:
        """Return the keys (`namespace/name`) of the pools that have objects."""

    def pool(self, key: PoolKey) -> PoolView:
        """Return the state of a pool."""

    def revisions(self) -> Mapping[str, Sequence[ControllerRevision]]:
        """Return the revisions of resources, by uid."""


class Writer(Protocol):
    """Writes to the cluster; implemented by `Applier`. Each method raises ApiError."""

    async def apply(
        self,
        pool: PoolKey,
        objects: Sequence[KubernetesObject],
        owners: Mapping[str, str],
        keep: Collection[str] = (),
    ) -> Applied:
        """Apply a pool's objects, and delete its other ones except those in `keep` (identities)."""

    async def route(self, pod: PodView, namespace: str, routes: Routes, settled: bool) -> None:
        """Label a Pod with the models and ensembles to route to it; set its readiness gate once `settled`."""

    async def status(self, resource: Resource, status: Status) -> bool:
        """Write a resource's full status. Return False where the resource was deleted or recreated."""


class StatusListener(Protocol):
    """Receives written statuses; implemented by `Announcer`, which creates Events."""

    async def changed(self, resource: Resource, before: Status | None, now: Status) -> None:
        """Receive a status `now` that was written in place of `before`."""
