"""Slots of requests, and silent watches. Against a small server on loopback."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from tests.operator.controller.standin import kubeconfig_of

from argosy.cluster.client import connection as connecting
from argosy.cluster.client.connection import AT_ONCE, Connection
from argosy.cluster.client.kinds import POD


class Slow:
    """A server that delays all responses but `/fast` until `go` is set, and sends one event to a watch."""

    def __init__(self) -> None:
        self.waiting, self.go = 0, asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Return an empty object."""
        if "watch" in request.query:
            return await self.watch(request)
        if not request.path.endswith("/fast"):
            self.waiting += 1
            await self.go.wait()
        return web.json_response({})

    async def watch(self, request: web.Request) -> web.StreamResponse:
        """Send the beginning of a stream."""
        stream = web.StreamResponse()
        await stream.prepare(request)
        if "silent" not in request.query:
            await stream.write(b'{"type": "ADDED"}\n')
        await self.go.wait()
        return stream


@pytest.fixture
async def slow(tmp_path: Path) -> AsyncIterator[tuple[Slow, Connection]]:
    """Yield the server, and a connection to it."""
    server = Slow()
    app = web.Application()
    app.router.add_get("/{path:.*}", server.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0]
    async with Connection.open(kubeconfig_of(f"http://{host}:{port}", tmp_path)) as connection:
        yield server, connection
    await runner.cleanup()


async def test_what_is_urgent_does_not_wait_behind_others(slow: tuple[Slow, Connection]) -> None:
    server, connection = slow
    others = [asyncio.create_task(connection.get(POD, ("n", "slow"))) for _ in range(4 * AT_ONCE)]
    async with asyncio.timeout(30):
        while server.waiting < AT_ONCE:  # noqa: ASYNC110  # the server's count has no event
            await asyncio.sleep(0.01)
        assert await connection.get(POD, ("n", "fast"), urgent=True) == {}
        assert server.waiting == AT_ONCE
        assert not any(task.done() for task in others)
        server.go.set()
        await asyncio.gather(*others)
    assert server.waiting == 4 * AT_ONCE


@pytest.mark.parametrize(("query", "events"), [({}, [{"type": "ADDED"}]), ({"silent": "1"}, [])])
async def test_a_watch_that_is_silent_for_long_ends_as_any_other(
    slow: tuple[Slow, Connection],
    monkeypatch: pytest.MonkeyPatch,
    query: dict[str, str],
    events: list[dict[str, str]],
) -> None:
    server, connection = slow
    monkeypatch.setattr(connecting, "SILENCE_S", 0.2)
    async with asyncio.timeout(30):
        assert [event async for event in connection.watch(POD, "n", query)] == events
    server.go.set()
