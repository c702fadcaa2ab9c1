"""A fleet that churned is consolidated under load: a real node, GPUs on paper, real servers, no failed request."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from e2e.asking.client import Client
from e2e.asking.namespace import Namespace
from e2e.cluster import Cluster
from e2e.cluster.node.node import NAME as NODE
from e2e.cluster.standins.gpus import Gpus, offer_gpus
from e2e.declared.resources import Body, pool, version_model

pytestmark = pytest.mark.timeout(900)

POOL = "servingpool/repacked"
SIZES = {"large-a": "40Gi", "large-b": "40Gi", "large-c": "40Gi", "small-a": "20Gi", "small-b": "20Gi"}
ON_NO_DEVICE = [{"kind": "KIND_MODEL", "count": 1}]
"""KIND_MODEL leaves it to the model which device it uses, here none."""
MOVED_S = 240.0


def repacked(mode: str) -> Body:
    return pool("repacked", packing={"consolidate": mode, "consolidateAfter": "5s"})


@pytest.fixture(scope="module", autouse=True)
def fleet(namespace: Namespace, cluster: Cluster, storage: str) -> Iterator[list[str]]:
    """Serve models on three GPUs, of which two would do once the large ones next to small ones have left. Yield those
    that stay.
    """
    offer_gpus(cluster, NODE, Gpus(count=3))
    models = (
        version_model(name, "repacked", storage, footprint={"gpuMemory": size}, instanceGroups=ON_NO_DEVICE)
        for name, size in SIZES.items()
    )
    namespace.apply(repacked("Off"), *models)
    namespace.ready()
    servers = {name: namespace.status(f"inferencemodel/{name}")["placement"][0]["server"] for name in SIZES}
    small = {servers[name] for name in SIZES if name.startswith("small")}
    gone = [name for name in SIZES if name.startswith("large") and servers[name] in small]
    namespace("delete", "inferencemodel", *gone)
    namespace.until("the fleet at rest", lambda: namespace.status(POOL)["gpus"]["used"] == 3, MOVED_S)
    yield [name for name in SIZES if name not in gone]
    offer_gpus(cluster, NODE, Gpus(count=0))


def test_recommend_names_what_would_come_free(namespace: Namespace) -> None:
    namespace.apply(repacked("Recommend"))
    namespace.until("a recommendation", lambda: consolidation(namespace).get("gpus") == 1, MOVED_S)
    assert len(consolidation(namespace)["moves"]) == 1
    assert len(namespace.server_uids("repacked")) == 3


def test_auto_frees_it_and_no_request_fails(namespace: Namespace, client: Client, fleet: list[str]) -> None:
    with ExitStack() as loads:
        sent = [loads.enter_context(client.load(f"inferencemodel/{name}", 600, workers=2)) for name in fleet]
        namespace.apply(repacked("Auto"))
        namespace.until("a free GPU", lambda: namespace.status(POOL)["gpus"]["used"] == 2, MOVED_S)
        namespace.until("two servers", lambda: len(namespace.server_uids("repacked")) == 2, MOVED_S)
    assert [load.failed for load in sent] == [[]] * len(fleet)
    assert all(load.sent > 0 for load in sent)
    done = consolidation(namespace)
    assert [record["moves"] for record in done["lastHour"]] == [1]
    events = namespace.read("events", "--field-selector=involvedObject.name=repacked")["items"]
    assert {"ConsolidationMoving", "ConsolidationMoved"} <= {event["reason"] for event in events}
    namespace.ready()


def consolidation(namespace: Namespace) -> Body:
    """Return what the pool's status says of its consolidation."""
    status: Body = namespace.status(POOL).get("consolidation") or {}
    return status
