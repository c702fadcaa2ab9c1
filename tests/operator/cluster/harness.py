"""Shared by the cluster tests: a watched API server, and a pool with its objects."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from e2e.cluster import Cluster
from tests.operator.planning import declared

from argosy.api import InferenceModel, ServingPool, parse_body
from argosy.cluster.apply.applier import Applier
from argosy.cluster.cache.cluster_cache import ClusterCache
from argosy.cluster.client.connection import Connection
from argosy.cluster.client.discovery import offered
from argosy.planning.facts import Refusal
from argosy.planning.plan import Placement, ServerPlan
from argosy.render.repositories import RenderedServer
from argosy.render.workloads import Cluster as Offered
from argosy.render.workloads import Images, KubernetesObject, owners, pool_objects
from argosy_agent.contract import RenderedRepository

IMAGES = Images("argosy-runtime:1", "triton:1", "argosy-runtime:1")


@dataclass(slots=True)
class Requests:
    """The requests to the API server: verb, resource, status."""

    seen: list[tuple[str, str, int]] = field(default_factory=list)

    def __call__(self, verb: str, resource: str, status: int, seconds: float) -> None:
        assert seconds >= 0
        self.seen.append((verb, resource, status))

    def writes(self) -> list[tuple[str, str, int]]:
        return [item for item in self.seen if item[0] not in ("list", "watch")]

    def changes(self) -> list[tuple[str, str, int]]:
        """Return the requests that changed something."""
        return [write for write in self.writes() if write[0] != "get"]


async def until(what: str, so: Callable[[], bool], timeout_s: float = 60) -> None:
    """Wait until a condition is true."""
    try:
        async with asyncio.timeout(timeout_s):
            while not so():  # noqa: ASYNC110 - what is waited for has no event
                await asyncio.sleep(0.02)
    except TimeoutError:
        pytest.fail(f"{what}: not so within {timeout_s} s")


@dataclass(slots=True)
class Watched:
    """A running cache, an applier on it, and the reported changes of pools."""

    cache: ClusterCache
    applier: Applier
    changes: list[str | None]

    async def until_idle(self) -> None:
        """Wait until no change is reported for half a second; then clear the reported ones."""
        while True:
            before = len(self.changes)
            await asyncio.sleep(0.5)
            if len(self.changes) == before:
                break
        self.changes.clear()


@asynccontextmanager
async def watching(connection: Connection, *namespaces: str) -> AsyncIterator[Watched]:
    """Observe these namespaces, or all."""
    changes: list[str | None] = []
    cache = ClusterCache(connection, await offered(connection), namespaces, changes.append)
    running = asyncio.create_task(cache.run())
    try:
        async with asyncio.timeout(60):
            await cache.synced()
        yield Watched(cache, Applier(connection, cache), changes)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def declare(cluster: Cluster, body: Mapping[str, Any]) -> Any:
    """Apply a resource, and return it as the API server stores it."""
    cluster.apply(json.dumps(body))
    metadata = body["metadata"]
    result = cluster.read(body["kind"], metadata["name"], "-n", metadata["namespace"])
    resource, problems = parse_body({key: value for key, value in result.items() if key != "status"})
    assert not problems
    return resource


def objects_of(cluster: Cluster, namespace: str) -> set[str]:
    """Return kind and name of all objects with our label."""
    kinds = (
        "serviceaccounts,roles,rolebindings,configmaps,services,networkpolicies,poddisruptionbudgets,deployments,"
        "controllerrevisions"
    )
    result = cluster.read(kinds, "-n", namespace, "-l", "app.kubernetes.io/managed-by=argosy")
    return {f"{item['kind']} {item['metadata']['name']}" for item in result["items"]}


def named(objects: Sequence[KubernetesObject]) -> set[str]:
    """Return kind and name of objects."""
    return {f"{item['kind']} {item['metadata']['name']}" for item in objects}


def pool_body(namespace: str, name: str = "pool") -> dict[str, Any]:
    return declared.body("ServingPool", name, {"namespace": namespace})


def model_body(namespace: str, name: str, pool: str = "pool") -> dict[str, Any]:
    spec = {"poolRef": {"name": pool}, "inputs": None, "outputs": None, "footprint": None}
    return declared.model_body(name, metadata={"namespace": namespace}, **spec)


@dataclass(frozen=True, slots=True)
class Declared:
    """A pool with its models, and the objects for its servers."""

    pool: ServingPool
    models: tuple[InferenceModel, ...]

    @property
    def key(self) -> str:
        return self.pool.key

    def objects(self, *servers: str, gpus: tuple[int, ...] = (), node: str = "node-1") -> tuple[KubernetesObject, ...]:
        workloads = [self.workload(name, gpus, node) for name in servers]
        return pool_objects(self.pool, workloads, self.models, IMAGES, Offered("policy/v1beta1"))

    def workload(self, name: str, gpus: tuple[int, ...], node: str) -> RenderedServer:
        placed = tuple(Placement(model.name, 1, model.name, gpus, 1, 0, 0) for model in self.models)
        return RenderedServer(ServerPlan(name, node, gpus, placed), RenderedRepository(name))

    async def apply(self, watched: Watched, objects: Sequence[KubernetesObject], *keep: str) -> tuple[Refusal, ...]:
        """Apply the objects and return the refusals. Raises the first failure."""
        applied = await watched.applier.apply(self.key, objects, owners(objects), keep)
        if applied.failure is not None:
            raise applied.failure
        return applied.refusals
