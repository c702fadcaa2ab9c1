"""Running a tool: its output is shown as it comes, and its last lines explain a failure."""

import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence

from .errors import EnvironmentFailedError

Report = Callable[[str], None]
"""Takes a line about the progress."""

_LAST_LINES = 12


def run(command: Sequence[str], what: str, report: Report) -> None:
    """Run a command. On a terminal it draws its own progress, elsewhere `report` gets its lines.

    Raises EnvironmentFailedError with `what` it was to do.
    """
    on_terminal = sys.stderr.isatty()
    output = None if on_terminal else subprocess.PIPE
    last: deque[str] = deque(maxlen=_LAST_LINES)
    try:
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT if output else None, text=True
        ) as process:
            for line in process.stdout or ():
                last.append(line.rstrip())
                report(line.rstrip())
    except OSError as error:
        raise EnvironmentFailedError(f"cannot {what}: {error}") from error
    if process.returncode:
        shown = ", see above" if on_terminal else "".join(f"\n  {line}" for line in last)
        raise EnvironmentFailedError(
            f"cannot {what}: {os.path.basename(command[0])} ended with {process.returncode}{shown}"
        )


def python_fails(python: str, code: str, seconds: float) -> str:
    """Run code by an interpreter. Return the last line of its error output, "" where it succeeds."""
    try:
        done = subprocess.run(
            [python, "-I", "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
    return lines[-1] if done.returncode else ""
