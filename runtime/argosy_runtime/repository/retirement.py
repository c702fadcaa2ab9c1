"""Versions on their way out: each answers what it has accepted, then releases what it holds."""

import asyncio

from .records import UNLOADED, ModelRecord, State, VersionRecord
from .served import ServedVersion


class Retirement:
    """Closes versions in the background. `grace` is how many seconds each may take to answer what it has accepted."""

    def __init__(self, grace: float) -> None:
        self.grace = grace
        self._closings: set[asyncio.Task[None]] = set()

    def retire(self, record: ModelRecord, version: int) -> None:
        """Take one version out of service; no new request finds it from now on."""
        held = record.versions[version]
        if held.served is None:
            held.state, held.reason = State.UNAVAILABLE, UNLOADED
            return
        served, held.served = held.served, None
        held.state = State.UNLOADING
        self.close(served, held)

    def close(self, served: ServedVersion, held: VersionRecord | None = None) -> None:
        """Close what no longer serves; `held` is its record, where it has one still."""
        task = asyncio.get_running_loop().create_task(self._close(served, held))
        self._closings.add(task)
        task.add_done_callback(self._closings.discard)

    async def _close(self, served: ServedVersion, held: VersionRecord | None) -> None:
        await served.close(self.grace)
        if held is not None and held.state is State.UNLOADING:
            held.state, held.reason = State.UNAVAILABLE, UNLOADED

    async def finished(self) -> None:
        """Wait until everything is closed."""
        await asyncio.gather(*self._closings)
