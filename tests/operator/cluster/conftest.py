"""A real API server with Argosy's CRDs, and what tests have of it."""

from collections.abc import AsyncIterator, Iterator

import pytest
from e2e.cluster import Cluster
from tests.operator.cluster.harness import Declared, Requests, declare, model_body, pool_body

from argosy.api.crd.crds import crd_files
from argosy.cluster.client.connection import Connection


@pytest.fixture(scope="session")
def cluster(control_plane: Cluster) -> Cluster:
    """Return a control plane with Argosy's CRDs."""
    for text in crd_files().values():
        control_plane.apply(text)
    control_plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    return control_plane


@pytest.fixture
def requests() -> Requests:
    return Requests()


@pytest.fixture
async def connection(cluster: Cluster, requests: Requests) -> AsyncIterator[Connection]:
    async with Connection.open(cluster.kubeconfig, on_request=requests) as opened:
        yield opened


_namespaces = iter(range(1_000_000))


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """Yield a namespace of the test's own."""
    name = f"test-{next(_namespaces)}"
    cluster.kubectl("create", "namespace", name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def declared(cluster: Cluster, namespace: str) -> Declared:
    """Return a pool with one model."""
    pool = declare(cluster, pool_body(namespace))
    return Declared(pool, (declare(cluster, model_body(namespace, "embedder")),))
