"""The operator's HTTP server: /healthz, /readyz, /metrics."""

import asyncio
from collections.abc import Callable, Iterable

from aiohttp import web

from argosy.controller.metrics.metrics import Metrics

PLAIN = "text/plain; version=0.0.4; charset=utf-8"


class Health:
    """Answers the kubelet and Prometheus.

    `error` returns why this replica cannot work now, or the empty text. `notes` returns what people should know
    although it works: what it may not read, which nodes it cannot use.
    """

    def __init__(self, metrics: Metrics, error: Callable[[], str], notes: Callable[[], Iterable[str]]) -> None:
        self._metrics, self._error, self._notes = metrics, error, notes
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen, and return the port; 0 selects a free one. Raises OSError where the port cannot be used."""
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._text)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        await site.start()
        address: tuple[str, int] = self._runner.addresses[0]
        return int(address[1])

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _healthz(self, _: web.Request) -> web.Response:
        """Answer ok: the event loop turns."""
        return web.Response(text="ok\n")

    async def _readyz(self, _: web.Request) -> web.Response:
        error = self._error()
        lines = [error or "ok", *self._notes()]
        return web.Response(text="\n".join(lines) + "\n", status=503 if error else 200)

    async def _text(self, _: web.Request) -> web.Response:
        return web.Response(body=await asyncio.to_thread(self._metrics.text), headers={"Content-Type": PLAIN})
