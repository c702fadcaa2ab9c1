"""The end of tests that leave tasks behind."""

import asyncio
from collections.abc import AsyncIterator

import pytest


@pytest.fixture
async def cancelled_tasks() -> AsyncIterator[None]:
    """Cancel the tasks that a test leaves."""
    yield
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
