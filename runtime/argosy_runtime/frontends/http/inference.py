"""The endpoints that run models over HTTP: infer, generate and generate_stream."""

import asyncio
import re
from collections.abc import Callable

from argosy_runtime.errors import DecoupledModelError, FailureReason, ServingError, invalid, unsupported
from argosy_runtime.frontends.model_lookup import lazy_view, model_view
from argosy_runtime.frontends.port import DataPlane
from argosy_runtime.frontends.restrictions import cannot_forward
from argosy_runtime.messages import InferRequest, InferResponse
from argosy_runtime.protocol import generate, http_request, http_response
from argosy_runtime.protocol.output_encoding import OutputEncoding
from argosy_runtime.response_stream import ResponseStream, single_response

from . import compression
from .exchange import JSON_HEADERS, STATUS, Call, Headers, Reply, json_reply

_EVENT_HEADERS = (("Content-Type", "text/event-stream; charset=utf-8"), ("Cache-Control", "no-cache"))
_HEADER_LENGTH = http_request.HEADER_LENGTH.lower().encode()
# Above this many bytes (de)compression leaves the event loop.
_OFFLOAD_BYTES = 1 << 18


class Inference:
    """Handlers of requests to a model. `limit` is the most bytes of JSON, or of a decompressed body."""

    def __init__(self, plane: DataPlane, limit: int, forward_pattern: str) -> None:
        self._plane = plane
        self._limit = limit
        self._forward = re.compile(forward_pattern, re.IGNORECASE) if forward_pattern else None

    async def infer(self, call: Call, model: str, version: str = "") -> Reply:
        """One request, one response, in V2 JSON and binary."""
        try:
            request, encoding = await self._decode(call, model, version)
        except ServingError:
            # A model that is not there is told before what is wrong with the request to it.
            self._plane.model_config(model, version)
            raise
        if self._forward is not None:
            self._forward_headers(call, request)
        try:
            response = await single_response(self._plane.submit, request)
        except DecoupledModelError as error:
            raise unsupported(f"{http_request.ENDPOINT} {error.message}") from None
        if response.error is not None:
            raise response.error
        encoded = http_response.encode(response, encoding, lazy_view(self._plane, model, version))
        accepted = call.headers.get(b"accept-encoding")
        if accepted is None:
            return Reply(200, encoded.chunks, _headers(encoded))
        return await _compressed(encoded, compression.preferred(accepted.decode("latin-1")))

    async def _decode(self, call: Call, model: str, version: str) -> tuple[InferRequest, OutputEncoding]:
        length_header = call.header(_HEADER_LENGTH)
        content_encoding = call.header(b"content-encoding")
        limit = self._limit
        body = call.body(limit)
        if not compression.is_identity(content_encoding):
            body = await _offload(compression.decompress, body, content_encoding or "", limit)
        header_length = http_request.parse_header_length(length_header, len(body))
        if length_header is not None and header_length == 0:
            view = lazy_view(self._plane, model, version)
            return http_request.decode_raw(body, model, version, view, limit)
        return http_request.decode(body, header_length, model, version, limit)

    def _forward_headers(self, call: Call, request: InferRequest) -> None:
        assert self._forward is not None
        for raw_name, value in call.headers.items():
            name = raw_name.decode("latin-1")
            if self._forward.search(name):
                refusal = cannot_forward(name)
                if refusal:
                    raise invalid(refusal)
                request.parameters[name] = value.decode("latin-1")

    async def generate(self, call: Call, model: str, version: str = "") -> Reply:
        """One plain JSON object in, one out. The status is that of the model's first response."""
        request = self._decode_generate(call, model, version)
        first: InferResponse | None = None
        count = 0
        async with ResponseStream(self._plane.submit, request) as responses:
            async for response in responses:
                if not response.is_empty:
                    first = first or response
                    count += 1
        status = 200 if first is None else _status(first)
        if first is None or count != 1:
            return json_reply(http_response.encode_error(generate.NOT_ONE_RESPONSE), status)
        if first.error is not None:
            return json_reply(http_response.encode_error(first.error.message), status)
        return json_reply(generate.encode(first), status)

    async def generate_stream(self, call: Call, model: str, version: str = "") -> None:
        """One plain JSON object in, server-sent events out. The status is that of the first response."""
        request = self._decode_generate(call, model, version)
        async with ResponseStream(self._plane.submit, request) as responses:
            started = False
            async for response in responses:
                if not started:
                    started = True
                    call.stream.start(_status(response), _EVENT_HEADERS)
                if not response.is_empty and (event := generate.encode_event(response)):
                    await call.stream.write(event)
            if not started:
                call.stream.start(200, _EVENT_HEADERS)
        call.stream.end()

    def _decode_generate(self, call: Call, model: str, version: str) -> InferRequest:
        view = model_view(self._plane, model, version)
        if not compression.is_identity(call.header(b"content-encoding")):
            raise invalid("Unsupported content-encoding, only 'identity' is supported.")
        return generate.decode(call.body(self._limit), model, version, view, self._limit)


_MODELS_OWN = (None, FailureReason.BACKEND)


def _status(response: InferResponse) -> int:
    """Whatever a model says went wrong is 400 here, as in Triton; what the server refuses keeps its status."""
    if response.error is None:
        return 200
    return 400 if response.error.reason in _MODELS_OWN else STATUS[response.error.kind]


def _headers(encoded: http_response.EncodedResponse) -> Headers:
    if encoded.is_binary:
        length = str(encoded.json_length)
        return (("Content-Type", http_response.BINARY_TYPE), (http_request.HEADER_LENGTH, length))
    return JSON_HEADERS


async def _compressed(encoded: http_response.EncodedResponse, encoding: str | None) -> Reply:
    headers = _headers(encoded)
    if encoding is None:
        return Reply(200, encoded.chunks, headers)
    packed = await _offload(compression.compress, b"".join(encoded.chunks), encoding)
    return Reply(200, (packed,), (*headers, ("Content-Encoding", encoding)))


async def _offload(work: Callable[..., bytes], body: bytes, *arguments: object) -> bytes:
    """Work on a body, in a thread if it is large."""
    if len(body) <= _OFFLOAD_BYTES:
        return work(body, *arguments)
    return await asyncio.to_thread(work, body, *arguments)
