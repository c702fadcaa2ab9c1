"""Routes calls to the method of their path, or to a refusal. Each distinct head is routed once."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from argosy_runtime.frontends.restrictions import Api, Restrictions
from argosy_runtime.http2 import RequestHead, Route, Stream
from argosy_runtime.protocol.http.request import DEFAULT_MAX_INPUT_SIZE

from .calls import Call
from .metadata import CallHead, is_grpc
from .status import RpcError, Status, refused, trailers

_POST: Final = b"POST"


@dataclass(frozen=True)
class Method:
    """A method: its group of the API, and the function that begins a call of it."""

    api: Api
    begin: Callable[[Stream, CallHead, asyncio.AbstractEventLoop], Call]


class Refusal:
    """A route, and the receiver of all its requests, which answers at once with one header block."""

    def __init__(self, block: bytes) -> None:
        self._block = block

    def open(self, stream: Stream) -> "Refusal":
        stream.end(self._block)
        return self

    def received(self, data: bytes, ended: bool) -> None:
        """Ignore the body: the request is answered."""

    def reset(self) -> None:
        """Do nothing: the request is answered."""

    def writable(self) -> None:
        """Do nothing: the request is answered."""

    def conclude(self) -> None:
        """Do nothing: the request is answered."""

    def failed(self, error: Exception) -> None:
        """Do nothing: no method here raises."""


class MethodRoute:
    """Calls of one method with one head."""

    def __init__(self, method: Method, head: CallHead, loop: asyncio.AbstractEventLoop) -> None:
        self._begin = method.begin
        self._head = head
        self._loop = loop

    def open(self, stream: Stream) -> Call:
        return self._begin(stream, self._head, self._loop)


class Router:
    """The application of the gRPC front end."""

    def __init__(
        self,
        methods: Mapping[str, Method],
        restricted: Restrictions,
        loop: asyncio.AbstractEventLoop,
        max_input_size: int = DEFAULT_MAX_INPUT_SIZE,
    ) -> None:
        self._max_input_size = max_input_size
        self._methods = {path.encode(): method for path, method in methods.items()}
        self._restricted = restricted
        self._loop = loop

    def route(self, head: RequestHead) -> Route:
        if head.method != _POST:
            return Refusal(refused(405))
        if not is_grpc(dict(head.fields).get(b"content-type", b"")):
            return Refusal(refused(415))
        try:
            return self._method_route(head)
        except RpcError as error:
            return Refusal(trailers(error.status, error.message, alone=True))

    def _method_route(self, head: RequestHead) -> Route:
        method = self._methods.get(head.path)
        if method is None:
            raise RpcError(Status.UNIMPLEMENTED, "Method not found!")
        call_head = CallHead(head, self._max_input_size)
        self._check_restriction(method.api, call_head)
        return MethodRoute(method, call_head, self._loop)

    def _check_restriction(self, api: Api, head: CallHead) -> None:
        restriction = self._restricted.get(api)
        if restriction is not None and not restriction.allows(head.header(restriction.header.lower())):
            status = Status.PERMISSION_DENIED if restriction.flag else Status.UNAVAILABLE
            raise RpcError(status, restriction.refusal("protocol"))
