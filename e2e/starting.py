"""Clusters for tests: started, or the reason why not is the reason to skip."""

from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.cluster import Cluster, ClusterUnavailableError


def started(start: Callable[[Path], Cluster], folder: Path) -> Cluster:
    """A cluster by `Cluster.control_plane` or `Cluster.with_node`, to be ended by `with`."""
    try:
        return start(folder)
    except ClusterUnavailableError as error:
        print(f"no cluster: {error}")
        pytest.skip(str(error))
