"""The gRPC front end: GRPCInferenceService and grpc.health.v1 on grpc.aio."""

from dataclasses import dataclass, field

import grpc
from grpc_health.v1 import health_pb2_grpc
from tritonclient.grpc import service_pb2_grpc

from argosy_runtime.frontends.port import DataPlane
from argosy_runtime.frontends.restrictions import Restrictions
from argosy_runtime.frontends.sockets import bind, cannot_listen

from .service import Health, InferenceService

PORT_FLAG = "--grpc-port"
_UNLIMITED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcListenOptions:
    """Where and how to serve; port 0 takes any free one."""

    host: str = "0.0.0.0"
    port: int = 8001
    reuse_port: bool = False
    header_forward_pattern: str = ""
    restricted: Restrictions = field(default_factory=dict)


class GrpcListener:
    """A running gRPC server."""

    def __init__(self, server: grpc.aio.Server, port: int) -> None:
        self._server = server
        self.port = port

    def drain(self) -> None:
        """Go on as before: a gRPC server sends its clients elsewhere only by listening no more, which `stop` does."""

    async def stop(self, timeout_s: float) -> None:
        """Accept no more, let calls in flight finish for up to `timeout_s`, then cancel them."""
        await self._server.stop(timeout_s)


async def serve(plane: DataPlane, options: GrpcListenOptions) -> GrpcListener:
    """Serve a data plane over gRPC; returns once connections are accepted. `stop` it in the end.

    Raises UNAVAILABLE, naming the flag, where the port cannot be had.
    """
    server = grpc.aio.server(
        options=[
            ("grpc.max_send_message_length", _UNLIMITED),
            ("grpc.max_receive_message_length", _UNLIMITED),
            ("grpc.so_reuseport", int(options.reuse_port)),
        ]
    )
    service = InferenceService(plane, options.header_forward_pattern, options.restricted)
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(service, server)
    health_pb2_grpc.add_HealthServicer_to_server(Health(plane, options.restricted), server)
    if options.port and not options.reuse_port:
        # Only a socket of our own can say why a port cannot be had.
        bind(options.host, options.port, PORT_FLAG).close()
    host = f"[{options.host}]" if ":" in options.host else options.host
    try:
        port = server.add_insecure_port(f"{host}:{options.port}")
    except RuntimeError as error:
        raise cannot_listen(PORT_FLAG, options.port, f"cannot be opened on {options.host}") from error
    await server.start()
    return GrpcListener(server, port)
