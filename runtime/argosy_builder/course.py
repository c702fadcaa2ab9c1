"""How far a build is: its report, changed by what happens. Pure."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from argosy_agent.contract.builds import BuildReport, BuildState

from .contract import Progress

LINE = 300
"""So many characters of a tool's line go into a report."""


class Course:
    """The report as it is, told to `offer` whenever it changes. Percents only grow."""

    def __init__(self, offer: Callable[[BuildReport], None], report: BuildReport) -> None:
        self._offer, self.report = offer, report

    def known(self, **fields: Any) -> None:
        """These of the report's fields are known now."""
        changed = replace(self.report, **fields)
        if changed != self.report:
            self.report = changed
            self._offer(changed)

    def during(self, phase: str, start: int, end: int, state: BuildState = BuildState.BUILDING) -> Progress:
        """A phase begins that goes from `start` to `end` percent of the whole; who it is tells its own progress."""
        self.known(state=state, phase=phase, percent=max(self.report.percent, start), line="")

        def told(percent: int, line: str) -> None:
            whole = start + (end - start) * min(percent, 100) // 100 if percent >= 0 else 0
            said = _printable(line) if line else self.report.line
            self.known(percent=max(self.report.percent, whole), line=said)

        return told


def _printable(line: str) -> str:
    return "".join(character if character.isprintable() else " " for character in line).strip()[:LINE]
