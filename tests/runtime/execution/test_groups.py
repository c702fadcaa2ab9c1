"""Processes and files that a model's process leaves behind are removed with it."""

import asyncio
import ctypes
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy_runtime.execution.process.groups import Groups

PR_SET_CHILD_SUBREAPER = 36
SHARES = """
from multiprocessing.shared_memory import SharedMemory
import os
print(SharedMemory(create=True, size=1000).name, flush=True)
os._exit(3)
"""
LEAVES = """
import os, signal, subprocess, sys
signal.signal(signal.SIGTERM, getattr(signal, sys.argv[1]))
print(subprocess.Popen(["sleep", "1000"]).pid, flush=True)
os._exit(0)
"""


SHARES_ON = SHARES.replace("os._exit(3)", "import time\ntime.sleep(1000)")


@pytest.fixture
def heir() -> Iterator[None]:
    """Let this process inherit orphans, as the first process of a container does."""
    assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    yield
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@pytest.fixture
def groups() -> Iterator[Groups]:
    """Yield the groups of this test."""
    groups = Groups()
    yield groups
    groups.close()


def left_behind(groups: Groups, code: str, *arguments: str) -> str:
    """Return what a leader prints before it ends; then end its group."""
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, text=True) as leader:
        groups.add(leader.pid)
        assert leader.stdout is not None
        output = leader.stdout.readline().strip()
    asyncio.run(groups.end(leader.pid))
    return output


@pytest.mark.parametrize("on_terminate", ["SIG_DFL", "SIG_IGN"])
def test_orphans_end_and_are_no_zombies(heir: None, groups: Groups, on_terminate: str) -> None:
    orphan = Path("/proc", left_behind(groups, LEAVES, on_terminate))
    end = time.monotonic() + 30
    while orphan.exists():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_shared_memory_of_a_process_goes_with_the_server(groups: Groups) -> None:
    command = [sys.executable, "-c", SHARES_ON]
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, text=True) as leader:
        groups.add(leader.pid)
        assert leader.stdout is not None
        name = leader.stdout.readline().strip()
        # What the guard sees of a server's end, however it ends.
        groups.close()
        assert leader.wait() < 0
    assert not Path("/dev/shm", name.lstrip("/")).exists()


def test_shared_memory_of_a_process_that_crashed_is_taken_away(groups: Groups) -> None:
    name = left_behind(groups, SHARES)
    assert not Path("/dev/shm", name.lstrip("/")).exists()
