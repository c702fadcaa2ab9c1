"""gRPC calls: the first message names the model, the call waits for a server and is then relayed in both directions."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import grpc

from argosy_agent.activator.metrics import Metrics
from argosy_agent.activator.pending import NotForwardedError, PendingRequests, Refusal, waiting
from argosy_agent.activator.request_kind import NO_SERVER, RequestKind
from argosy_agent.activator.spans import Spans

from .channels import Channels
from .messages import HEALTH_WATCH, NOT_READY, OWN, MessageError, kind_of, model_of

EOF = grpc.aio.EOF
_LONGEST_S = 1e8
"""What is no deadline: gRPC gives one far away where there is none."""
_CODES = {
    Refusal.UNKNOWN: grpc.StatusCode.NOT_FOUND,
    Refusal.FULL: grpc.StatusCode.UNAVAILABLE,
    Refusal.TIMEOUT: grpc.StatusCode.UNAVAILABLE,
}
_OF_THE_TRANSPORT = ("grpc-", ":")


class Calls(grpc.GenericRpcHandler):  # type: ignore[misc] # grpc has no types
    """Every method of every service."""

    def __init__(
        self, holder: PendingRequests, metrics: Metrics, ready: Callable[[], bool], channels: Channels, spans: Spans
    ) -> None:
        self._pending, self._metrics, self._ready = holder, metrics, ready
        self._channels, self._spans = channels, spans

    def service(self, details: Any) -> Any:
        """Return the handler of a call: messages come and go as bytes, as many as there are."""
        method: str = details.method

        async def serve(_: Any, context: Any) -> None:
            await self._serve(method, context)

        return grpc.stream_stream_rpc_method_handler(serve)

    async def _serve(self, method: str, context: Any) -> None:
        kind = kind_of(method)
        if kind is RequestKind.OTHER:
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"{method}: {NO_SERVER}")
        first = await context.read()
        if first is EOF:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{method} was called without a message")
        try:
            if kind in (RequestKind.LIVE, RequestKind.SERVER_READY, RequestKind.SERVER):
                await self._answer(method, kind, context)
            else:
                await self._of_model(method, kind, first, context)
        except MessageError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{method}: the message cannot be read: {error}")
        except NotForwardedError as error:
            await context.abort(_CODES[error.refusal], error.message)

    async def _answer(self, method: str, kind: RequestKind, context: Any) -> None:
        """Answer a call that needs no running server."""
        ready = self._ready() or kind is not RequestKind.SERVER_READY
        await context.write(OWN[kind] if ready else NOT_READY.get(method, b""))
        if method == HEALTH_WATCH:
            await asyncio.Event().wait()  # the status does not change until the client leaves

    async def _of_model(self, method: str, kind: RequestKind, first: bytes, context: Any) -> None:
        """Answer or relay a call about a model. Raises MessageError, NotForwardedError."""
        model = model_of(first)
        member = self._pending.member(model)
        if kind is not RequestKind.QUEUE and not member.endpoints:
            if kind is RequestKind.READY:
                await context.write(OWN[kind])
                return
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"model '{model}' runs nowhere now; {NO_SERVER}")
        metadata = _passed_on(context.invocation_metadata() or ())
        with self._spans.request(model, metadata) as span:
            with waiting(span, self._metrics.ended, member.name) as wait:
                channel = await self._pending.reach(model, len(first), self._channels.open)
                wait.outcome = "passed"
            await _pass(channel, method, span.passed_on(metadata), first, context)


async def _pass(
    channel: grpc.aio.Channel, method: str, metadata: list[tuple[str, Any]], first: bytes, context: Any
) -> None:
    """Make the same call there, and let it end here as it ends there."""
    left = context.time_remaining()
    call = channel.stream_stream(method)(
        metadata=grpc.aio.Metadata(*metadata),
        timeout=left if left is not None and left < _LONGEST_S else None,
    )
    sending = asyncio.create_task(_send(call, first, context))
    try:
        await context.send_initial_metadata(tuple(await call.initial_metadata()))
        while (message := await call.read()) is not EOF:
            await context.write(message)
        context.set_trailing_metadata(tuple(await call.trailing_metadata()))
        code, details = await call.code(), await call.details()
    except grpc.aio.AioRpcError as error:
        code, details = error.code(), error.details()
        context.set_trailing_metadata(tuple(error.trailing_metadata() or ()))
    finally:
        sending.cancel()
        call.cancel()
        await asyncio.gather(sending, return_exceptions=True)
    if code is not grpc.StatusCode.OK:
        context.set_code(code)
        context.set_details(details or "")


async def _send(call: Any, first: bytes, context: Any) -> None:
    """Forward all messages of the client. A call that is answered already takes no more."""
    with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError, grpc.aio.UsageError):
        message = first
        while message is not EOF:
            await call.write(message)
            message = await context.read()
        await call.done_writing()


def _passed_on(metadata: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return the metadata without what belongs to the client's connection."""
    return [(key, value) for key, value in metadata if key != "user-agent" and not key.startswith(_OF_THE_TRANSPORT)]
