"""The endpoints generate and generate_stream: plain JSON in, plain JSON or server-sent events out."""

import logging

from argosy_runtime.errors import FailureReason, ServingError, invalid
from argosy_runtime.frontends.port import DataPlane, model_view
from argosy_runtime.frontends.response_stream import ResponseStream
from argosy_runtime.messages import InferRequest, InferResponse
from argosy_runtime.protocol import generate, orca
from argosy_runtime.protocol.http import response as http_response

from . import compression
from .wire.reply import STATUS, Headers, Reply, json_reply
from .wire.request_context import RequestContext

_log = logging.getLogger("argosy.http")
_EVENT_HEADERS = (("Content-Type", "text/event-stream; charset=utf-8"), ("Cache-Control", "no-cache"))
_MODELS_OWN = (None, FailureReason.BACKEND, FailureReason.OUT_OF_MEMORY)


class Generating:
    """Handlers of the generate extension. `limit` is the most bytes a body may have."""

    def __init__(self, plane: DataPlane, limit: int) -> None:
        self._plane = plane
        self._limit = limit

    async def generate(self, context: RequestContext, model: str, version: str = "") -> Reply:
        """Answer one plain JSON object with another. The status is that of the model's first response."""
        await self._plane.demand(model, version)
        request = self._decode(context, model, version)
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
        reply = json_reply(generate.encode(first), status)
        reply.headers = (*reply.headers, *self._endpoint_load(context, model))
        return reply

    async def generate_stream(self, context: RequestContext, model: str, version: str = "") -> None:
        """Answer one plain JSON object with server-sent events. The status is that of the first response."""
        await self._plane.demand(model, version)
        request = self._decode(context, model, version)
        async with ResponseStream(self._plane.submit, request) as responses:
            async for response in responses:
                status, event = _status_and_event(response)
                if not context.started:
                    context.start(status, (*_EVENT_HEADERS, *self._endpoint_load(context, model)))
                if event:
                    await context.write(event)
            if not context.started:
                context.start(200, _EVENT_HEADERS)
        context.end()

    def _endpoint_load(self, context: RequestContext, model: str) -> Headers:
        """Return the header about the caches' load, where the client asks for it and it is known."""
        requested = context.header(orca.REQUEST_HEADER)
        if requested is None:
            return ()
        load = self._plane.cache_load(model)
        value = "" if load is None else orca.load_header(requested, load)
        if not value:
            reason = f"'{requested}' is no format" if load else f"neither an engine nor {orca.FAMILY} reports a cache"
            _log.error("no %s: %s", orca.RESPONSE_HEADER, reason)
            return ()
        return ((orca.RESPONSE_HEADER, value),)

    def _decode(self, context: RequestContext, model: str, version: str) -> InferRequest:
        view = model_view(self._plane, model, version)
        if not compression.is_identity(context.header(b"content-encoding")):
            raise invalid("Unsupported content-encoding, only 'identity' is supported.")
        request = generate.decode(context.body(self._limit), model, version, view, self._limit)
        request.origin = context.head
        request.received = context.received
        return request


def _status(response: InferResponse) -> int:
    """Return a response's status: 400 for any error of the model, as in Triton; the server's own errors keep theirs."""
    if response.error is None:
        return 200
    return 400 if response.error.reason in _MODELS_OWN else STATUS[response.error.kind]


def _status_and_event(response: InferResponse) -> tuple[int, bytes]:
    """Return the status of a stream that begins with this response, and its event, which is an error where JSON cannot
    carry the response.
    """
    try:
        return _status(response), b"" if response.is_empty else generate.encode_event(response)
    except ServingError as error:
        return STATUS[error.kind], generate.event(http_response.encode_error(error.message))
