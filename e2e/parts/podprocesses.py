"""The processes of a Pod on this machine's node: found by its control groups, so that a test can kill one."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def kill(pod: dict[str, Any], words: str) -> int:
    """Send SIGKILL to the Pod's one process that has these words in its command line; return its pid."""
    pids = find(pod, words)
    assert len(pids) == 1, f"{len(pids)} processes of {pod['metadata']['name']} have {words!r} in their command line"
    os.kill(pids[0], signal.SIGKILL)
    return pids[0]


def find(pod: dict[str, Any], words: str) -> list[int]:
    """Return the pids of the Pod's processes that have these words in their command line."""
    return [pid for pid, line in _processes(pod["metadata"]["uid"]) if words in line]


def _processes(uid: str) -> Iterator[tuple[int, str]]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if uid in (process / "cgroup").read_text():
                yield int(process.name), (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (FileNotFoundError, ProcessLookupError):
            continue
