"""A new version under load: it is loaded next to the old one, and no request fails meanwhile.

The tests build on one another, in their order.
"""

import time

import pytest

from e2e.asking.client import Client
from e2e.asking.namespace import Namespace
from e2e.asking.watcher import watching
from e2e.cluster import Cluster
from e2e.declared.resources import pair, pool, runtime, version_model

pytestmark = pytest.mark.timeout(600)

LOAD_S = 3.0
MODEL = "inferencemodel/first"
PROXY_DELAY_S = 20
"""How late kube-proxy is on a node that has too much to do."""


@pytest.fixture(scope="module", autouse=True)
def served(namespace: Namespace, client: Client, storage: str) -> None:
    namespace.apply(
        pool("rolling"),
        version_model("first", "rolling", storage, load_s=LOAD_S),
        version_model("second", "rolling", storage),
        pair("both", "rolling", "first", "second"),
    )
    namespace.ready()


def test_a_version_takes_over_without_a_failed_request(namespace: Namespace, client: Client, storage: str) -> None:
    with watching(namespace.access, namespace.name, "inferencemodels", "first") as seen, client.load(MODEL) as load:
        namespace.apply(version_model("first", "rolling", storage, 2, load_s=LOAD_S))
        namespace.ready(MODEL)
    assert load.failed == []
    assert load.sent > 20
    assert load.answers() == [[[1]], [[2]]]
    assert seen.false_readiness() == []
    assert ("False", "RollingOut") in seen.conditions("Ready")


def test_a_version_of_a_step_reaches_the_ensemble_without_a_failed_request(
    namespace: Namespace, client: Client, storage: str
) -> None:
    assert client.version("ensemble/both") == [2, 1]
    with client.load("ensemble/both") as load:
        namespace.apply(version_model("second", "rolling", storage, 2))
        namespace.ready("inferencemodel/second", "ensemble/both")
        namespace.until("the new version", lambda: client.version("ensemble/both") == [2, 2], 30)
    assert load.failed == []
    assert load.answers() == [[[2], [1]], [[2], [2]]]


def test_a_version_that_cannot_be_had_leaves_the_one_that_serves(
    namespace: Namespace, client: Client, storage: str
) -> None:
    missing = {"storageUri": f"{storage}/models/none.tar"}
    with client.load(MODEL) as load:
        namespace.apply(version_model("first", "rolling", storage, 3, load_s=LOAD_S, **missing))
        message = namespace.says(MODEL, "Loaded", "False", "DownloadFailed")
    assert "404" in message
    assert load.failed == []
    assert load.answers() == [[[2]]]
    namespace.apply(version_model("first", "rolling", storage, 4, load_s=LOAD_S))
    namespace.ready(MODEL)
    assert client.version(MODEL) == [4]


def test_a_new_server_template_is_not_noticed_by_requests_to_two_replicas(
    cluster: Cluster, namespace: Namespace, client: Client, storage: str
) -> None:
    """Even where kube-proxy goes on sending requests to a Pod that is on its way out."""
    assert cluster.node is not None
    namespace.apply(version_model("first", "rolling", storage, 4, minReplicas=2))
    namespace.ready(MODEL)
    before = namespace.server_uids("rolling")
    assert len(before) == 2
    changed = pool("rolling", runtime=runtime(OMP_NUM_THREADS="1", CHANGED="1"))
    with client.load(MODEL, seconds=300) as load:
        with cluster.node.processes.paused("kube-proxy"):
            namespace.apply(changed)
            namespace.until("a Pod on its way out", lambda: len(before & namespace.server_uids("rolling")) < 2)
            time.sleep(PROXY_DELAY_S)
        namespace.until("new Pods alone", lambda: not before & namespace.server_uids("rolling"))
        namespace.ready()
    assert load.failed == []
    assert load.answers() == [[[4]]]
