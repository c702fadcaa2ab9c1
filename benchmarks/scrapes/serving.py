"""What a scrape costs the server that answers it: CPU time, and how long its loop does nothing else meanwhile."""

import asyncio
import gc
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import uvloop

from argosy_runtime.telemetry.exposition import exposition
from argosy_runtime.telemetry.parts import in_parts

from .models import Models, families_of


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds of CPU time: of all of it, and of the longest stretch in which nothing else was done."""

    cpu_ms: float
    longest_ms: float


def scrape_costs(models: int, active: float, rounds: int) -> dict[str, Cost]:
    """Return the medians of rounds that alternate: the text made `at_once`, and `in_parts` as the server makes it."""
    gc.collect()
    gc.freeze()  # what is imported and no more, as the server does before it loads models
    fleet = Models(models, active)
    fleet.answer()
    gc.collect()

    async def at_once() -> int:
        return len(exposition(families_of(fleet.series)))

    async def parted() -> int:
        size = 0
        async for piece in in_parts(fleet.series, families_of, list):
            size += len(piece)
        return size

    async def measure() -> dict[str, list[Cost]]:
        assert await at_once() == await parted()
        ways = {"at_once": at_once, "in_parts": parted}
        costs: dict[str, list[Cost]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, way in ways.items():
                costs[name].append(await _cost(way))
        return costs

    every = uvloop.run(measure())
    return {
        name: Cost(statistics.median(c.cpu_ms for c in costs), statistics.median(c.longest_ms for c in costs))
        for name, costs in every.items()
    }


async def _cost(way: Callable[[], Awaitable[int]]) -> Cost:
    stretches: list[float] = []

    async def others() -> None:
        """Take a turn whenever there is one."""
        before = time.process_time()
        while True:
            await asyncio.sleep(0)
            before, last = time.process_time(), before
            stretches.append(before - last)

    other = asyncio.create_task(others())
    await asyncio.sleep(0)
    begun = time.process_time()
    await way()
    taken = time.process_time() - begun
    await asyncio.sleep(0)
    other.cancel()
    return Cost(1e3 * taken, 1e3 * max(stretches))
