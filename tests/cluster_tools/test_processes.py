"""Processes are known by pid and start time, and ended only when both fit."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from e2e.cluster.errors import ClusterError
from e2e.cluster.processes import Processes, parse_stat
from e2e.cluster.waiting import poll

SLEEP = [sys.executable, "-c", "import time; print('here', flush=True); time.sleep(120)"]


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path)
    yield made
    made.stop()


@pytest.mark.parametrize(("letter", "state"), [("S", "running"), ("R", "running"), ("Z", "dead"), ("X", "dead")])
def test_the_stat_line_of_a_program_with_a_strange_name(letter: str, state: str) -> None:
    between = " ".join(str(number) for number in range(4, 22))
    assert parse_stat(f"71 (a) Z (b)) {letter} {between} 4711 0 0") == (state, 4711)


def test_a_started_process_is_recovered_and_ended(processes: Processes, tmp_path: Path) -> None:
    started = processes.start("sleeper", SLEEP)
    again = Processes(tmp_path).get("sleeper")
    assert again == started
    assert again is not None
    assert again.alive()
    Processes(tmp_path).stop()
    assert not started.alive()
    assert processes.all() == []


def test_starting_twice_starts_once(processes: Processes) -> None:
    assert processes.start("sleeper", SLEEP) == processes.start("sleeper", SLEEP)


def test_a_process_that_has_our_pid_and_another_start_is_not_ours(processes: Processes, tmp_path: Path) -> None:
    other = processes.start("other", SLEEP)
    record = tmp_path / "pids" / "other.json"
    stale = json.loads(record.read_text())
    record.write_text(json.dumps({**stale, "start_ticks": stale["start_ticks"] - 1}))
    processes.stop()
    assert processes.all() == []
    assert other.alive()
    record.write_text(json.dumps(stale))


def test_an_ended_process_is_named_with_the_end_of_its_log(processes: Processes) -> None:
    process = processes.start("broken", [sys.executable, "-c", "print('the reason'); raise SystemExit(3)"])
    assert poll(lambda: not process.alive(), 60)
    with pytest.raises(ClusterError, match=r"broken ended(.|\n)*the reason"):
        processes.must_live("broken")


def test_a_process_that_minds_no_sigterm_is_killed(processes: Processes, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    code = f"import signal, time; signal.signal(15, signal.SIG_IGN); open({str(ready)!r}, 'w').close(); time.sleep(120)"
    process = processes.start("stubborn", [sys.executable, "-c", code])
    assert poll(ready.exists, 60)
    processes.stop(grace_s=0.2)
    assert not process.alive()


def test_every_process_runs_in_a_session_of_its_own(processes: Processes) -> None:
    assert os.getsid(processes.start("sleeper", SLEEP).pid) != os.getsid(0)


def test_a_paused_process_stands_still_and_goes_on(processes: Processes) -> None:
    process = psutil.Process(processes.start("sleeper", SLEEP).pid)
    with processes.paused("sleeper"):
        assert poll(lambda: process.status() == psutil.STATUS_STOPPED, 60)
    assert poll(lambda: process.status() == psutil.STATUS_SLEEPING, 60)
