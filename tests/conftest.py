"""What tests of several parts share: one API server."""

from collections.abc import Iterator

import pytest
from e2e.cluster import Cluster
from e2e.starting import started


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """An API server with its controllers and no node. Every test has namespaces of its own there."""
    with started(Cluster.control_plane, tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster
