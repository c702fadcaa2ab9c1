"""The reports of a build: changed by its progress, and written now and then while it goes on, and at its end."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from argosy_agent.contract.builddocuments import report_text
from argosy_agent.contract.builds import BuildReport, BuildState
from argosy_agent.publisher import PublishError

from .contract import Progress

LOG = logging.getLogger(__name__)
EVERY_S = 2.0
"""The least time between two reports."""
PAUSE_S = 1.0
"""Between two tries of the last one."""
JOIN_S = 30.0


class Reporter:
    """Writes reports in a thread of its own, so that a target that hangs does not delay the build.

    `write` takes a report's text and raises PublishError. A failure is logged once.
    """

    def __init__(self, write: Callable[[str], None], every_s: float = EVERY_S) -> None:
        self._write, self._every_s = write, every_s
        self._newest: BuildReport | None = None
        self._changed, self._closed = threading.Event(), threading.Event()
        self._message = ""
        self._thread = threading.Thread(target=self._run, name="reporter", daemon=True)
        self._thread.start()

    def offer(self, report: BuildReport) -> None:
        """Offer the present report for writing."""
        self._newest = report
        self._changed.set()

    def close(self, last: BuildReport, within_s: float) -> bool:
        """Write the last report, trying for so long. Whether it was written; nothing is reported after it."""
        self._closed.set()
        self._changed.set()
        self._thread.join(JOIN_S)
        until = time.monotonic() + within_s
        while not self._wrote(last):
            if time.monotonic() >= until:
                return False
            time.sleep(PAUSE_S)
        return True

    def _run(self) -> None:
        while not self._closed.is_set():
            self._changed.wait()
            self._changed.clear()
            if self._newest is not None and not self._closed.is_set():
                self._wrote(self._newest)
                self._closed.wait(self._every_s)

    def _wrote(self, report: BuildReport) -> bool:
        try:
            self._write(report_text(report))
        except PublishError as error:
            if str(error) != self._message:
                self._message = str(error)
                LOG.warning("the report cannot be written, and is tried again: %s", error)
            return False
        self._message = ""
        return True


LINE = 300
"""So many characters of a tool's line go into a report."""


class Course:
    """The report, passed to `offer` whenever it changes. Percents only grow."""

    def __init__(self, offer: Callable[[BuildReport], None], report: BuildReport) -> None:
        self._offer, self.report = offer, report

    def update(self, **fields: Any) -> None:
        """Change fields of the report."""
        changed = replace(self.report, **fields)
        if changed != self.report:
            self.report = changed
            self._offer(changed)

    def during(self, phase: str, start: int, end: int, state: BuildState = BuildState.BUILDING) -> Progress:
        """Begin a phase from `start` to `end` percent of the build, and return the function for its progress."""
        self.update(state=state, phase=phase, percent=max(self.report.percent, start), line="")

        def progress(percent: int, line: str) -> None:
            overall = start + (end - start) * min(percent, 100) // 100 if percent >= 0 else 0
            shown = _printable(line) if line else self.report.line
            self.update(percent=max(self.report.percent, overall), line=shown)

        return progress


def _printable(line: str) -> str:
    return "".join(character if character.isprintable() else " " for character in line).strip()[:LINE]
