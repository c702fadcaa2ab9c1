"""Clusters for tests: started, or the reason why not is the reason to skip, or to fail where nothing may be skipped."""

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from e2e.cluster import Cluster, ClusterUnavailableError
from e2e.cluster.policy import Machine, Verdict, verdict


def give_up(reason: object, *, may_be_brought: bool = True) -> NoReturn:
    """Skip the test that runs for `reason`, or fail it under CI=true."""
    outcome, line = verdict(Machine.here(), str(reason), may_be_brought=may_be_brought)
    if outcome is Verdict.FAIL:
        pytest.fail(line, pytrace=False)
    pytest.skip(line)


def started(start: Callable[[Path], Cluster], folder: Path) -> Cluster:
    """Start a cluster by `Cluster.control_plane` or `Cluster.with_node`, to be ended by `with`."""
    try:
        return start(folder)
    except ClusterUnavailableError as error:
        give_up(error)
