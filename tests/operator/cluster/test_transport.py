"""Places for requests: many wait for one, what is urgent does not. Against a small server on loopback."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from argosy.cluster.credentials import Credentials
from argosy.cluster.transport import AT_ONCE, Call, Transport


class Slow:
    """A server that answers nothing but `/fast` until it is told to."""

    def __init__(self) -> None:
        self.asked, self.go = 0, asyncio.Event()

    async def answer(self, request: web.Request) -> web.Response:
        """An empty object."""
        if request.path != "/fast":
            self.asked += 1
            await self.go.wait()
        return web.json_response({})


@pytest.fixture
async def slow() -> AsyncIterator[tuple[Slow, Transport]]:
    """The server, and a transport to it."""
    server = Slow()
    app = web.Application()
    app.router.add_get("/{path}", server.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0]
    async with Transport(Credentials(f"http://{host}:{port}")) as transport:
        yield server, transport
    await runner.cleanup()


async def test_what_is_urgent_does_not_wait_behind_others(slow: tuple[Slow, Transport]) -> None:
    server, transport = slow
    others = [asyncio.create_task(transport.send(Call("get", "/slow"))) for _ in range(4 * AT_ONCE)]
    async with asyncio.timeout(30):
        while server.asked < AT_ONCE:  # noqa: ASYNC110  # the server's count has no event
            await asyncio.sleep(0.01)
        assert await transport.send(Call("get", "/fast", urgent=True)) == {}
        assert server.asked == AT_ONCE
        assert not any(task.done() for task in others)
        server.go.set()
        await asyncio.gather(*others)
    assert server.asked == 4 * AT_ONCE
