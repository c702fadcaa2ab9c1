"""The age of each server's report. Pure.

An agent writes its state again every half minute, each time with another time of its own clock. Clocks of two machines
are never compared: a report is as old as the time, by the operator's clock, since that number last changed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from argosy.planning.facts import ServerReport

EXPIRY = timedelta(seconds=120)
"""The age at which a report expires: four consecutive writes are missing."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The agent's time in a server's report, and when a round first saw it."""

    written_at: int
    since: datetime


@dataclass(frozen=True, slots=True)
class ReportExpiry:
    """The last reports of one pool's servers, by server."""

    seen: Mapping[str, Seen] = field(default_factory=dict)

    def after(self, reports: Iterable[ServerReport], now: datetime) -> "ReportExpiry":
        """Return the state after a round at `now`. Servers without a report or without its time have no age."""
        reported = {report.name: Seen(report.written_at, now) for report in reports if report.written_at}
        return ReportExpiry({name: self._older(name, seen) for name, seen in reported.items()})

    def marked(self, reports: Iterable[ServerReport], now: datetime) -> tuple[ServerReport, ...]:
        """Return the reports, with expired ones marked."""
        return tuple(
            replace(report, expired=True) if self._has_expired(report.name, now) else report for report in reports
        )

    def next_expiry(self, now: datetime) -> datetime | None:
        """Return when the next report expires unless a newer one comes; None where none will."""
        due = [seen.since + EXPIRY for name, seen in self.seen.items() if not self._has_expired(name, now)]
        return min(due, default=None)

    def _older(self, name: str, seen: Seen) -> Seen:
        before = self.seen.get(name)
        return before if before is not None and before.written_at == seen.written_at else seen

    def _has_expired(self, name: str, now: datetime) -> bool:
        seen = self.seen.get(name)
        return seen is not None and now - seen.since >= EXPIRY
