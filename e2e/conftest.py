"""A real node with the release on it, once for all tests here; a namespace and a client for each file of tests.

`python -m e2e.cluster up` before the tests makes them use that cluster and leave it as it is, which saves half a
minute each time; without it they start one of their own and end it.
"""

import secrets
from collections.abc import Iterator

import pytest

from e2e.asking.client import Client
from e2e.asking.namespace import Namespace
from e2e.cluster import Cluster
from e2e.deployed import builds, release
from e2e.deployed.builds import Images
from e2e.starting import started
from e2e.storage import pod as storage_pod

PULL_POLICY = "Never"


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield a control plane and a real node."""
    cluster = Cluster.attach()
    if cluster is not None and cluster.node is not None and cluster.ready():
        yield cluster
        return
    with started(Cluster.with_node, tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="package")
def images(cluster: Cluster) -> Images:
    """Return the images, on the node."""
    assert cluster.node is not None
    return builds.build(cluster.node.containerd)


@pytest.fixture(scope="package")
def storage(cluster: Cluster, images: Images) -> str:
    """Return the storage's URL, as Pods reach it."""
    return storage_pod.start(cluster, images.storage, PULL_POLICY)


@pytest.fixture(scope="package")
def installed(cluster: Cluster, images: Images) -> None:
    """Install the chart's release with two replicas of the operator, and wait until both are ready."""
    release.install(cluster, release.values(images))


@pytest.fixture(scope="module")
def namespace(request: pytest.FixtureRequest, cluster: Cluster, installed: None) -> Iterator[Namespace]:
    """Yield a namespace named like the file of tests; it is deleted with all its objects while the next tests run."""
    file = request.module.__name__.rpartition(".")[2].replace("_", "-")
    made = Namespace(cluster, f"{file}-{secrets.token_hex(2)}")
    made.create()
    yield made
    made.delete(wait=False)


@pytest.fixture(scope="module")
def client(namespace: Namespace, images: Images) -> Iterator[Client]:
    """Yield a Pod that sends requests."""
    with Client(namespace, images.runtime, PULL_POLICY) as client:
        yield client
