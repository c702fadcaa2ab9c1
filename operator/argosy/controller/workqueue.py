"""The workqueue is level-triggered: an event marks a pool, which is then reconciled from the current state.

Many marks are one round; a failed round is retried with back-off; every pool is reconciled at each resync.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Protocol

from argosy.api.values.identity import PoolKey
from argosy.cluster.client.errors import ApiError
from argosy_common.backoff import backoff_s

log = logging.getLogger(__name__)

SETTLE_S = 0.05
"""Seconds that a mark waits for others: kubectl apply of a folder, a burst of Pods."""
PAUSE_MOST_S = 0.5
RETRY_FIRST_S, RETRY_MOST_S = 0.5, 30.0


class Meter(Protocol):
    """Counts rounds; `Metrics` does."""

    def began(self, waited_s: float) -> None:
        """Observe how long a round waited after its first mark."""

    def ended(self, took_s: float, failed: bool) -> None:
        """Count a round that ended."""

    def waiting(self, pools: int) -> None:
        """Set how many pools are marked."""


Round = Callable[[PoolKey], Awaitable[datetime | None]]
"""Runs one round of a pool, by key, and returns when the next one is due, or None."""


class Workqueue:
    """Runs rounds: of one pool one after another, of several pools concurrently."""

    def __init__(self, round_: Round, pools: Callable[[], set[PoolKey]], meter: Meter, resync_s: float) -> None:
        self._round, self._pools, self._meter, self._resync_s = round_, pools, meter, resync_s
        self._items: dict[PoolKey, _Item] = {}
        self._tasks: asyncio.TaskGroup | None = None

    def add(self, pool: PoolKey | None) -> None:
        """Mark a pool, by its key, for a round; None marks every pool."""
        for key in self._pools() if pool is None else {pool}:
            item = self._items.get(key)
            if item is None:
                item = self._items[key] = _Item(key)
                if self._tasks is not None:
                    self._tasks.create_task(self._serve(item))
            item.mark()
        self._meter.waiting(sum(item.marked for item in self._items.values()))

    async def run(self) -> None:
        """Run rounds until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            for item in self._items.values():
                tasks.create_task(self._serve(item))
            self.add(None)
            while True:
                await asyncio.sleep(self._resync_s * random.uniform(0.9, 1.1))
                self.add(None)

    async def _serve(self, item: "_Item") -> None:
        """Run rounds of one pool, until it is neither declared nor has objects left."""
        pause = 0.0
        while item.marked or item.key in self._pools():
            await item.wait()
            await asyncio.sleep(max(SETTLE_S, pause))
            began = time.monotonic()
            self._meter.began(began - item.taken())
            wake = await self._try(item)
            took = time.monotonic() - began
            item.come_back(wake)
            self._meter.ended(took, item.failures > 0)
            self._meter.waiting(sum(other.marked for other in self._items.values()))
            pause = min(took / 4, PAUSE_MOST_S)  # a pool in a storm of events leaves some time to others
        del self._items[item.key]

    async def _try(self, item: "_Item") -> datetime | None:
        try:
            wake = await self._round(item.key)
        except Exception as error:  # whatever it is, the pool is tried again and the others go on
            item.failed(error)
            level = logging.WARNING if item.failures < 3 else logging.ERROR
            log.log(level, "pool %s: %s; tried again in %.1f s", item.key, error, item.pause_s, exc_info=_bug(error))
            return None
        item.failures = 0
        return wake


class _Item:
    """One pool's marks."""

    def __init__(self, key: PoolKey) -> None:
        self.key, self.failures, self.pause_s = key, 0, 0.0
        self.goes_on = False
        self._event = asyncio.Event()
        self._since = 0.0
        self._wake: float | None = None

    @property
    def marked(self) -> bool:
        """Whether a round is due."""
        return self._event.is_set()

    def mark(self) -> None:
        """Mark the pool: a round is due."""
        if not self._event.is_set():
            self._since = time.monotonic()
            self._event.set()

    def taken(self) -> float:
        """Clear the mark as a round begins. Return when it was set."""
        self._event.clear()
        return self._since

    async def wait(self) -> None:
        """Wait until a round is due.

        After an internal fault it is not due before the pause is over. Errors of the API server delay no other objects:
        those have their own back-off, and a mark makes a round due at once.
        """
        if self.failures and not self.goes_on:
            await asyncio.sleep(self.pause_s)
            self.mark()
        timeout = None if self._wake is None else max(0.0, self._wake - time.monotonic())
        if self.failures:
            timeout = self.pause_s
        try:
            async with asyncio.timeout(timeout):
                await self._event.wait()
        except TimeoutError:
            self.mark()

    def come_back(self, wake: datetime | None) -> None:
        """Set when a round is due without a mark."""
        after = None if wake is None else max(0.0, (wake - datetime.now(UTC)).total_seconds())
        self._wake = None if after is None else time.monotonic() + after

    def failed(self, error: Exception) -> None:
        """Count a failed round, and choose the pause before the next one."""
        self.failures += 1
        requested_pause = error.retry_after_s if isinstance(error, ApiError) else None
        pause = backoff_s(self.failures, RETRY_FIRST_S, RETRY_MOST_S) * random.uniform(0.8, 1.2)
        self.pause_s, self.goes_on = (
            pause if requested_pause is None else min(requested_pause, RETRY_MOST_S),
            requested_pause is not None,
        )


def _bug(error: Exception) -> bool:
    """Return whether to log the traceback: errors of the API server are no bugs."""
    return not type(error).__module__.startswith("argosy.cluster")
