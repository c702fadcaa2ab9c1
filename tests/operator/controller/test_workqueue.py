"""Marks become rounds: bursts are one, failures come back, nothing is lost."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from tests.operator.controller.fakes import FakeMeter
from tests.waiting import until

from argosy.cluster.client.errors import UnreachableError
from argosy.controller import workqueue as module
from argosy.controller.workqueue import Workqueue


class Counting:
    """Rounds that do what a test tells them, and are counted."""

    def __init__(self) -> None:
        self.rounds: list[str] = []
        self.meter = FakeMeter()
        self.pools = {"n/p"}
        self.answer: Callable[[str], datetime | None] = lambda key: None
        self.slow = asyncio.Event()
        self.slow.set()

    async def once(self, key: str) -> datetime | None:
        """Count one round."""
        self.rounds.append(key)
        await self.slow.wait()
        return self.answer(key)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    """Replace the real pauses by short ones and count them."""
    monkeypatch.setattr(module, "RETRY_FIRST_S", 0.01)
    monkeypatch.setattr(module, "SETTLE_S", 0.01)
    return Counting()


async def running(counting: Counting, resync_s: float = 3600.0) -> tuple[Workqueue, asyncio.Task[None]]:
    """Start a workqueue and wait for its first rounds."""
    queue = Workqueue(counting.once, lambda: set(counting.pools), counting.meter, resync_s)
    task = asyncio.create_task(queue.run())
    await until(lambda: len(counting.rounds) >= len(counting.pools))
    return queue, task


async def ended(task: asyncio.Task[None]) -> None:
    """End it."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_burst_of_marks_is_one_round(counting: Counting) -> None:
    queue, task = await running(counting)
    for _ in range(1000):
        queue.add("n/p")
    await until(lambda: len(counting.rounds) == 2)
    await asyncio.sleep(0.1)
    assert len(counting.rounds) == 2
    await ended(task)


async def test_a_mark_during_a_round_is_another_round(counting: Counting) -> None:
    queue, task = await running(counting)
    counting.slow.clear()
    queue.add("n/p")
    await until(lambda: len(counting.rounds) == 2)
    queue.add("n/p")
    counting.slow.set()
    await until(lambda: len(counting.rounds) == 3)
    await ended(task)


async def test_what_fails_comes_back_and_holds_up_no_other_pool(counting: Counting) -> None:
    counting.pools = {"n/p", "n/q"}
    wrong = {"n/p"}

    def answer(key: str) -> None:
        if key in wrong:
            raise RuntimeError("the API server is away")

    counting.answer = answer
    queue, task = await running(counting)
    await until(lambda: counting.rounds.count("n/p") >= 3)
    assert counting.rounds.count("n/q") == 1
    queue.add("n/q")
    await until(lambda: counting.rounds.count("n/q") == 2)
    wrong.clear()
    seen = counting.rounds.count("n/p")
    await until(lambda: counting.rounds.count("n/p") > seen)
    settled = counting.rounds.count("n/p")
    await asyncio.sleep(0.1)
    assert counting.rounds.count("n/p") <= settled + 1
    assert counting.meter.failures >= 2
    await ended(task)


async def test_a_refused_object_delays_no_event_of_the_pool(counting: Counting) -> None:
    def answer(key: str) -> None:
        error = UnreachableError(429, "TooManyRequests", "try later")
        error.retry_after_s = 3600.0
        raise error

    counting.answer = answer
    queue, task = await running(counting)
    await until(lambda: len(counting.rounds) == 1)
    for desired in (2, 3, 4, 5, 6):
        queue.add("n/p")
        await until(lambda desired=desired: len(counting.rounds) >= desired)
    await ended(task)


async def test_a_round_says_when_to_come_back(counting: Counting) -> None:
    times = [datetime.now(UTC) + timedelta(seconds=0.05), None]
    counting.answer = lambda key: times.pop(0) if times else None
    _, task = await running(counting)
    await until(lambda: len(counting.rounds) == 2)
    await asyncio.sleep(0.1)
    assert len(counting.rounds) == 2
    await ended(task)


async def test_every_pool_is_looked_at_now_and_then(counting: Counting) -> None:
    _, task = await running(counting, resync_s=0.05)
    await until(lambda: len(counting.rounds) >= 4)
    await ended(task)


async def test_a_pool_that_is_gone_is_forgotten_after_its_last_round(counting: Counting) -> None:
    queue, task = await running(counting)
    counting.pools = set()
    queue.add("n/p")
    await until(lambda: len(counting.rounds) == 2)
    await until(lambda: not queue._items)
    counting.pools = {"n/p"}
    queue.add("n/p")
    await until(lambda: len(counting.rounds) == 3)
    await ended(task)
