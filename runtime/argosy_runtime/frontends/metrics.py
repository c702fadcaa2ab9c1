"""The metrics front end: GET /metrics, on a port of its own and on that of HTTP."""

import ssl
from dataclasses import dataclass, field

from .http.wire.application import Fixed, Handler
from .http.wire.heads import Head
from .http.wire.listener import HttpListener
from .http.wire.reply import message_reply
from .http.wire.request_context import RequestContext
from .http.wire.timeouts import Timeouts
from .port import DataPlane
from .sockets import bind

PORT_FLAG = "--metrics-port"
METRICS_PATH = "/metrics"
_MAX_BODY = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsOptions:
    """Where to serve metrics; port 0 takes any free one, `tls` None means plain text."""

    host: str = "0.0.0.0"
    port: int = 8002
    timeouts: Timeouts = field(default_factory=Timeouts)
    tls: ssl.SSLContext | None = None


class MetricsApp:
    """The application of the metrics port."""

    def __init__(self, plane: DataPlane) -> None:
        self._plane = plane

    def handler(self, head: Head) -> Handler:
        if head.method != "GET":
            return Fixed(message_reply(405, "Method Not Allowed"))
        if head.path.removesuffix("/") != METRICS_PATH:
            return Fixed(message_reply(404, "Not Found"))
        return self

    def begin(self, context: RequestContext) -> None:
        context.run(self._answer(context))

    async def _answer(self, context: RequestContext) -> None:
        """Send the metrics in pieces, because ten megabytes at once would delay requests."""
        async for piece in self._plane.metrics():
            if not context.started:
                context.start(200, (("Content-Type", "text/plain; charset=utf-8"),))
            await context.write(piece)
        context.end()


async def serve(plane: DataPlane, options: MetricsOptions) -> HttpListener:
    """Serve metrics; returns once connections are accepted. `stop` it in the end.

    Raises UNAVAILABLE, naming the flag, where the port cannot be had.
    """
    listening = bind(options.host, options.port, PORT_FLAG)
    listener = HttpListener(MetricsApp(plane), listening, _MAX_BODY, options.timeouts, options.tls)
    await listener.start()
    return listener
