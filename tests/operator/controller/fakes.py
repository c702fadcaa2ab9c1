"""Fakes of the controller's ports: they record their calls, and answer what a test sets. No cluster needed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from argosy.api import Resource
from argosy.api.status import Status
from argosy.api.values.identity import PoolKey
from argosy.cluster.apply.applier import Applied
from argosy.cluster.cache.pods.pod_cache import PodView
from argosy.cluster.cache.pods.routing import Routes
from argosy.cluster.cache.pool_view import PoolView
from argosy.cluster.client.errors import ApiError
from argosy.planning.facts import Node
from argosy.planning.history import ControllerRevision
from argosy.planning.nodes.reservations import PodGpus
from argosy.render.workloads import KubernetesObject, object_identity


@dataclass(slots=True)
class FakeCache:
    """A cluster with these nodes, other Pods' GPUs, and pools by key."""

    ready_nodes: tuple[Node, ...] = ()
    views: dict[PoolKey, PoolView] = field(default_factory=dict)
    gpu_usage: dict[str, dict[str, int]] = field(default_factory=dict)
    histories: dict[str, list[ControllerRevision]] = field(default_factory=dict)

    def nodes(self) -> tuple[Node, ...]:
        """Return the set nodes."""
        return self.ready_nodes

    def foreign_gpus(self) -> PodGpus:
        """Return the set GPUs."""
        return self.gpu_usage

    def pools(self) -> set[PoolKey]:
        """Return the pools that have a view."""
        return set(self.views)

    def pool(self, key: PoolKey) -> PoolView:
        """Return the set view, or an empty one."""
        return self.views.get(key, PoolView())

    def revisions(self) -> Mapping[str, Sequence[ControllerRevision]]:
        """Return the set revisions."""
        return self.histories


@dataclass(slots=True)
class FakeWriter:
    """Records the last writes, and `rerouted`: what each Pod was ejected from, in order.

    `applied` is the result of each apply; `wrong` is raised instead, by a Pod's name or a resource's identity.
    """

    applied: Applied = field(default_factory=Applied)
    wrong: dict[str, ApiError] = field(default_factory=dict)
    objects: set[str] = field(default_factory=set)
    bodies: dict[str, KubernetesObject] = field(default_factory=dict)
    keep: set[str] = field(default_factory=set)
    routes: dict[str, frozenset[str]] = field(default_factory=dict)
    ejected: dict[str, frozenset[str]] = field(default_factory=dict)
    rerouted: list[tuple[str, frozenset[str]]] = field(default_factory=list)
    statuses: dict[str, Status] = field(default_factory=dict)

    async def apply(
        self,
        pool: PoolKey,
        objects: Sequence[KubernetesObject],
        owners: Mapping[str, str],
        keep: Collection[str] = (),
    ) -> Applied:
        """Record the objects and their identities."""
        self.bodies = {object_identity(item): item for item in objects}
        self.objects, self.keep = set(self.bodies), set(keep)
        return self.applied

    async def route(self, pod: PodView, namespace: str, routes: Routes, settled: bool) -> None:
        """Record the routes."""
        if pod.name in self.wrong:
            raise self.wrong[pod.name]
        self.routes[pod.name], self.ejected[pod.name] = routes.names, routes.ejected
        self.rerouted.append((pod.name, routes.ejected))

    async def status(self, resource: Resource, status: Status) -> bool:
        """Record the status."""
        if resource.identity in self.wrong:
            raise self.wrong[resource.identity]
        self.statuses[resource.identity] = status
        return True


@dataclass(slots=True)
class FakeStatusListener:
    """Records the identities of the resources whose status changed, in order."""

    reported: list[str] = field(default_factory=list)

    async def changed(self, resource: Resource, before: Status | None, now: Status) -> None:
        """Record the identity."""
        self.reported.append(resource.identity)


@dataclass(slots=True)
class FakeMeter:
    """Counts rounds."""

    rounds: int = 0
    failures: int = 0
    queued: int = 0

    def began(self, waited_s: float) -> None:
        """Count a round."""
        self.rounds += 1

    def ended(self, took_s: float, failed: bool) -> None:
        """Count a failed round."""
        self.failures += failed

    def waiting(self, pools: int) -> None:
        """Record the number of waiting pools."""
        self.queued = pools
