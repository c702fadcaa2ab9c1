"""The responses to one request for coroutines: in order, bounded, and cancelled when the coroutine leaves."""

import asyncio
from collections import deque
from collections.abc import Callable
from types import TracebackType

from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission

Submit = Callable[[InferRequest, Deliver], Submission]

# Responses that may wait before the model is paused; once half of them are taken, it is resumed.
HIGH_WATER = 64


class ResponseStream:
    """An asynchronous iterator over the responses to `request`. Leaving its `async with` cancels the request
    unless it is over.

    Entering raises ServingError where the request may not enter.
    """

    def __init__(self, submit: Submit, request: InferRequest) -> None:
        self._submit = submit
        self._request = request
        self._waiting: deque[InferResponse] = deque()
        self._submission: Submission | None = None
        self._next: asyncio.Future[None] | None = None
        self._paused = False
        self._over = False

    async def __aenter__(self) -> "ResponseStream":
        self._submission = self._submit(self._request, self._deliver)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._over and self._submission is not None:
            self._submission.cancel()

    def __aiter__(self) -> "ResponseStream":
        return self

    async def __anext__(self) -> InferResponse:
        while not self._waiting:
            if self._over:
                raise StopAsyncIteration
            self._next = asyncio.get_running_loop().create_future()
            await self._next
        response = self._waiting.popleft()
        if self._paused and len(self._waiting) <= HIGH_WATER // 2:
            self._paused = False
            if self._submission is not None:
                self._submission.resume()
        return response

    def _deliver(self, response: InferResponse) -> None:
        self._waiting.append(response)
        self._over = self._over or response.final
        if self._next is not None and not self._next.done():
            self._next.set_result(None)
        if len(self._waiting) >= HIGH_WATER and not (self._paused or self._over) and self._submission is not None:
            self._paused = True
            self._submission.pause()
