"""Tools that end in every way there is, for real: the error gives the reason, and what to do."""

import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from e2e.cluster.waiting import wait_for

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError
from argosy_builder.process import Cause, Limits, tool, tools

QUICK = Limits(silence_s=0.6, look_s=0.05)


def run(script: str, **options: object) -> list[str]:
    lines: list[str] = []
    tool((sys.executable, "-c", script), lines.append, name="the tool", **options)  # type: ignore[arg-type]
    return lines


def failing(script: str, **options: object) -> BuildError:
    with pytest.raises(BuildError) as raised:
        run(script, **options)
    return raised.value


def test_every_line_is_reported_as_it_comes_errors_and_redrawn_bars_too() -> None:
    lines = run(
        "import sys; print('one'); sys.stderr.write('two\\n10%\\r20%\\r'); sys.stderr.flush(); print('last', end='')"
    )

    assert sorted(lines) == ["10%", "20%", "last", "one", "two"]


def test_its_environment_and_folder_are_the_ones_requested(tmp_path: Path) -> None:
    lines = run(
        "import os; print(os.getcwd(), os.environ['ASKED'], 'PATH' in os.environ)",
        folder=tmp_path,
        environment={"ASKED": "yes"},
    )

    assert lines == [f"{tmp_path} yes True"]


def test_a_crash_names_its_signal() -> None:
    error = failing("import os, signal; print('at layer 3'); os.kill(os.getpid(), signal.SIGSEGV)")

    assert error.failure is BuildFailure.CRASHED
    assert "the tool crashed (SIGSEGV)" in error.message
    assert "at layer 3" in error.message
    assert "engine.options" in error.message


def test_what_is_killed_from_outside_is_tried_again() -> None:
    error = failing("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")

    assert (error.failure, error.passes) == (BuildFailure.CRASHED, True)
    assert "engine.memory" in error.message


def test_an_exit_code_comes_with_the_last_words() -> None:
    error = failing("print('first'); print('no such layer'); raise SystemExit(3)")

    assert error.failure is BuildFailure.BUILD_FAILED
    assert error.message == "the tool failed with exit code 3; its last words: first | no such layer"


def test_the_last_line_of_a_tool_that_ends_during_a_look_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def used(pid: int) -> float:
        while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
        return 0.0

    monkeypatch.setattr(tools, "_used", used)

    error = failing("import time; time.sleep(0.5); print('the reason'); exit(3)", limits=Limits(look_s=0.05))

    assert "the reason" in error.message


def test_a_builders_own_causes_come_before_the_common_ones() -> None:
    table = (
        Cause(r"no (\w+) kernel", BuildFailure.UNSUPPORTED_MODEL, "the model has {0}, leave it out ({line})"),
        Cause(r"never said", BuildFailure.DISK_FULL, "wrong"),
    )

    error = failing("print('MemoryError'); print('  there is no Mish kernel'); print('bye'); exit(1)", causes=table)

    assert error.failure is BuildFailure.UNSUPPORTED_MODEL
    assert error.message == "the tool: the model has Mish, leave it out (there is no Mish kernel)"


def limited(which: int, most: int, script: str) -> str:
    return f"import resource; resource.setrlimit({which}, ({most}, {most}))\n{script}"


def test_no_space_on_the_disk() -> None:
    full = failing("open('/dev/full', 'w', 1).write('x\\n')")
    limit = failing(
        limited(
            resource.RLIMIT_FSIZE,
            4096,
            "import signal, tempfile; signal.signal(signal.SIGXFSZ, signal.SIG_DFL); "
            "f = tempfile.TemporaryFile(); f.write(bytes(65536)); f.flush()",
        )
    )

    assert full.failure is limit.failure is BuildFailure.DISK_FULL


def test_no_memory_left() -> None:
    error = failing(limited(resource.RLIMIT_AS, 2**28, "bytearray(2**30)"))

    assert error.failure is BuildFailure.OUT_OF_MEMORY
    assert "engine.memory" in error.message


def test_what_neither_says_nor_computes_anything_is_ended() -> None:
    error = failing("import time; print('begun', flush=True); time.sleep(600)", limits=QUICK)

    assert error.failure is BuildFailure.DEADLINE_EXCEEDED
    assert "hangs" in error.message


def test_what_computes_in_silence_does_not_hang() -> None:
    run("import time; end = time.monotonic() + 1.5\nwhile time.monotonic() < end: pass", limits=QUICK)


def test_a_program_that_is_not_there_is_reported_at_once() -> None:
    with pytest.raises(BuildError, match=r"engine\.image") as raised:
        tool(("/no/such/trtllm-build",), print)

    assert raised.value.failure is BuildFailure.BUILDER_MISSING


def test_whatever_ends_the_call_ends_the_tool_and_its_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tool ignores SIGTERM, and has a child."""
    script = (
        "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
        "print(child.pid, flush=True); time.sleep(600)"
    )
    pids: list[int] = []

    def interrupt(line: str) -> None:
        pids.append(int(line))
        raise KeyboardInterrupt

    monkeypatch.setattr("argosy_builder.process.tools.GRACE_S", 0.2)
    with pytest.raises(KeyboardInterrupt):
        tool((sys.executable, "-c", script), interrupt)

    (pid,) = pids
    wait_for("the end of the tool's child", lambda: _is_gone(pid), 5, every_s=0.01)


def _is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_signal_to_this_process_ends_the_wait() -> None:
    """As SIGTERM ends a build: what its handler raises comes out of the call."""

    class Stopped(BaseException):
        pass

    def stop(number: int, frame: object) -> None:
        raise Stopped

    before = signal.signal(signal.SIGUSR1, stop)
    try:
        with pytest.raises(Stopped):
            tool(
                (sys.executable, "-c", "import time; print('begun', flush=True); time.sleep(600)"),
                lambda line: threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)).start(),
            )
    finally:
        signal.signal(signal.SIGUSR1, before)
