"""An activator in the test's own loop, told by the test where models are, and telling it who waits."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.peers.server import Server

from argosy_agent.activator.flags import parse
from argosy_agent.activator.running import Activator
from argosy_agent.contract.activation import ActivatedMember, Activation, Endpoint, activation_text, parse_held

FLAGS = ("--members=members.json", "--state-file=state.json", "--pod=uid", "--host=127.0.0.1")
PORTS = ("--http-port=0", "--grpc-port=0", "--metrics-port=0")


@dataclass
class Told:
    """Both ends of what passes between operator and activator."""

    news: "asyncio.Queue[str]" = field(default_factory=asyncio.Queue)
    held: dict[str, int] = field(default_factory=dict)
    came: asyncio.Event = field(default_factory=asyncio.Event)
    left: bool = False

    async def texts(self) -> AsyncIterator[str]:
        while True:
            yield await self.news.get()

    async def write(self, text: str) -> None:
        if not text:
            self.left = True
            return
        assert not self.left
        said = parse_held(text)
        assert said.pod == "uid"
        self.held = dict(said.held)
        self.came.set()

    async def until(self, **held: int) -> None:
        """Until the operator was told that just so many wait."""
        async with asyncio.timeout(30):
            while self.held != held:
                self.came.clear()
                await self.came.wait()


@dataclass
class Standing:
    """An activator that runs."""

    activator: Activator
    told: Told
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
        """The operator says that these models are ready there."""
        settings = {"timeout_s": 600.0, **more}
        found = tuple(ActivatedMember(f"the-{name}", name, endpoints=endpoints, **settings) for name in models)  # type: ignore[arg-type]
        self.told.news.put_nowait(activation_text(Activation(found)))


def endpoint(server: Server) -> Endpoint:
    """Where a server of the test is."""
    return Endpoint("127.0.0.1", server.ports.http, server.ports.grpc)


@asynccontextmanager
async def standing(*flags: str) -> AsyncIterator[Standing]:
    """An activator that knows nothing yet."""
    told, stop = Told(), asyncio.Event()
    activator = Activator(parse([*FLAGS, *PORTS, "--exit-timeout-secs=0", *flags]), told, told)
    await activator.start()
    running = asyncio.create_task(activator.run(stop))
    try:
        yield Standing(activator, told, stop, running)
    finally:
        stop.set()
        await running
