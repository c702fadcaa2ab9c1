"""An activator in the test's own loop, with the test in the operator's place."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.peers.server import Server

from argosy_agent.activator.flags import parse
from argosy_agent.activator.running import Activator
from argosy_agent.contract.activation import ActivatedMember, Activation, Endpoint, activation_texts, parse_queued

FLAGS = ("--members=members.json", "--state-file=state.json", "--pod=uid", "--host=127.0.0.1")
PORTS = ("--http-port=0", "--grpc-port=0", "--metrics-port=0")


@dataclass
class Channel:
    """Both ends of what passes between operator and activator."""

    news: "dict[int, asyncio.Queue[str | Exception]]" = field(default_factory=dict)
    queued: dict[str, int] = field(default_factory=dict)
    came: asyncio.Event = field(default_factory=asyncio.Event)
    left: bool = False

    def part(self, number: int) -> "asyncio.Queue[str | Exception]":
        """Return the queue of a part's texts, or of the errors of following it."""
        return self.news.setdefault(number, asyncio.Queue())

    async def taken(self, parts: Iterable[int]) -> None:
        """Wait until all that was written of these parts was read and acted upon."""
        for number in parts:
            await self.part(number).join()

    async def write(self, text: str) -> None:
        if not text:
            self.left = True
            return
        assert not self.left
        queued = parse_queued(text)
        assert queued.pod == "uid"
        self.queued = dict(queued.queued)
        self.came.set()

    async def until(self, **queued: int) -> None:
        """Wait until just so many waiting requests are reported to the operator."""
        async with asyncio.timeout(30):
            while self.queued != queued:
                self.came.clear()
                await self.came.wait()


@dataclass
class PartSource:
    """A follower of one part."""

    channel: Channel
    number: int

    async def texts(self) -> AsyncIterator[str]:
        while True:
            text = await self.channel.part(self.number).get()
            if isinstance(text, Exception):
                raise text
            yield text
            self.channel.part(self.number).task_done()


@dataclass
class Standing:
    """An activator that runs."""

    activator: Activator
    channel: Channel
    stop: asyncio.Event
    running: "asyncio.Task[None]"

    @property
    def http(self) -> str:
        return f"127.0.0.1:{self.activator.ports[0]}"

    @property
    def grpc(self) -> str:
        return f"127.0.0.1:{self.activator.ports[1]}"

    @property
    def metrics(self) -> str:
        return f"127.0.0.1:{self.activator.ports[2]}"

    def says(self, *endpoints: Endpoint, models: tuple[str, ...] = ("identity", "repeat"), **more: object) -> None:
        """Write, as the operator, that these models are ready there."""
        settings = {"timeout_s": 600.0, **more}
        members = tuple(ActivatedMember(f"the-{name}", name, endpoints=endpoints, **settings) for name in models)  # type: ignore[arg-type]
        self.tells(activation_texts(Activation(members)))

    def tells(self, texts: Iterable[str]) -> None:
        """Write these parts, as the operator."""
        for number, text in enumerate(texts):
            self.channel.part(number).put_nowait(text)


def endpoint(server: Server) -> Endpoint:
    """Return the endpoint of a server of the test."""
    return Endpoint("127.0.0.1", server.ports.http, server.ports.grpc)


@asynccontextmanager
async def standing(*flags: str) -> AsyncIterator[Standing]:
    """Yield an activator that knows nothing yet."""
    channel, stop = Channel(), asyncio.Event()
    activator = Activator(
        parse([*FLAGS, *PORTS, "--exit-timeout-secs=0", *flags]), lambda part: PartSource(channel, part), channel
    )
    await activator.start()
    running = asyncio.create_task(activator.run(stop))
    try:
        yield Standing(activator, channel, stop, running)
    finally:
        stop.set()
        await running
