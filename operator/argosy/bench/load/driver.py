"""Closed and open loops over a function that sends one request."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence

from argosy.bench.answers import Answer
from argosy.bench.plan import Level, arrivals

Send = Callable[[bytes, float], Awaitable[Answer]]
"""Sends a body that was to be sent at a time, and returns the answer; a failure is an answer with an error."""
Clock = Callable[[], float]
"""Returns the time in seconds; it never goes back."""


async def drive(send: Send, bodies: Sequence[bytes], level: Level, seed: str, now: Clock) -> list[Answer]:
    """Send the bodies as the level says. Return their answers in the order of sending."""
    if level.concurrency:
        return await _closed(send, bodies, level.concurrency, now)
    return await _open(send, bodies, arrivals(level.rate, len(bodies), seed), now)


async def _closed(send: Send, bodies: Sequence[bytes], clients: int, now: Clock) -> list[Answer]:
    """Let each client send the next body when its last one is answered."""
    answers: dict[int, Answer] = {}
    numbered = enumerate(bodies)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(min(clients, len(bodies))):
            tasks.create_task(_client(send, numbered, answers, now))
    return [answers[index] for index in range(len(bodies))]


async def _client(send: Send, bodies: Iterator[tuple[int, bytes]], answers: dict[int, Answer], now: Clock) -> None:
    for index, body in bodies:
        answers[index] = await send(body, now())


async def _open(send: Send, bodies: Sequence[bytes], offsets: Sequence[float], now: Clock) -> list[Answer]:
    """Send each body at its time, whether or not earlier ones are answered."""
    begin = now()
    async with asyncio.TaskGroup() as tasks:
        sent = []
        for body, offset in zip(bodies, offsets, strict=True):
            delay = begin + offset - now()
            if delay > 0:
                await asyncio.sleep(delay)
            sent.append(tasks.create_task(_answer(send, body, begin + offset)))
    return [task.result() for task in sent]


async def _answer(send: Send, body: bytes, intended: float) -> Answer:
    return await send(body, intended)
