"""The parent of the agent: real processes, ended in every way."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.acceptance.running import environment, wait_for

from argosy_agent.sync.supervisor import BACKOFF_MOST_S, pause_s

PARENT = """
import logging, sys
from argosy_agent.sync import supervisor as supervise
logging.basicConfig(level="INFO", format="%(message)s")
supervise.BACKOFF_FIRST_S = supervise.BACKOFF_MOST_S = 0.02
print("up", flush=True)
sys.exit(supervise.Supervisor((sys.executable, *sys.argv[1:])).run())
"""
SLEEPER = """
import os, signal, sys
def end(*_):
    open(sys.argv[1] + ".ended", "w").close()
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
with open(sys.argv[1], "a") as runs:
    runs.write(f"{os.getpid()}\\n")
while True:
    signal.pause()
"""
DEAF = SLEEPER.replace("signal.signal(signal.SIGTERM, end)", "signal.signal(signal.SIGTERM, signal.SIG_IGN)")
CRASHES = """
import sys
with open(sys.argv[1], "a") as runs:
    runs.write("x\\n")
sys.exit(7)
"""


class Parent:
    """A running parent, and what its child writes."""

    def __init__(self, folder: Path, child: str) -> None:
        self.runs = folder / "runs"
        self._log = folder / "log"
        command = [sys.executable, "-c", PARENT, "-c", child, str(self.runs)]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(command, env=environment(), stdout=log, stderr=subprocess.STDOUT)

    @property
    def log(self) -> str:
        """The agent's log."""
        return self._log.read_text()

    def run(self, count: int) -> str:
        """Return what the `count`-th child has written."""
        wait_for(lambda: self.runs.exists() and self.runs.read_text().count("\n") >= count, lambda: self.log)
        return self.runs.read_text().splitlines()[count - 1]


@pytest.fixture
def parents() -> Iterator[list[Parent]]:
    """Yield a list of parents that a test starts; end them with their children afterwards."""
    started: list[Parent] = []
    yield started
    for parent in started:
        if parent.process.poll() is None:
            children = psutil.Process(parent.process.pid).children()
            parent.process.kill()
            parent.process.wait()
            for child in children:
                child.kill()


def start(parents: list[Parent], folder: Path, child: str) -> Parent:
    """Start one more parent."""
    parents.append(Parent(folder, child))
    return parents[-1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_child_in_order_and_then_the_parent(
    parents: list[Parent], tmp_path: Path, number: int
) -> None:
    parent = start(parents, tmp_path, SLEEPER)
    child = int(parent.run(1))
    parent.process.send_signal(number)
    assert parent.process.wait(60) == 0
    assert (tmp_path / "runs.ended").exists()
    assert not psutil.pid_exists(child)


def test_a_second_signal_kills_a_child_that_does_not_listen(parents: list[Parent], tmp_path: Path) -> None:
    parent = start(parents, tmp_path, DEAF)
    child = int(parent.run(1))
    parent.process.terminate()
    wait_for(lambda: "SIGTERM: the agent is asked to end" in parent.log, lambda: parent.log)
    parent.process.terminate()
    assert parent.process.wait(60) == 0
    assert not psutil.pid_exists(child)


def test_a_killed_child_is_started_again(parents: list[Parent], tmp_path: Path) -> None:
    parent = start(parents, tmp_path, SLEEPER)
    for count in (1, 2, 3):
        os.kill(int(parent.run(count)), signal.SIGKILL)
    parent.run(4)
    assert parent.process.poll() is None
    assert parent.log.count("the agent was ended by SIGKILL") == 3


def test_a_child_that_crashes_on_and_on_never_ends_the_parent(parents: list[Parent], tmp_path: Path) -> None:
    parent = start(parents, tmp_path, CRASHES)
    parent.run(6)
    assert parent.process.poll() is None
    assert "the agent exited with code 7" in parent.log
    parent.process.terminate()
    assert parent.process.wait(60) == 0


def test_pauses_grow_and_a_long_run_forgives() -> None:
    assert [pause_s(crashes, 1.0) for crashes in (1, 2, 3)] == [0.5, 1.0, 2.0]
    assert pause_s(1000, 1.0) == BACKOFF_MOST_S
    assert pause_s(5, 60.0) == 0.0
