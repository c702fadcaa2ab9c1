"""The source of measurements."""

from datetime import datetime
from typing import Protocol

from argosy.autoscaling.metrics.signals import PoolSignals

from .targets import PoolTargets


class SignalSource(Protocol):
    """Reads one pool, again and again: rates are over the time between readings, which it remembers.

    Requests that activators hold are not measured: they are added from the activators' reports.
    """

    async def read(self, pool: PoolTargets, now: datetime) -> PoolSignals:
        """Return what is known now. It never raises for what it reads or cannot read: `error` says what is wrong."""

    async def close(self) -> None:
        """Let connections go."""
