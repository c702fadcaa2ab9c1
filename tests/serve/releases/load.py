"""An open-loop load on one model: requests at a constant rate, whether earlier ones are answered or not."""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from e2e.cluster.background import Background

RATE = 120.0
"""Requests a second."""
PATIENCE_S = 60.0
BODY = {"inputs": [{"name": "X", "datatype": "INT32", "shape": [1, 1], "data": [0]}]}


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of one request: when it was sent and answered, in seconds of a monotonic clock; the version that the
    server names, and what the model's files say of themselves (`build`); of a failed one, its error.
    """

    sent: float
    at: float
    version: int = 0
    build: int = 0
    error: str = ""


@dataclass
class Load(Background):
    """Sends requests while its block runs. Those under way at its end are awaited."""

    url: str
    rate: float = RATE
    timeout_s: float = 60.0
    answers: list[Answer] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(lambda: asyncio.run(self._run()))

    @property
    def failed(self) -> list[str]:
        """The errors of failed requests."""
        return [answer.error for answer in self.answers if answer.error]

    @property
    def builds(self) -> Counter[int]:
        """How many requests each build answered; 0 are those that failed."""
        return Counter(answer.build for answer in self.answers)

    def answered(self, count: int) -> None:
        """Wait for so many further answers."""
        before, end = len(self.answers), time.monotonic() + PATIENCE_S
        while len(self.answers) < before + count:
            assert time.monotonic() < end, self
            self.stopping.wait(0.02)

    def sent_after(self, moment: float) -> list[Answer]:
        """Return the answers to requests that were sent after a moment."""
        return [answer for answer in self.answers if answer.sent > moment]

    async def _run(self) -> None:
        timeout, connector = aiohttp.ClientTimeout(self.timeout_s), aiohttp.TCPConnector(limit=512)
        async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session, asyncio.TaskGroup() as tasks:
            begun, number = time.monotonic(), 0
            while not self.stopping.is_set():
                tasks.create_task(self._send(session))
                number += 1
                await asyncio.sleep(max(0.0, begun + number / self.rate - time.monotonic()))

    async def _send(self, session: aiohttp.ClientSession) -> None:
        sent = time.monotonic()
        try:
            async with session.post(self.url, json=BODY) as answer:
                # tritonserver 2.51 calls an error that a model raises text/plain
                ended = _answer(sent, answer.status, await answer.json(content_type=None))
        except (aiohttp.ClientError, TimeoutError) as error:
            ended = Answer(sent, time.monotonic(), error=repr(error))
        self.answers.append(ended)


def _answer(sent: float, status: int, body: dict[str, Any]) -> Answer:
    now = time.monotonic()
    if status != 200:
        return Answer(sent, now, error=f"{status}: {body.get('error')}")
    outputs = {output["name"]: output["data"] for output in body["outputs"]}
    return Answer(sent, now, int(body["model_version"]), outputs["BUILD"][0])
