"""Prometheus's own promtool, which reads rules and tests them."""

import subprocess
from pathlib import Path

from e2e.cluster import ClusterUnavailableError
from e2e.starting import give_up
from tests.peers import prometheus


def promtool(*words: str | Path) -> str:
    """Run promtool and return its output. Raises AssertionError with its message; skips the test where it is absent."""
    try:
        program = Path(prometheus.install()).with_name("promtool")
    except ClusterUnavailableError as error:
        give_up(error)
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
