"""What ends while a new leader reads it is not taken over; no API server."""

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
WANTED: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"namespace": KEY[0], "name": KEY[1], "labels": LABELS},
    "spec": {"type": "ClusterIP"},
}
FIELDS = {"f:metadata": {"f:labels": {f"f:{name}": {} for name in LABELS}}, "f:spec": {"f:type": {}}}


def live(version: int, uid: str = "u") -> dict[str, Any]:
    """Return the object as an earlier operator applied it."""
    entry = {"manager": MANAGER, "operation": "Apply", "apiVersion": "v1", "fieldsV1": FIELDS}
    metadata = {**WANTED["metadata"], "uid": uid, "resourceVersion": str(version), "managedFields": [entry]}
    return {**WANTED, "metadata": metadata}


class Changing:
    """An API server whose object is deleted, and made anew where it is said so, before its answer arrives."""

    def __init__(self, made_again: bool) -> None:
        self.indexer = Indexer(SERVICE, lambda _: None)
        self.indexer.seen(live(5))
        self.made_anew = made_again
        self.applied: list[str] = []

    async def get(self, kind: Kind, key: Key, metadata_only: bool = False) -> dict[str, Any]:
        """Answer with what stood, which the watch knows to be gone."""
        answer = live(5)
        if not metadata_only:
            self.indexer.gone(live(6))
            if self.made_anew:
                self.indexer.seen({**live(7, "v"), "spec": {"type": "NodePort"}})
        return answer

    async def apply(self, kind: Kind, body: dict[str, Any], manager: str) -> dict[str, Any]:
        """Note whom it is for."""
        self.applied.append(body["metadata"].get("uid", ""))
        return live(8, "v")


@pytest.mark.parametrize("made_again", [False, True])
async def test_what_ended_meanwhile_is_not_taken_over(made_again: bool) -> None:
    server = Changing(made_again)
    cache: Any = type("Cache", (), {"indexer": lambda _, kind: server.indexer, "indexers": lambda _: [server.indexer]})
    applier = Applier(cast(Connection, server), cast(ClusterCache, cache()))
    await applier.apply(POOL, [WANTED], {})
    registered = server.indexer.get(KEY)
    assert registered is not None
    assert registered.uid == "v"
    assert len(server.applied) == 1
