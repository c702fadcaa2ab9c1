"""Objects that are deleted while a new leader reads them are not taken over; no API server."""

from typing import Any, cast

import pytest

from argosy.api.values.identity import PoolKey
from argosy.cluster.apply.applier import MANAGER, Applier
from argosy.cluster.cache.cluster_cache import ClusterCache
from argosy.cluster.cache.indexer import Indexer
from argosy.cluster.client.connection import Connection
from argosy.cluster.client.kinds import SERVICE, Key, Kind

KEY = ("team", "embedder")
POOL = PoolKey.of("team", "gpus")
LABELS = {"app.kubernetes.io/managed-by": "argosy", "argosy.dev/pool": "gpus"}
DESIRED: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"namespace": KEY[0], "name": KEY[1], "labels": LABELS},
    "spec": {"type": "ClusterIP"},
}
FIELDS = {"f:metadata": {"f:labels": {f"f:{name}": {} for name in LABELS}}, "f:spec": {"f:type": {}}}


def live(version: int, uid: str = "u") -> dict[str, Any]:
    """Return the object as an earlier operator applied it."""
    entry = {"manager": MANAGER, "operation": "Apply", "apiVersion": "v1", "fieldsV1": FIELDS}
    metadata = {**DESIRED["metadata"], "uid": uid, "resourceVersion": str(version), "managedFields": [entry]}
    return {**DESIRED, "metadata": metadata}


class Changing:
    """An API server whose object is deleted, and with `recreated` created again, before its response arrives."""

    def __init__(self, recreated: bool) -> None:
        self.indexer = Indexer(SERVICE, lambda _: None)
        self.indexer.update(live(5))
        self.recreated = recreated
        self.applied: list[str] = []

    async def get(self, kind: Kind, key: Key, metadata_only: bool = False) -> dict[str, Any]:
        """Return the former object, which the watch has reported as deleted."""
        answer = live(5)
        if not metadata_only:
            self.indexer.delete(live(6))
            if self.recreated:
                self.indexer.update({**live(7, "v"), "spec": {"type": "NodePort"}})
        return answer

    async def apply(self, kind: Kind, body: dict[str, Any], manager: str) -> dict[str, Any]:
        """Record the uid that is applied to."""
        self.applied.append(body["metadata"].get("uid", ""))
        return live(8, "v")


@pytest.mark.parametrize("recreated", [False, True])
async def test_a_deleted_object_is_not_taken_over(recreated: bool) -> None:
    server = Changing(recreated)
    cache: Any = type("Cache", (), {"indexer": lambda _, kind: server.indexer, "indexers": lambda _: [server.indexer]})
    applier = Applier(cast(Connection, server), cast(ClusterCache, cache()))
    await applier.apply(POOL, [DESIRED], {})
    registered = server.indexer.get(KEY)
    assert registered is not None
    assert registered.uid == "v"
    assert len(server.applied) == 1
