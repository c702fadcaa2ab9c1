"""The source of measurements."""

from datetime import datetime
from typing import Protocol

from argosy.autoscaling.metrics.signals import PoolSignals

from .targets import PoolTargets


class SignalSource(Protocol):
    """Reads one pool again and again, and keeps the readings that rates are computed from.

    Requests that wait at activators are not measured: they are added from the activators' reports.
    """

    async def read(self, pool: PoolTargets, now: datetime) -> PoolSignals:
        """Return the present signals. Never raises: the result's `error` has the reason if nothing could be read."""

    async def close(self) -> None:
        """Close all connections."""
