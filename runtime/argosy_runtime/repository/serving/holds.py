"""Ensembles' requests on their way, which will need a version of a model after it has left service."""

import asyncio


class Holds:
    """Counts them, so that the version can wait for the last."""

    def __init__(self) -> None:
        self._count = 0
        self._none: asyncio.Event | None = None

    def add(self) -> None:
        """One has begun."""
        self._count += 1

    def remove(self) -> None:
        """One is over."""
        self._count -= 1
        if not self._count and self._none is not None:
            self._none.set()

    async def wait_for_none(self, seconds: float) -> None:
        """Wait until none is left, or the time is over."""
        if not self._count:
            return
        self._none = asyncio.Event()
        try:
            await asyncio.wait_for(self._none.wait(), seconds)
        except TimeoutError:
            return
