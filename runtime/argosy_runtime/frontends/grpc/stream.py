"""One ModelStreamInfer call: many requests at a time, their responses on one stream."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.frontends.model_lookup import lazy_view
from argosy_runtime.frontends.port import DataPlane
from argosy_runtime.messages import InferRequest, InferResponse
from argosy_runtime.protocol import grpc_request, grpc_response
from argosy_runtime.protocol.grpc_request import GrpcOptions
from argosy_runtime.protocol.model_version import canonical
from argosy_runtime.response_stream import ResponseStream

# Responses that may wait to be written before those who make them must wait too.
PENDING_RESPONSES = 64
Prepare = Callable[[InferRequest], None]


@dataclass(slots=True)
class _Turn:
    """The place of a request in the order of its stream: open once all before it are answered."""

    before: asyncio.Event | None
    answered: asyncio.Event


class StreamSession:
    """Runs the requests of one stream at the same time and yields what is to be written.

    Requests to models that are not decoupled are answered in their order, others as responses come. With
    `errors_close` the first error ends the stream: iterating raises it.
    """

    def __init__(self, plane: DataPlane, prepare: Prepare, errors_close: bool) -> None:
        self._plane = plane
        self._prepare = prepare
        self._errors_close = errors_close
        self._outbox: asyncio.Queue[pb.ModelStreamInferResponse | ServingError | None] = asyncio.Queue(
            PENDING_RESPONSES
        )
        self._running: set[asyncio.Task[None]] = set()
        self._last_turn: asyncio.Event | None = None

    async def run(self, messages: AsyncIterator[pb.ModelInferRequest]) -> AsyncIterator[pb.ModelStreamInferResponse]:
        """Yield responses until all requests are answered. Closing the generator cancels all of them."""
        reader = asyncio.create_task(self._read(messages))
        try:
            while (item := await self._outbox.get()) is not None:
                if isinstance(item, ServingError):
                    raise item
                yield item
        finally:
            tasks = [reader, *self._running]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, messages: AsyncIterator[pb.ModelInferRequest]) -> None:
        async for message in messages:
            await self._begin(message)
        if self._running:
            await asyncio.wait(self._running)
        await self._outbox.put(None)

    async def _begin(self, message: pb.ModelInferRequest) -> None:
        turn: _Turn | None = None
        try:
            message.model_version = canonical(message.model_version)
            config = self._plane.model_config(message.model_name, message.model_version)
            if not config.model_transaction_policy.decoupled:
                turn = self._take_turn()
            request, options = grpc_request.decode(message)
            self._prepare(request)
        except ServingError as error:
            self._start(self._refuse(message.id, error, turn or self._take_turn()))
        else:
            self._start(self._answer(request, options, turn))

    def _take_turn(self) -> _Turn:
        turn = _Turn(self._last_turn, asyncio.Event())
        self._last_turn = turn.answered
        return turn

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _refuse(self, request_id: str, error: ServingError, turn: _Turn | None) -> None:
        if turn is not None and turn.before is not None:
            await turn.before.wait()
        refusal = grpc_response.encode_refusal(request_id, error.message)
        await self._outbox.put(error if self._errors_close else refusal)
        if turn is not None:
            turn.answered.set()

    async def _answer(self, request: InferRequest, options: GrpcOptions, turn: _Turn | None) -> None:
        try:
            async with ResponseStream(self._plane.submit, request) as responses:
                if turn is None:
                    async for response in responses:
                        if not response.is_empty or options.wants_empty_final:
                            await self._put(request, options, response)
                else:
                    held = [response async for response in responses]
                    await self._in_turn(request, options, held, turn)
        except ServingError as error:
            await self._refuse(request.id, error, turn)
        except Exception as error:
            told = f"unexpected {type(error).__name__} in the gRPC front end"
            await self._refuse(request.id, ServingError(ErrorKind.INTERNAL, told), turn)

    async def _in_turn(
        self, request: InferRequest, options: GrpcOptions, held: list[InferResponse], turn: _Turn
    ) -> None:
        """Answer in the stream's order; the one response says it is final, whatever came after it."""
        if turn.before is not None:
            await turn.before.wait()
        for response in held:
            if not response.is_empty:
                response.final = True
                await self._put(request, options, response)
        turn.answered.set()

    async def _put(self, request: InferRequest, options: GrpcOptions, response: InferResponse) -> None:
        if self._errors_close and response.error is not None:
            await self._outbox.put(response.error)
            return
        view = lazy_view(self._plane, request.model_name, request.model_version)
        try:
            message = grpc_response.encode_stream(request, response, options.classes, view)
        except ServingError as error:
            message = grpc_response.encode_refusal(request.id, error.message)
        await self._outbox.put(message)
