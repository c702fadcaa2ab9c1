"""The gRPC front end on a socket: its connections, and how they end."""

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from argosy_runtime.frontends.port import DataPlane
from argosy_runtime.frontends.restrictions import Api, Restrictions
from argosy_runtime.frontends.sockets import BACKLOG, bind
from argosy_runtime.http2 import ErrorCode, Http2Protocol, KeepAliveRules, Limits
from argosy_runtime.protocol.grpc.reflection import REFLECTION, SAME_MESSAGES, Reflection
from argosy_runtime.protocol.http.request import DEFAULT_MAX_INPUT_SIZE

from .health import CheckCall, ListCall, WatchCall
from .inference import InferCall, Inference
from .reflection import ReflectionCall
from .rpc.router import Method, Router
from .rpc.unary import MethodCall, Tasks
from .service import Management
from .shared_memory import SharedMemory
from .stream import StreamCall

PORT_FLAG: Final = "--grpc-port"
_SERVICE: Final = "/inference.GRPCInferenceService/"
_HEALTH: Final = "/grpc.health.v1.Health/"
# Seconds in which clients may read the statuses of cancelled calls.
_CANCEL_S: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcListenOptions:
    """Where and how to serve; port 0 takes any free one. `tls` None means plain text, `compression` is zlib's level,
    `max_input_size` the most bytes that a compressed message may become, `reflection` whether schemas can be read.
    """

    host: str = "0.0.0.0"
    port: int = 8001
    reuse_port: bool = False
    header_forward_pattern: str = ""
    restricted: Restrictions = field(default_factory=dict)
    compression: int = 0
    tls: ssl.SSLContext | None = None
    keepalive: KeepAliveRules = field(default_factory=KeepAliveRules)
    limits: Limits = field(default_factory=Limits)
    max_input_size: int = DEFAULT_MAX_INPUT_SIZE
    reflection: bool = True


def methods(plane: DataPlane, inference: Inference, tasks: Tasks) -> dict[str, Method]:
    """Return every method by its path."""
    all_methods = {
        _SERVICE + "ModelInfer": Method(Api.INFERENCE, partial(InferCall, inference=inference)),
        _SERVICE + "ModelStreamInfer": Method(Api.INFERENCE, partial(StreamCall, inference=inference)),
        _HEALTH + "Check": Method(Api.HEALTH, partial(CheckCall, plane=plane)),
        _HEALTH + "List": Method(Api.HEALTH, partial(ListCall, plane=plane)),
        _HEALTH + "Watch": Method(Api.HEALTH, partial(WatchCall, plane=plane)),
    }
    for name, (api, kind, handler) in (Management(plane).methods() | SharedMemory(plane).methods()).items():
        begin = partial(MethodCall, handler=handler, request_type=kind, tasks=tasks)
        all_methods[_SERVICE + name] = Method(api, begin)
    return all_methods


def reflection_methods() -> dict[str, Method]:
    """Return the method of server reflection, by both names of its service."""
    method = Method(Api.METADATA, partial(ReflectionCall, reflection=Reflection()))
    return {f"/{service}/ServerReflectionInfo": method for service in (REFLECTION, SAME_MESSAGES)}


class GrpcListener:
    """A running gRPC server."""

    def __init__(self, plane: DataPlane, options: GrpcListenOptions) -> None:
        self._loop = asyncio.get_running_loop()
        self._options = options
        self._tasks = Tasks(self._loop)
        inference = Inference(plane, options.header_forward_pattern, options.compression)
        served = methods(plane, inference, self._tasks)
        if options.reflection:
            served |= reflection_methods()
        self._router = Router(served, options.restricted, self._loop, options.max_input_size)
        self._protocols: set[Http2Protocol] = set()
        self._empty = asyncio.Event()
        self._draining = False
        self._server: asyncio.Server | None = None
        self.port = 0

    async def start(self) -> None:
        """Accept connections. Raises ServingError, naming the flag, where the port cannot be had."""
        options = self._options
        listening = bind(options.host, options.port, PORT_FLAG, options.reuse_port)
        self.port = listening.getsockname()[1]
        self._server = await self._loop.create_server(self._connected, sock=listening, backlog=BACKLOG, ssl=options.tls)

    def _connected(self) -> Http2Protocol:
        protocol = Http2Protocol(self._router, self._loop, self._gone, self._options.limits, self._options.keepalive)
        self._protocols.add(protocol)
        if self._draining:
            protocol.drain()
        return protocol

    def _gone(self, protocol: Http2Protocol) -> None:
        self._protocols.discard(protocol)
        if not self._protocols:
            self._empty.set()

    def drain(self) -> None:
        """Go on answering, and have every client send its next requests on another connection."""
        self._draining = True
        self._for_all(Http2Protocol.drain)

    def finish(self) -> None:
        """Accept no more, have calls end once what they were asked is answered, and close then."""
        if self._server is not None:
            self._server.close()
        self._for_all(Http2Protocol.finish)

    async def stop(self, timeout_s: float) -> None:
        """Accept no more, let calls in flight finish for up to `timeout_s`, then cancel them."""
        if self._server is None:
            return
        self.finish()
        self._server = None
        await self._until_empty(timeout_s)
        await self._tasks.stop()
        self._for_all(_cancel)
        await self._until_empty(_CANCEL_S)
        self._for_all(Http2Protocol.abort)

    def _for_all(self, action: Callable[[Http2Protocol], None]) -> None:
        for protocol in tuple(self._protocols):
            action(protocol)

    async def _until_empty(self, timeout_s: float) -> None:
        if self._protocols:
            self._empty.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._empty.wait()


def _cancel(protocol: Http2Protocol) -> None:
    protocol.connection.fail(ErrorCode.NO_ERROR, "the server has stopped")


async def serve(plane: DataPlane, options: GrpcListenOptions) -> GrpcListener:
    """Serve a data plane over gRPC; returns once connections are accepted. `stop` it in the end.

    Raises ServingError, naming the flag, where the port cannot be had.
    """
    listener = GrpcListener(plane, options)
    await listener.start()
    return listener
