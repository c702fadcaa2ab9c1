"""The ordinary handler of the infer endpoint: one request in V2 JSON and binary, one response.

It works by callbacks; only a large compressed body has a task.
"""

from argosy_runtime.errors import ErrorKind, ServingError, invalid
from argosy_runtime.frontends import shared_memory
from argosy_runtime.frontends.forwarding import refusal
from argosy_runtime.frontends.inflating import OFFLOAD_BYTES, in_thread
from argosy_runtime.frontends.port import DataPlane, answer_view, lazy_view, of_endpoint, reported
from argosy_runtime.messages import Deliver, InferRequest, InferResponse
from argosy_runtime.protocol.http import request as http_request
from argosy_runtime.protocol.http import response as http_response
from argosy_runtime.protocol.http.response import OutputEncoding
from argosy_runtime.shared_memory.locations import TensorLocations
from argosy_runtime.tensors import Data
from argosy_runtime.traces import TRACING

from . import compression
from .wire.heads import Head
from .wire.reply import JSON_HEADERS, Headers, Reply, error_reply
from .wire.request_context import RequestContext

HEADER_LENGTH = http_request.HEADER_LENGTH.lower().encode()


class InferHandler:
    """Handles the inference requests of one head. `limit`: the largest JSON, or decompressed body, in bytes."""

    def __init__(
        self, plane: DataPlane, limit: int, head: Head, forwarded: dict[str, str], model: str, version: str = ""
    ) -> None:
        self._plane = plane
        self._limit = limit
        self._model = model
        self._version = version
        self._forwarded = forwarded
        self._refusal = refusal(forwarded)
        self._view = lazy_view(plane, model, version)
        self._length_header = _text(head, HEADER_LENGTH)
        self._content_encoding = _text(head, b"content-encoding") or ""
        self._binary_type = head.binary_type
        self._accepted = compression.preferred(_text(head, b"accept-encoding"))

    @property
    def may_use_template(self) -> bool:
        """Whether the head asks for nothing but tensors: no compression, no forwarded headers."""
        plain = compression.is_identity(self._content_encoding) and self._accepted is None and not self._forwarded
        return plain and self._length_header is not None and not self._binary_type

    def begin(self, context: RequestContext) -> None:
        try:
            body = context.body(self._limit)
            if not compression.is_identity(self._content_encoding):
                plain = compression.decompress_at_once(body, self._content_encoding, self._limit)
                if plain is None:
                    context.run(self._begin_compressed(context, body))
                    return
                body = plain
        except ServingError as error:
            self.refuse(context, error)
        else:
            self._begin(context, body)

    async def _begin_compressed(self, context: RequestContext, packed: Data) -> None:
        try:
            body = await in_thread(compression.decompress, packed, self._content_encoding, self._limit)
        except ServingError as error:
            self.refuse(context, error)
        else:
            context.work = None
            self._begin(context, body)

    def _begin(self, context: RequestContext, body: Data, awaits_load: bool = True) -> None:
        try:
            request, encoding = self.decode(body)
        except ServingError as error:
            if awaits_load and error.kind is ErrorKind.NOT_FOUND:
                context.run(self._begin_loaded(context, body))
            else:
                self.refuse(context, error)
        else:
            self.submit(context, request, encoding)

    async def _begin_loaded(self, context: RequestContext, body: Data) -> None:
        """Begin a request that cannot be decoded without its model, once that is loaded if it is on demand."""
        try:
            await self._plane.demand(self._model, self._version)
        except ServingError as error:
            context.reply(error_reply(error))
        else:
            context.work = None
            self._begin(context, body, awaits_load=False)

    def decode(self, body: Data) -> tuple[InferRequest, OutputEncoding]:
        """Return the request of a body, and the encoding of its response. Raises ServingError."""
        header_length = http_request.parse_header_length(self._length_header, len(body))
        if header_length == 0:
            return http_request.decode_raw(body, self._model, self._version, self._view, self._limit)
        return http_request.decode(body, header_length, self._model, self._version, self._limit)

    def refuse(self, context: RequestContext, error: ServingError) -> None:
        """Send the error of a request. That its model is missing, or decoupled, takes precedence."""
        error = reported(self._plane, self._model, self._version, http_request.ENDPOINT, error)
        reply = error_reply(error)
        if error.message == compression.UNKNOWN_TYPE:
            reply.headers = (*reply.headers, ("Accept-Encoding", compression.SUPPORTED))
        context.reply(reply)

    def submit(self, context: RequestContext, request: InferRequest, encoding: OutputEncoding) -> None:
        """Submit a decoded request."""
        if self._refusal:
            context.reply(error_reply(invalid(self._refusal)))
            return
        if self._forwarded:
            request.parameters = {**request.parameters, **self._forwarded}
        submit(self._plane, context, request, _Answer(self, context, encoding).deliver, encoding.locations)

    def answer(self, context: RequestContext, response: InferResponse, encoding: OutputEncoding) -> None:
        """Send the response of a model."""
        if context.answered:
            return
        if response.error is not None:
            context.reply(error_reply(of_endpoint(response.error, http_request.ENDPOINT)))
            return
        try:
            view = answer_view(self._plane, response, self._model, self._version) if encoding.classes else self._view
            encoded = http_response.encode(response, encoding, view)
        except ServingError as error:
            context.reply(error_reply(error))
            return
        except Exception as failure:
            context.fail(failure)
            return
        if self._accepted is None:
            context.reply(Reply(200, encoded.chunks, _headers(encoded, self._binary_type)))
        else:
            self._pack(context, encoded, self._accepted)

    def _pack(self, context: RequestContext, encoded: http_response.EncodedResponse, accepted: str) -> None:
        headers = (*_headers(encoded, ""), ("Content-Encoding", accepted))
        body = b"".join(encoded.chunks)
        if len(body) <= OFFLOAD_BYTES:
            context.reply(Reply(200, (compression.compress(body, accepted),), headers))
        else:
            context.run(_reply_compressed(context, body, accepted, headers))


