"""The infer endpoint: one request in V2 JSON and binary, one response.

All by callback; only a large compressed body has a task.
"""

import re

from argosy_runtime.errors import DecoupledModelError, ServingError, invalid, unsupported
from argosy_runtime.frontends.inflating import OFFLOAD_BYTES, in_thread
from argosy_runtime.frontends.model_lookup import lazy_view
from argosy_runtime.frontends.port import DataPlane
from argosy_runtime.frontends.restrictions import cannot_forward
from argosy_runtime.messages import Deliver, InferRequest, InferResponse
from argosy_runtime.protocol.http import request as http_request
from argosy_runtime.protocol.http import response as http_response
from argosy_runtime.protocol.output_encoding import OutputEncoding
from argosy_runtime.tensors import Data

from . import compression
from .wire.exchange import Exchange
from .wire.heads import Head
from .wire.reply import JSON_HEADERS, Headers, Reply, error_reply

HEADER_LENGTH = http_request.HEADER_LENGTH.lower().encode()


class Forwarding:
    """Which headers become parameters of a request; "" for none."""

    def __init__(self, pattern: str) -> None:
        self._pattern = re.compile(pattern, re.IGNORECASE) if pattern else None

    def of(self, head: Head) -> dict[str, str]:
        """Return the headers of a request that do."""
        if self._pattern is None:
            return {}
        decoded = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers.items()}
        return {name: value for name, value in decoded.items() if self._pattern.search(name)}


class Infer:
    """Answers the inference requests that have the same head. `limit` is the most bytes of JSON, or of a body
    decompressed.
    """

    def __init__(
        self, plane: DataPlane, limit: int, head: Head, forwarded: dict[str, str], model: str, version: str = ""
    ) -> None:
        self._plane = plane
        self._limit = limit
        self._model = model
        self._version = version
        self._forwarded = forwarded
        self._refusal = next((refusal for name in forwarded if (refusal := cannot_forward(name))), None)
        self._view = lazy_view(plane, model, version)
        self._length_header = _text(head, HEADER_LENGTH)
        self._packed = _text(head, b"content-encoding") or ""
        self._accepted = compression.preferred(_text(head, b"accept-encoding"))

    @property
    def may_be_planned(self) -> bool:
        """Whether nothing in the head asks for more than the tensors' way through."""
        plain = compression.is_identity(self._packed) and self._accepted is None and not self._forwarded
        return plain and self._length_header is not None

    def begin(self, exchange: Exchange) -> None:
        """See `Handler`."""
        try:
            body = exchange.body(self._limit)
            if not compression.is_identity(self._packed):
                plain = compression.decompress_at_once(body, self._packed, self._limit)
                if plain is None:
                    exchange.run(self._begin_packed(exchange, body))
                    return
                body = plain
        except ServingError as error:
            self.refuse(exchange, error)
        else:
            self._begin(exchange, body)

    async def _begin_packed(self, exchange: Exchange, packed: Data) -> None:
        try:
            body = await in_thread(compression.decompress, packed, self._packed, self._limit)
        except ServingError as error:
            self.refuse(exchange, error)
        else:
            self._begin(exchange, body)

    def _begin(self, exchange: Exchange, body: Data) -> None:
        try:
            request, encoding = self.decode(body)
        except ServingError as error:
            self.refuse(exchange, error)
        else:
            self.submit(exchange, request, encoding)

    def decode(self, body: Data) -> tuple[InferRequest, OutputEncoding]:
        """Return what a body asks for. Raises ServingError."""
        header_length = http_request.parse_header_length(self._length_header, len(body))
        if self._length_header is not None and header_length == 0:
            return http_request.decode_raw(body, self._model, self._version, self._view, self._limit)
        return http_request.decode(body, header_length, self._model, self._version, self._limit)

    def refuse(self, exchange: Exchange, error: ServingError) -> None:
        """Tell what is wrong with a request; that its model is not there is told before that."""
        try:
            self._plane.model_config(self._model, self._version)
        except ServingError as first:
            error = first
        reply = error_reply(error)
        if error.message == compression.UNKNOWN_TYPE:
            reply.headers = (*reply.headers, ("Accept-Encoding", compression.SUPPORTED))
        exchange.reply(reply)

    def submit(self, exchange: Exchange, request: InferRequest, encoding: OutputEncoding) -> None:
        """Have a decoded request answered."""
        if self._refusal is not None:
            exchange.reply(error_reply(invalid(self._refusal)))
            return
        request.parameters.update(self._forwarded)
        submit(self._plane, exchange, request, _Answer(self, exchange, encoding).deliver)

    def answer(self, exchange: Exchange, response: InferResponse, encoding: OutputEncoding) -> None:
        """Send what a model has answered."""
        if exchange.answered:
            return
        if response.error is not None:
            exchange.reply(error_reply(response.error))
            return
        try:
            encoded = http_response.encode(response, encoding, self._view)
        except ServingError as error:
            exchange.reply(error_reply(error))
            return
        except Exception as unforeseen:
            exchange.fail(unforeseen)
            return
        if self._accepted is None:
            exchange.reply(Reply(200, encoded.chunks, _headers(encoded)))
        else:
            self._pack(exchange, encoded, self._accepted)

    def _pack(self, exchange: Exchange, encoded: http_response.EncodedResponse, accepted: str) -> None:
        headers = (*_headers(encoded), ("Content-Encoding", accepted))
        body = b"".join(encoded.chunks)
        if len(body) <= OFFLOAD_BYTES:
            exchange.reply(Reply(200, (compression.compress(body, accepted),), headers))
        else:
            exchange.run(_reply_packed(exchange, body, accepted, headers))


async def _reply_packed(exchange: Exchange, body: bytes, accepted: str, headers: Headers) -> None:
    packed = await in_thread(compression.compress, body, accepted)
    exchange.reply(Reply(200, (packed,), headers))


class _Answer:
    """Takes the one response to a request."""

    __slots__ = ("_encoding", "_exchange", "_infer")

    def __init__(self, infer: Infer, exchange: Exchange, encoding: OutputEncoding) -> None:
        self._infer = infer
        self._exchange = exchange
        self._encoding = encoding

    def deliver(self, response: InferResponse) -> None:
        """See `messages.Deliver`."""
        self._infer.answer(self._exchange, response, self._encoding)


def submit(plane: DataPlane, exchange: Exchange, request: InferRequest, deliver: Deliver) -> None:
    """Start a request whose one response `deliver` sends; an error is answered at once."""
    try:
        submission = plane.submit(request, deliver, True)
    except DecoupledModelError as decoupled:
        exchange.reply(error_reply(unsupported(f"{http_request.ENDPOINT} {decoupled.message}")))
    except ServingError as error:
        exchange.reply(error_reply(error))
    else:
        if not exchange.answered and exchange.work is None:
            exchange.work = submission


def _text(head: Head, name: bytes) -> str | None:
    value = head.headers.get(name)
    return None if value is None else value.decode("latin-1")


def _headers(encoded: http_response.EncodedResponse) -> Headers:
    if encoded.is_binary:
        length = str(encoded.json_length)
        return (("Content-Type", http_response.BINARY_TYPE), (http_request.HEADER_LENGTH, length))
    return JSON_HEADERS
