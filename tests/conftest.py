"""One API server for tests of several parts, and the distribution of tests to workers."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.cluster import Cluster
from e2e.starting import started
from tests.properties import load_profiles

load_profiles()

HATCH_BUILD = Path(__file__).resolve().parents[1] / "hatch_build.py"
ENDS = pytest.StashKey[list[Callable[[], None]]]()


def pytest_configure(config: pytest.Config) -> None:
    """Fail if compiled modules were made of other sources than those next to them."""
    if not hasattr(config, "workerinput"):
        subprocess.run([sys.executable, str(HATCH_BUILD), "stale"], check=True)


@pytest.fixture(scope="session")
def end_early(pytestconfig: pytest.Config) -> Callable[[Callable[[], None]], None]:
    """Return a function that adds the end of what only tests of one group (tests/workers.py) share: in a worker it ends
    after the last of them, and not with the session. An API server at rest takes a tenth of a core. To end it twice
    has to be fine.
    """
    return pytestconfig.stash.setdefault(ENDS, []).append


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End what the next tests do not share with these."""
    ends = item.config.stash.get(ENDS, [])
    if not ends or nextitem is None or not hasattr(item.config, "workerinput"):
        return
    from tests.workers import share

    if share(nextitem.nodeid) != share(item.nodeid):
        while ends:
            ends.pop()()


@pytest.fixture(scope="session")
def control_plane(
    end_early: Callable[[Callable[[], None]], None], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Yield an API server with its controllers and no node. Every test has namespaces of its own there."""
    with started(Cluster.control_plane, tmp_path_factory.mktemp("cluster")) as cluster:
        end_early(cluster.down)
        yield cluster


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Return the scheduler; called only where there are workers."""
    from tests.workers import Scheduling

    return Scheduling(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort a worker's tests in the order in which they are dealt out."""
    if hasattr(config, "workerinput"):
        from tests.workers import rank

        items.sort(key=lambda item: rank(item.nodeid))