async def _reply_compressed(context: RequestContext, body: bytes, accepted: str, headers: Headers) -> None:
    packed = await in_thread(compression.compress, body, accepted)
    context.reply(Reply(200, (packed,), headers))


class _Answer:
    """Takes the one response to a request."""

    __slots__ = ("_context", "_encoding", "_infer")

    def __init__(self, infer: InferHandler, context: RequestContext, encoding: OutputEncoding) -> None:
        self._infer = infer
        self._context = context
        self._encoding = encoding

    def deliver(self, response: InferResponse) -> None:
        self._infer.answer(self._context, response, self._encoding)


def submit(
    plane: DataPlane,
    context: RequestContext,
    request: InferRequest,
    deliver: Deliver,
    locations: TensorLocations | None = None,
) -> None:
    """Submit a request whose one response `deliver` sends. An error is sent at once."""
    request.origin = context.head
    if TRACING.on:
        request.received = context.received
    try:
        if locations is None:
            submission = plane.submit(request, deliver, True)
        else:
            submission = shared_memory.submit(plane, request, locations, deliver, True)
    except ServingError as error:
        context.reply(error_reply(of_endpoint(error, http_request.ENDPOINT)))
    else:
        if not context.answered and context.work is None:
            context.work = submission


def _text(head: Head, name: bytes) -> str | None:
    value = head.headers.get(name)
    return None if value is None else value.decode("latin-1")


def _headers(encoded: http_response.EncodedResponse, binary_type: str) -> Headers:
    if encoded.is_binary and binary_type:
        return (("Content-Type", f"{binary_type}{encoded.json_length}"),)
    if encoded.is_binary:
        length = str(encoded.json_length)
        return (("Content-Type", http_response.BINARY_TYPE), (http_request.HEADER_LENGTH, length))
    return JSON_HEADERS
