"""Running a tool as a child process: its output is progress, and its end is explained."""

import ctypes
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError
from argosy_runtime.failures.out_of_memory import oom_kills

from .causes import Cause, explained

BUSY = 0.01
"""Less than this share of a processor is not work: threads that wait for one another wake up now and then."""


class Liveness:
    """The activity of a process; `silence_s` is how long it may do nothing. Times are in seconds."""

    def __init__(self, now: float, silence_s: float) -> None:
        self._silence_s = silence_s
        self._since, self._used = now, 0.0

    def spoke(self, now: float) -> None:
        """Take note that it wrote something."""
        self._since = now

    def computed(self, now: float, used: float) -> None:
        """Take note of the processor time `used` since it began, its children's too."""
        if used - self._used >= BUSY * self._silence_s or used < self._used:
            self._since, self._used = now, used

    def is_over(self, now: float) -> bool:
        """Return whether it has done nothing for too long."""
        return now - self._since >= self._silence_s


LAST_LINES = 200
"""So many of the last lines are searched for causes."""
LINE = 2000
"""The most characters of a line; the rest is cut."""
GRACE_S = 5.0
"""Between SIGTERM and SIGKILL."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a tool may neither say nor compute anything, and how often that is looked at. Seconds.

    How long a build may take in all is not a tool's matter: the frame ends it.
    """

    silence_s: float = 900.0
    look_s: float = 1.0


def tool(
    command: Sequence[str],
    progress: Callable[[str], None],
    *,
    name: str = "",
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    causes: Sequence[Cause] = (),
    limits: Limits = Limits(),  # frozen
) -> None:
    """Run a command to its end, and pass each line of its output, errors too, to `progress`; `name` is for people.

    `environment` is laid over this process's. Raises BuildError: BUILDER_MISSING where there is no such program,
    DEADLINE_EXCEEDED where it hangs, else by `causes`, the common ones and its exit status. Whatever ends this call
    ends the tool and its children.
    """
    name = name or Path(command[0]).name
    lines: deque[str] = deque(maxlen=LAST_LINES)
    kills = oom_kills()
    with _started(command, name, folder, environment) as child:
        live = Liveness(time.monotonic(), limits.silence_s)
        for line in _lines(child, live, name, limits):
            lines.append(line)
            progress(line)
        status = child.wait()
    if status:
        raise explained(name, status, tuple(lines), causes, ran_out_of_memory=oom_kills() > kills)


@contextmanager
def _started(
    command: Sequence[str], name: str, folder: Path | None, environment: Mapping[str, str] | None
) -> "Iterator[subprocess.Popen[bytes]]":
    try:
        child = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (FileNotFoundError, PermissionError) as error:
        raise BuildError(
            BuildFailure.BUILDER_MISSING,
            f"{name} cannot be run: {error.strerror}: {command[0]}; set engine.image to an image that has it",
        ) from error
    with child:
        try:
            yield child
        finally:
            end(child)


def end(child: "subprocess.Popen[bytes]") -> None:
    """End a process and its session."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)
        if child.poll() is not None:
            continue
        with suppress(subprocess.TimeoutExpired):
            child.wait(GRACE_S)


def _lines(child: "subprocess.Popen[bytes]", live: Liveness, name: str, limits: Limits) -> Iterator[str]:
    """Yield its lines as they come, until its output ends. A progress bar that is drawn repeatedly is many lines."""
    assert child.stdout is not None
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        ended = False
        while True:
            if not selector.select(0 if ended else limits.look_s):
                if ended:  # and all is read that it said; a grandchild may hold the pipe
                    break
                _check_alive(child, live, name, limits)
                ended = child.poll() is not None
                continue
            part = os.read(child.stdout.fileno(), 65536)
            if not part:
                break
            live.spoke(time.monotonic())
            *complete, rest = (rest + part).replace(b"\r", b"\n").split(b"\n")
            yield from filter(None, map(_text, complete))
            rest = rest[-LINE:]
    if text := _text(rest):
        yield text


def _text(line: bytes) -> str:
    return line[:LINE].decode(errors="replace").rstrip()


def _check_alive(child: "subprocess.Popen[bytes]", live: Liveness, name: str, limits: Limits) -> None:
    now = time.monotonic()
    live.computed(now, _used(child.pid))
    if live.is_over(now):
        raise BuildError(
            BuildFailure.DEADLINE_EXCEEDED,
            f"{name} hangs: it has said and computed nothing for {limits.silence_s:g} s; it was ended, "
            "try other engine.options or another engine.image",
        )


def _used(pid: int) -> float:
    """Return the processor seconds that a process and its children have used."""
    try:
        process = psutil.Process(pid)
        times = [usage.cpu_times() for usage in (process, *process.children(recursive=True))]
    except psutil.Error:
        return 0.0
    return float(sum(usage.user + usage.system + usage.children_user + usage.children_system for usage in times))


_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Have the kernel end this process with the one that started it (Linux)."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
