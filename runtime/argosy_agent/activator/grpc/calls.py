"""One call: its first message says for which model it is; then it waits, and passes both ways to its status."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import grpc

from argosy_agent.activator.asked import NO_SERVER, Asked
from argosy_agent.activator.holding import Holder, HoldingError, Refusal
from argosy_agent.activator.metrics import Metrics

from .channels import Channels
from .messages import MessageError, model_of
from .methods import HEALTH_WATCH, NOT_READY, OWN, asked

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

    def __init__(self, holder: Holder, metrics: Metrics, ready: Callable[[], bool], channels: Channels) -> None:
        self._holder, self._metrics, self._ready, self._channels = holder, metrics, ready, channels

    def service(self, details: Any) -> Any:
        """Return the handler of a call: messages come and go as bytes, as many as there are."""
        method: str = details.method

        async def serve(_: Any, context: Any) -> None:
            await self._serve(method, context)

        return grpc.stream_stream_rpc_method_handler(serve)

    async def _serve(self, method: str, context: Any) -> None:
        kind = asked(method)
        if kind is Asked.OTHER:
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"{method}: {NO_SERVER}")
        first = await context.read()
        if first is EOF:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{method} was called without a message")
        try:
            if kind in (Asked.LIVE, Asked.SERVER_READY, Asked.SERVER):
                await self._tell(method, kind, context)
            else:
                await self._of_model(method, kind, first, context)
        except MessageError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{method}: the message cannot be read: {error}")
        except HoldingError as error:
            await context.abort(_CODES[error.refusal], error.message)

    async def _tell(self, method: str, kind: Asked, context: Any) -> None:
        """What concerns no server that runs."""
        known = self._ready() or kind is not Asked.SERVER_READY
        await context.write(OWN[kind] if known else NOT_READY.get(method, b""))
        if method == HEALTH_WATCH:
            await asyncio.Event().wait()  # it stays so, until the one who watches leaves

    async def _of_model(self, method: str, kind: Asked, first: bytes, context: Any) -> None:
        """Raises MessageError, HoldingError."""
        model = model_of(first)
        member = self._holder.member(model)
        if kind is not Asked.HOLD and not member.endpoints:
            if kind is Asked.READY:
                await context.write(OWN[kind])
                return
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"model '{model}' runs nowhere now; {NO_SERVER}")
        outcome = "gone"
        try:
            channel = await self._holder.reach(model, len(first), self._channels.open)
            outcome = "passed"
        except HoldingError as error:
            outcome = error.refusal
            raise
        finally:
            self._metrics.ended(member.name, outcome)
        await _pass(channel, method, first, context)


async def _pass(channel: grpc.aio.Channel, method: str, first: bytes, context: Any) -> None:
    """Make the same call there, and let it end here as it ends there."""
    left = context.time_remaining()
    call = channel.stream_stream(method)(
        metadata=grpc.aio.Metadata(*_passed_on(context.invocation_metadata() or ())),
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
    """All messages of the one who calls; one that has its answer already takes no more."""
    with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError, grpc.aio.UsageError):
        message = first
        while message is not EOF:
            await call.write(message)
            message = await context.read()
        await call.done_writing()


def _passed_on(metadata: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Without what belongs to the connection that it came by."""
    return [(key, value) for key, value in metadata if key != "user-agent" and not key.startswith(_OF_THE_TRANSPORT)]
