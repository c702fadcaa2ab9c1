"""What tests of several parts share: one API server; and how they are dealt out to workers."""

from collections.abc import Iterator
from typing import Any

import pytest
from e2e.cluster import Cluster
from e2e.starting import started


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """An API server with its controllers and no node. Every test has namespaces of its own there."""
    with started(Cluster.control_plane, tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Asked for only where there are workers."""
    from tests.workers import Scheduling

    return Scheduling(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A worker's tests in the order in which they are dealt out."""
    if hasattr(config, "workerinput"):
        from tests.workers import rank

        items.sort(key=lambda item: rank(item.nodeid))
