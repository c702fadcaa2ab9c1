"""The port of gRPC."""

from typing import Any

import grpc

from argosy_agent.activator.http.listener import ListenError

AGE_S = 30
"""After so long a client is asked to reconnect: by then the Service may lead it to a server."""
MOST_CALLS = 4096
_NEVER_MS = 2**31 - 1


class GrpcListener:
    """Serves calls by `handler`, each with messages of at most `message_size` bytes."""

    def __init__(self, handler: grpc.GenericRpcHandler, message_size: int) -> None:
        self._server = grpc.aio.server(maximum_concurrent_rpcs=MOST_CALLS, options=_options(message_size))
        self._server.add_generic_rpc_handlers((handler,))

    async def start(self, host: str, port: int) -> int:
        """Listen there, on every address for an empty host. The port: 0 takes a free one. Raises ListenError."""
        try:
            bound = self._listen(host, port)
        except RuntimeError as error:
            raise ListenError(f"port {port} cannot be listened on: {error}") from error
        await self._server.start()
        return bound

    def _listen(self, host: str, port: int) -> int:
        """Bind the port and return it. Raises RuntimeError."""
        if host:
            return int(self._server.add_insecure_port(f"[{host}]:{port}" if ":" in host else f"{host}:{port}"))
        try:
            return int(self._server.add_insecure_port(f"[::]:{port}"))
        except RuntimeError:  # where IPv6 is switched off
            return int(self._server.add_insecure_port(f"0.0.0.0:{port}"))

    async def stop(self, grace_s: float) -> None:
        """Accept no new calls, and give running ones `grace_s` seconds to end."""
        await self._server.stop(grace_s)


def _options(message_size: int) -> list[tuple[str, Any]]:
    return [
        ("grpc.max_receive_message_length", message_size),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_connection_age_ms", AGE_S * 1000),
        ("grpc.max_connection_age_grace_ms", _NEVER_MS),
        # Clients that wait may ping the connection as often as they like.
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", 1000),
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.so_reuseport", 0),
    ]
