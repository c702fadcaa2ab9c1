"""Waits for states that no event announces."""

import asyncio
import time
from collections.abc import Callable

PATIENCE_S = 60.0


async def until(condition: Callable[[], object]) -> None:
    """Wait until the condition holds. Raises TimeoutError after a minute."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110  (what is waited for has no event)
            await asyncio.sleep(0.002)


def wait(condition: Callable[[], object], pause_s: float) -> None:
    """Wait in this thread until the condition holds, pausing between checks. Raises TimeoutError after a minute."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(pause_s)
