"""The progress of a build: its report, changed by events. Pure."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from argosy_agent.contract.builds import BuildReport, BuildState

from .contract import Progress

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
