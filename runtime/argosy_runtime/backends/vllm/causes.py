"""Why a process of vLLM's ended, from its last words on standard error. Pure.

The error that vLLM raises in the process that started it names no cause: "See root cause above". That stands in a
traceback, which a process logs when it ends, and which multiprocessing prints after `Process NAME:`.
"""

import re
from collections.abc import Iterable
from typing import Final

LONGEST_CAUSE: Final = 1000
"""Characters of a cause: it becomes part of a status."""

_COLOR: Final = re.compile(r"\x1b\[[0-9;]*m")
_PREFIX: Final = re.compile(r"^\(([^()]*pid=\d+)\) ?(?:[A-Z]+ \d\d-\d\d \d\d:\d\d:\d\d \[[^\]]*\] ?)?")
"""The process in front of each line of vLLM's log, with the time and place of a record."""
_END: Final = re.compile(
    r"^(?:Process \S+:|EngineCore failed to start\.|EngineCore encountered a fatal error\."
    r"|WorkerProc failed to start\.|WorkerProc failed\.)$"
)
"""The lines in front of the traceback of a process that ends. Tracebacks of requests that failed have others."""
_TRACEBACK: Final = "Traceback (most recent call last):"
_POINTER: Final = re.compile(r"\bsee (?:the )?(?:root cause|stack trace)", re.IGNORECASE)
"""Words of exceptions that only point to another one."""


def cause_of(lines: Iterable[str]) -> str:
    """Return the exception, as its traceback names it, that the first of the processes ended with.

    An exception that only points to the one of another process does not count. Return "" where there is none, as of a
    process that was killed.
    """
    tracebacks: dict[str, _Tracebacks] = {}
    causes: list[_Tracebacks] = []
    for line in lines:
        process, words = _split(line)
        if _END.match(words):
            tracebacks[process] = _Tracebacks()
            causes.append(tracebacks[process])
        elif process in tracebacks:
            tracebacks[process].read(words)
    exceptions = (ended.exception for ended in causes)
    return next((text[:LONGEST_CAUSE] for text in exceptions if text and not _POINTER.search(text)), "")


class _Tracebacks:
    """The tracebacks of one exception and of those that it came from. `exception`: the last one's, "" so far."""

    def __init__(self) -> None:
        self.exception = ""
        self._is_inside = False

    def read(self, line: str) -> None:
        if line == _TRACEBACK:
            self._is_inside = True
        elif self._is_inside and line and not line[0].isspace():
            self.exception, self._is_inside = line, False


def _split(line: str) -> tuple[str, str]:
    """Return the process that wrote a line, "" where it does not say, and its words."""
    plain = _COLOR.sub("", line).rstrip()
    prefix = _PREFIX.match(plain)
    return ("", plain) if prefix is None else (prefix[1], plain[prefix.end() :])
