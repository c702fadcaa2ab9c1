"""What the reconciler asks of the cluster, as Protocols; `fake` has one of each for tests."""

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
from argosy.planning.history import Revision
from argosy.planning.nodes.reservations import PodGpus
from argosy.render.workloads import KubernetesObject


class Cache(Protocol):
    """What stands in the cluster; `ClusterCache` knows it by watches."""

    def nodes(self) -> tuple[Node, ...]:
        """Return the nodes that can be used."""

    def foreign_gpus(self) -> PodGpus:
        """Return GPUs that Pods hold which are not ours, by node and Pod (`namespace/name`)."""

    def pools(self) -> set[PoolKey]:
        """Return the keys (`namespace/name`) of the pools that have objects."""

    def pool(self, key: PoolKey) -> PoolView:
        """Return what is known of a pool."""

    def revisions(self) -> Mapping[str, Sequence[Revision]]:
        """Return the revisions of resources, by uid."""


class Writer(Protocol):
    """What changes the cluster; `Applier` does it by server-side apply. Each raises ApiError."""

    async def apply(
        self,
        pool: PoolKey,
        objects: Sequence[KubernetesObject],
        owners: Mapping[str, str],
        keep: Collection[str] = (),
    ) -> Applied:
        """Make a pool's objects be just these; those in `keep` (identities) stay as they are."""

    async def route(self, pod: PodView, namespace: str, routes: Routes, settled: bool) -> None:
        """Let a Pod be asked for these models and ensembles, and open its readiness gate once `settled`."""

    async def status(self, resource: Resource, status: Status) -> bool:
        """Write a resource's status, whole. Whether that was done: not where it is gone, or another one by now."""


class StatusListener(Protocol):
    """What is told of statuses that were written; `Announcer` makes Events of them."""

    async def changed(self, resource: Resource, before: Status | None, now: Status) -> None:
        """`now` was written in place of `before`."""
