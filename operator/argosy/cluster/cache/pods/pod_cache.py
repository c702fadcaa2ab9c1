"""Caches of Pods: those of servers and activators, and GPUs that other Pods use. Pure apart from callbacks."""

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from argosy.api.pool.podtemplate import SERVER
from argosy.cluster.cache.indexer import PoolLabel
from argosy.cluster.cache.pods.pod_errors import pod_error, unscheduled_since
from argosy.cluster.cache.pods.routing import is_settled, routes_of
from argosy.cluster.client.kinds import Key, key_of
from argosy.planning.nodes.reservations import pods_key
from argosy.planning.nodes.slices import GPU_RESOURCE, MIG_RESOURCES
from argosy.render.workloads import POOL_LABEL, SERVER_LABEL

_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class PodView:
    """A server's Pod, or an activator's.

    `ready`: the Pod's condition, which includes the gate; `server_ready`: the server's container alone; `routes`: the
    names in its labels, of which no Service routes the `ejected` ones; `settled`: the readiness gate; `error`: why it
    does not run; `address`: its IP, empty before it has one; `unscheduled_since`: since when it is unschedulable, None
    once it is scheduled.
    """

    name: str
    uid: str
    server: str
    ready: bool
    server_ready: bool
    terminating: bool
    routes: frozenset[str]
    settled: bool
    error: str
    created: datetime
    address: str = ""
    ejected: frozenset[str] = frozenset()
    unscheduled_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class _CachedPod:
    version: int
    pool: PoolLabel
    view: PodView


class PodCache:
    """Argosy's Pods, indexed by the pool that a label names."""

    def __init__(self, changed: Callable[[PoolLabel], None], pool_label: str = POOL_LABEL) -> None:
        self._changed, self._pool_label = changed, pool_label
        self._pods: dict[Key, _CachedPod] = {}
        self._of_pool: dict[PoolLabel, dict[Key, None]] = {}

    def of_pool(self, pool: PoolLabel) -> list[PodView]:
        """Return a pool's Pods; `server` is the label's value."""
        return [self._pods[key].view for key in self._of_pool.get(pool, ())]

    def update(self, body: Mapping[str, Any]) -> None:
        """Store a Pod that a list or watch reports."""
        before = self._pods.get(key_of(body))
        now = self._store(body)
        if now is not None and (before is None or before.view != now.view):
            self._notify(before, now)

    def patched(self, body: Mapping[str, Any]) -> None:
        """Store the response to a patch of ours; changes of what we patch, routes and the gate, are not reported."""
        before = self._pods.get(key_of(body))
        if before is None or before.view.uid != body["metadata"]["uid"]:
            return  # deleted: the response was slower than the watch
        now = self._store(body)
        if now is None:
            return
        same = before.view
        view = replace(now.view, routes=same.routes, ejected=same.ejected, settled=same.settled)
        if (now.pool, view) != (before.pool, before.view):
            self._notify(before, now)

    def _notify(self, before: _CachedPod | None, now: _CachedPod) -> None:
        for pool in {now.pool, before.pool if before is not None else now.pool}:
            self._changed(pool)

    def _store(self, body: Mapping[str, Any]) -> _CachedPod | None:
        """Store and return a Pod; None where a newer version is cached."""
        key, metadata = key_of(body), body["metadata"]
        before, version = self._pods.get(key), int(metadata["resourceVersion"])
        if before is not None and before.view.uid == metadata["uid"] and version <= before.version:
            return None
        pool = (key[0], sys.intern((metadata.get("labels") or {}).get(self._pool_label, "")))
        if before is not None and before.pool != pool:
            self._forget(key)
        cached = self._pods[key] = _CachedPod(version, pool, pod_view(body))
        self._of_pool.setdefault(pool, {})[key] = None
        return cached

    def delete(self, body: Mapping[str, Any]) -> None:
        """Remove a Pod that a watch reports as deleted."""
        key = key_of(body)
        before = self._pods.get(key)
        if before is not None and before.view.uid == body["metadata"]["uid"]:
            self._forget(key)
            self._changed(before.pool)

    def retain(self, namespace: str, keys: Collection[Key]) -> None:
        """Remove the namespace's (empty: all) other Pods."""
        for key in [cached for cached in self._pods if cached not in keys and namespace in ("", cached[0])]:
            pool = self._pods[key].pool
            self._forget(key)
            self._changed(pool)

    def _forget(self, key: Key) -> None:
        pool = self._pods.pop(key).pool
        pods = self._of_pool[pool]
        pods.pop(key, None)
        if not pods:
            del self._of_pool[pool]


