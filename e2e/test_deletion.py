"""Whatever is deleted in whatever order: in the end nothing of it is left, and nothing blocks."""

from collections.abc import Iterator

import pytest

from e2e.asking.client import Client
from e2e.asking.namespace import Namespace
from e2e.cluster import Cluster
from e2e.declared.resources import pair, pool, version_model
from e2e.deployed import release
from e2e.deployed.builds import Images

pytestmark = pytest.mark.timeout(600)

POOL, MODELS, ENSEMBLE = "servingpool/gone", ("inferencemodel/first", "inferencemodel/second"), "ensemble/both"


@pytest.fixture
def served(namespace: Namespace, storage: str) -> None:
    namespace.apply(
        pool("gone"),
        version_model("first", "gone", storage),
        version_model("second", "gone", storage),
        pair("both", "gone", "first", "second"),
    )
    namespace.ready()


def _nothing_is_left(namespace: Namespace) -> None:
    namespace.until("nothing of ours", lambda: not namespace.own())


def test_the_pool_before_its_models(namespace: Namespace, served: None) -> None:
    namespace("delete", POOL, "--timeout=60s", timeout_s=70)
    namespace.says(MODELS[0], "Ready", "False", "UnknownPool")
    namespace.until("no Pod of the pool", lambda: not namespace.server_pods("gone"))
    namespace("delete", *MODELS, ENSEMBLE, "--timeout=60s", timeout_s=70)
    _nothing_is_left(namespace)


def test_models_before_their_ensemble(namespace: Namespace, client: Client, served: None) -> None:
    namespace("delete", MODELS[0], "--timeout=60s", timeout_s=70)
    namespace.says(ENSEMBLE, "Ready", "False", "InvalidGraph")
    namespace.ready(MODELS[1])
    assert client.version(MODELS[1]) == [1]
    namespace("delete", MODELS[1], ENSEMBLE, POOL, "--timeout=60s", timeout_s=70)
    _nothing_is_left(namespace)


def test_all_at_once(namespace: Namespace, served: None) -> None:
    namespace("delete", ENSEMBLE, POOL, *MODELS, "--timeout=60s", timeout_s=70)
    _nothing_is_left(namespace)


def test_a_namespace_with_all_that_is_in_it(cluster: Cluster, installed: None, storage: str) -> None:
    namespace = Namespace(cluster, "test-deletion-whole")
    namespace.create()
    namespace.apply(pool("gone"), version_model("first", "gone", storage))
    namespace.ready()
    namespace.delete()
    assert namespace.name not in cluster.kubectl("get", "namespaces", "-o", "name")


@pytest.fixture
def uninstalled(cluster: Cluster, images: Images, served: None) -> Iterator[None]:
    """Uninstall the release, and install it again for the other tests."""
    try:
        release.uninstall(cluster)
        yield
    finally:
        release.install(cluster, release.values(images))


def test_servers_go_on_without_the_operator(namespace: Namespace, client: Client, uninstalled: None) -> None:
    assert client.version(ENSEMBLE) == [1, 1]
    assert len(namespace.names()) == 4
    namespace("delete", ENSEMBLE, *MODELS, POOL, "--timeout=60s", timeout_s=70)
    _nothing_is_left(namespace)
