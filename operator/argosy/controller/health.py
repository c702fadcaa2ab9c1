"""The operator's own small HTTP server: /healthz, /readyz, /metrics."""

import asyncio
from collections.abc import Callable, Iterable

from aiohttp import web

from argosy.controller.metrics import Metrics

PLAIN = "text/plain; version=0.0.4; charset=utf-8"


class Health:
    """Answers the kubelet and Prometheus.

    `trouble` says why this replica is of no use now; empty: it is. `notes` are what people should know although it is:
    what it may not read, which nodes it cannot use.
    """

    def __init__(self, metrics: Metrics, trouble: Callable[[], str], notes: Callable[[], Iterable[str]]) -> None:
        self._metrics, self._trouble, self._notes = metrics, trouble, notes
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; port 0 takes a free one. The port. Raises OSError where it cannot be had."""
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
        """Close it."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _healthz(self, _: web.Request) -> web.Response:
        """That the event loop turns."""
        return web.Response(text="ok\n")

    async def _readyz(self, _: web.Request) -> web.Response:
        trouble = self._trouble()
        lines = [trouble or "ok", *self._notes()]
        return web.Response(text="\n".join(lines) + "\n", status=503 if trouble else 200)

    async def _text(self, _: web.Request) -> web.Response:
        return web.Response(body=await asyncio.to_thread(self._metrics.text), headers={"Content-Type": PLAIN})
