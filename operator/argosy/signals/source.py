"""Who tells what was measured."""

from datetime import datetime
from typing import Protocol

from argosy.autoscaling.metrics.signals import PoolSignals
from argosy.autoscaling.metrics.targets import PoolTargets


class SignalSource(Protocol):
    """Reads one pool, again and again: rates are over the time between readings, which it remembers.

    What activators hold is not measured: whoever knows their words adds it.
    """

    async def read(self, pool: PoolTargets, now: datetime) -> PoolSignals:
        """Return what is known now. It never raises for what it is told or not told: `trouble` says what is wrong."""

    async def close(self) -> None:
        """Let connections go."""
