"""Pods, as little of each as is needed: ours, and who else holds GPUs. Pure but for what they tell."""

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from argosy.api.pool.podtemplate import SERVER
from argosy.cluster.cache.indexer import PoolLabel
from argosy.cluster.cache.pods.pod_trouble import pod_trouble, unscheduled_since
from argosy.cluster.cache.pods.routing import is_settled, routes_of
from argosy.cluster.client.kinds import Key, key_of
from argosy.render.workloads import POOL_LABEL, SERVER_LABEL
from argosy.render.workloads.pods.containers import GPU_RESOURCE

_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class PodView:
    """A server's Pod, or an activator's.

    `ready` is the Pod, its gate included, `server_ready` the server's container alone; `routes` are the names that its
    labels say it may be asked for, and no Service leads to those of them that are `ejected`; `settled` its gate;
    `trouble` why it does not run, in words; `address` its IP, empty before it has one; `unscheduled_since`: since when
    no node takes it, None where one did.
    """

    name: str
    uid: str
    server: str
    ready: bool
    server_ready: bool
    terminating: bool
    routes: frozenset[str]
    settled: bool
    trouble: str
    created: datetime
    address: str = ""
    ejected: frozenset[str] = frozenset()
    unscheduled_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Known:
    version: int
    pool: PoolLabel
    view: PodView


class PodCache:
    """Pods of ours, each of the pool that a label of it names."""

    def __init__(self, changed: Callable[[PoolLabel], None], pool_label: str = POOL_LABEL) -> None:
        self._changed, self._pool_label = changed, pool_label
        self._pods: dict[Key, _Known] = {}
        self._of_pool: dict[PoolLabel, dict[Key, None]] = {}

    def of_pool(self, pool: PoolLabel) -> list[PodView]:
        """Return a pool's Pods; `server` is the label's value."""
        return [self._pods[key].view for key in self._of_pool.get(pool, ())]

    def seen(self, body: Mapping[str, Any]) -> None:
        """A watch says that it stands like this."""
        before = self._pods.get(key_of(body))
        now = self._take(body)
        if now is not None and (before is None or before.view != now.view):
            self._tell(before, now)

    def learned(self, body: Mapping[str, Any]) -> None:
        """An answer says that it stands like this; what we write ourselves, routes and the gate, is no news."""
        before = self._pods.get(key_of(body))
        if before is None or before.view.uid != body["metadata"]["uid"]:
            return  # it is gone: the answer was slower than the watch
        now = self._take(body)
        if now is None:
            return
        same = before.view
        view = replace(now.view, routes=same.routes, ejected=same.ejected, settled=same.settled)
        if (now.pool, view) != (before.pool, before.view):
            self._tell(before, now)

    def _tell(self, before: _Known | None, now: _Known) -> None:
        for pool in {now.pool, before.pool if before is not None else now.pool}:
            self._changed(pool)

    def _take(self, body: Mapping[str, Any]) -> _Known | None:
        """What is known of it now; None where something newer was known."""
        key, metadata = key_of(body), body["metadata"]
        before, version = self._pods.get(key), int(metadata["resourceVersion"])
        if before is not None and before.view.uid == metadata["uid"] and version <= before.version:
            return None
        pool = (key[0], sys.intern((metadata.get("labels") or {}).get(self._pool_label, "")))
        if before is not None and before.pool != pool:
            self._forget(key)
        known = self._pods[key] = _Known(version, pool, pod_view(body))
        self._of_pool.setdefault(pool, {})[key] = None
        return known

    def gone(self, body: Mapping[str, Any]) -> None:
        """A watch says that it is no more."""
        key = key_of(body)
        before = self._pods.get(key)
        if before is not None and before.view.uid == body["metadata"]["uid"]:
            self._forget(key)
            self._changed(before.pool)

    def only(self, namespace: str, keys: Collection[Key]) -> None:
        """In the namespace (empty: in all) there are just these."""
        for key in [each for each in self._pods if each not in keys and namespace in ("", each[0])]:
            pool = self._pods[key].pool
            self._forget(key)
            self._changed(pool)

    def _forget(self, key: Key) -> None:
        pool = self._pods.pop(key).pool
        known = self._of_pool[pool]
        known.pop(key, None)
        if not known:
            del self._of_pool[pool]


class GpuHolders:
    """Pods that are not ours and hold GPUs: which, how many, on which node. `is_ours` tells by a Pod's metadata."""

    def __init__(self, changed: Callable[[], None], is_ours: Callable[[Mapping[str, Any]], bool]) -> None:
        self._changed, self._is_ours = changed, is_ours
        self._held: dict[Key, tuple[str, int]] = {}

    def by_node(self) -> dict[str, dict[str, int]]:
        """Return GPUs that are held, by node and Pod (`namespace/name`); nodes with none are not named."""
        found: dict[str, dict[str, int]] = {}
        for (namespace, name), (node, count) in self._held.items():
            found.setdefault(node, {})[f"{namespace}/{name}"] = count
        return found

    def seen(self, body: Mapping[str, Any]) -> None:
        """A watch says that it stands like this."""
        node = (body.get("spec") or {}).get("nodeName", "")
        ended = (body.get("status") or {}).get("phase") in _ENDED
        count = 0 if ended or not node or self._is_ours(body["metadata"]) else gpus_of(body["spec"])
        self._set(key_of(body), (sys.intern(node), count) if count else None)

    def gone(self, body: Mapping[str, Any]) -> None:
        """A watch says that it is no more."""
        self._set(key_of(body), None)

    def only(self, namespace: str, keys: Collection[Key]) -> None:
        """In the namespace (empty: in all) there are just these."""
        for key in [each for each in self._held if each not in keys and namespace in ("", each[0])]:
            self._set(key, None)

    def _set(self, key: Key, held: tuple[str, int] | None) -> None:
        if self._held.get(key) == held:
            return
        if held is None:
            del self._held[key]
        else:
            self._held[key] = held
        self._changed()


def pod_view(body: Mapping[str, Any]) -> PodView:
    """Return what is kept of a Pod of ours."""
    metadata, status = body["metadata"], body.get("status") or {}
    containers = {each.get("name"): each for each in status.get("containerStatuses") or ()}
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
        trouble="" if terminating else pod_trouble(status),
        created=datetime.fromisoformat(metadata["creationTimestamp"]),
        address=status.get("podIP") or "",
        unscheduled_since=unscheduled_since(status),
    )


def gpus_of(spec: Mapping[str, Any]) -> int:
    """Return the GPUs that a Pod with this spec holds: its containers' together, or an init container's if more."""
    together = sum(_gpus(container) for container in spec.get("containers") or ())
    before = (_gpus(container) for container in spec.get("initContainers") or ())
    return max(together, *before, 0)


def _gpus(container: Mapping[str, Any]) -> int:
    resources = container.get("resources") or {}
    asked = (resources.get("limits") or {}).get(GPU_RESOURCE) or (resources.get("requests") or {}).get(GPU_RESOURCE)
    text = str(asked or "")
    return int(text) if text.isdecimal() else 0
