"""GPUs that a pool gives up to Pods which are not its own: a server whose Pod finds no node does not have its GPUs."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from argosy.planning.facts import CurrentServer, Device, ServerReport
from argosy.planning.nodes.reservations import devices

PATIENCE = timedelta(seconds=60)
"""How long a server's Pod may find no node before its GPUs are conceded: Pods that end need a while, too."""


def conceded(servers: Iterable[CurrentServer], reports: Iterable[ServerReport], now: datetime) -> set[Device]:
    """Return the GPUs of the servers whose Pods have found no node for longer than the patience."""
    stuck = {
        report.name for report in reports if report.unscheduled_since and now >= report.unscheduled_since + PATIENCE
    }
    return devices(server for server in servers if server.name in stuck)


def next_concession(reports: Iterable[ServerReport], now: datetime) -> datetime | None:
    """Return when the patience with the next Pod ends, if any waits."""
    ends = (report.unscheduled_since + PATIENCE for report in reports if report.unscheduled_since)
    return min((end for end in ends if end > now), default=None)
