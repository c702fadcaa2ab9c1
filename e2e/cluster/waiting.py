"""Waiting for a condition of the outside world."""

import time
from collections.abc import Callable

from e2e.cluster.errors import ClusterError


def poll(condition: Callable[[], bool], timeout_s: float, every_s: float = 0.2) -> bool:
    """Ask until `condition` holds; False when it does not within `timeout_s` seconds."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(every_s)
    return True


def wait_for(what: str, condition: Callable[[], bool], timeout_s: float, every_s: float = 0.2) -> None:
    """Call `poll`; raise ClusterError that names what did not happen."""
    if not poll(condition, timeout_s, every_s):
        raise ClusterError(f"{what}: not within {timeout_s:.0f} s")
