"""Waits for states that no event announces."""

import asyncio
from collections.abc import Callable

PATIENCE_S = 60.0


async def until(condition: Callable[[], object]) -> None:
    """Wait until the condition holds. Raises TimeoutError after a minute."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110  (what is waited for has no event)
            await asyncio.sleep(0.002)
