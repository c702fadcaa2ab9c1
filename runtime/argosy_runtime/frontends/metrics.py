"""The metrics front end: GET /metrics, on a port of its own."""

from dataclasses import dataclass

from .http.exchange import Application, Call, Reply, message_reply
from .http.listener import HttpListener
from .port import DataPlane
from .sockets import bind

PORT_FLAG = "--metrics-port"
_MAX_BODY = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsOptions:
    """Where to serve metrics; port 0 takes any free one."""

    host: str = "0.0.0.0"
    port: int = 8002


def metrics_app(plane: DataPlane) -> Application:
    """What answers on the metrics port."""

    async def app(call: Call) -> Reply:
        if call.method != "GET":
            return message_reply(405, "Method Not Allowed")
        if call.path not in ("/metrics", "/metrics/"):
            return message_reply(404, "Not Found")
        return Reply(200, (plane.metrics(),), (("Content-Type", "text/plain; charset=utf-8"),))

    return app


async def serve(plane: DataPlane, options: MetricsOptions) -> HttpListener:
    """Serve metrics; returns once connections are accepted. `stop` it in the end.

    Raises UNAVAILABLE, naming the flag, where the port cannot be had.
    """
    listener = HttpListener(metrics_app(plane), bind(options.host, options.port, PORT_FLAG), _MAX_BODY)
    await listener.start()
    return listener