class ForeignGpus:
    """GPUs that other Pods use, by Pod with its node. `is_ours` decides by a Pod's metadata."""

    def __init__(self, changed: Callable[[], None], is_ours: Callable[[Mapping[str, Any]], bool]) -> None:
        self._changed, self._is_ours = changed, is_ours
        self._usage: dict[Key, tuple[str, Mapping[str, int]]] = {}

    def by_node(self) -> dict[str, dict[str, int]]:
        """Return the used GPUs and slices as `PodGpus`, without nodes that have none."""
        by_node: dict[str, dict[str, int]] = {}
        for (namespace, name), (node, counts) in self._usage.items():
            for resource, count in counts.items():
                by_node.setdefault(pods_key(node, resource), {})[f"{namespace}/{name}"] = count
        return by_node

    def update(self, body: Mapping[str, Any]) -> None:
        """Record the GPUs of a Pod that a list or watch reports."""
        node = (body.get("spec") or {}).get("nodeName", "")
        ended = (body.get("status") or {}).get("phase") in _ENDED
        counts = {} if ended or not node or self._is_ours(body["metadata"]) else gpus_of(body["spec"])
        self._set(key_of(body), (sys.intern(node), counts) if counts else None)

    def delete(self, body: Mapping[str, Any]) -> None:
        """Remove a Pod that a watch reports as deleted."""
        self._set(key_of(body), None)

    def retain(self, namespace: str, keys: Collection[Key]) -> None:
        """Remove the namespace's (empty: all) other Pods."""
        for key in [user for user in self._usage if user not in keys and namespace in ("", user[0])]:
            self._set(key, None)

    def _set(self, key: Key, usage: tuple[str, Mapping[str, int]] | None) -> None:
        if self._usage.get(key) == usage:
            return
        if usage is None:
            del self._usage[key]
        else:
            self._usage[key] = usage
        self._changed()


def pod_view(body: Mapping[str, Any]) -> PodView:
    """Return the cached form of one of Argosy's Pods."""
    metadata, status = body["metadata"], body.get("status") or {}
    containers = {container.get("name"): container for container in status.get("containerStatuses") or ()}
    terminating, routes = "deletionTimestamp" in metadata, routes_of(metadata)
    return PodView(
        name=metadata["name"],
        uid=metadata["uid"],
        server=sys.intern((metadata.get("labels") or {}).get(SERVER_LABEL, "")),
        ready=any(c.get("type") == "Ready" and c.get("status") == "True" for c in status.get("conditions") or ()),
        server_ready=bool(containers.get(SERVER, {}).get("ready")),
        terminating=terminating,
        routes=routes.names,
        ejected=routes.ejected,
        settled=is_settled(status),
        error="" if terminating else pod_error(status),
        created=datetime.fromisoformat(metadata["creationTimestamp"]),
        address=status.get("podIP") or "",
        unscheduled_since=unscheduled_since(status),
    )


def gpus_of(spec: Mapping[str, Any]) -> dict[str, int]:
    """Return the GPUs and slices that a Pod with this spec uses, by resource: its containers' sum, or an init
    container's if that is more.
    """
    together: dict[str, int] = {}
    for container in spec.get("containers") or ():
        for resource, count in _gpus(container).items():
            together[resource] = together.get(resource, 0) + count
    for container in spec.get("initContainers") or ():
        for resource, count in _gpus(container).items():
            together[resource] = max(count, together.get(resource, 0))
    return together


def _gpus(container: Mapping[str, Any]) -> dict[str, int]:
    resources = container.get("resources") or {}
    amounts = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    counts = ((resource, str(amount)) for resource, amount in amounts.items() if _is_gpu(resource))
    return {resource: int(text) for resource, text in counts if text.isdecimal() and int(text)}


def _is_gpu(resource: str) -> bool:
    return resource == GPU_RESOURCE or resource.startswith(MIG_RESOURCES)
