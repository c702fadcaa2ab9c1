"""Warm-up of an instance: batches that it answers before any client's. They are counted like those."""

import asyncio
from collections.abc import Sequence
from functools import partial

from argosy_runtime.backends.contract import ExecutionTimes
from argosy_runtime.errors import ServingError, unavailable
from argosy_runtime.messages import InferRequest, InferResponse
from argosy_runtime.scheduling.queued_request import QueuedRequest
from argosy_runtime.telemetry.statistics import ModelStatistics

from .clock import Clock
from .instance import Instance


class WarmUp:
    """The warm-up batches of each new instance of a model version, run within `timeout` seconds together."""

    def __init__(
        self,
        batches: Sequence[Sequence[InferRequest]],
        statistics: ModelStatistics,
        clock: Clock,
        timeout: float = 600.0,
    ) -> None:
        self._batches = batches
        self._statistics = statistics
        self._clock = clock
        self._timeout = timeout

    async def run(self, instance: Instance) -> None:
        """Run the batches one after the other. Raises the first ServingError of an answer.

        It is UNAVAILABLE where they take too long.
        """
        end = self._clock.now() + round(self._timeout * 1e9)
        for batch in self._batches:
            listener = _WarmUpBatch(batch, self._statistics, self._clock)
            timer = self._clock.call_at(end, partial(listener.give_up, self._too_long(instance.name)))
            instance.run(batch, listener)
            try:
                error = await listener.over
            finally:
                timer.cancel()
            if error is not None:
                raise error

    def _too_long(self, name: str) -> ServingError:
        return unavailable(
            f"model instance '{name}' is still warming up after {self._timeout:g} s; if it needs longer, raise "
            "--model-load-timeout-secs or the parameter LOAD_TIMEOUT_SECONDS of its config"
        )


class _WarmUpBatch:
    """A listener that waits until a batch has run and every request of it has its last response."""

    def __init__(self, batch: Sequence[InferRequest], statistics: ModelStatistics, clock: Clock) -> None:
        self.over: asyncio.Future[ServingError | None] = asyncio.get_running_loop().create_future()
        now = clock.now()
        self._batch = [QueuedRequest(request, now) for request in batch]
        for queued in self._batch:
            queued.started = now
        self._unanswered = len(batch)
        self._running = True
        self._error: ServingError | None = None
        self._statistics = statistics
        self._clock = clock

    def answered(self, responses: list[InferResponse], times: ExecutionTimes) -> None:
        for index, response in enumerate(responses):
            self.respond(index, response)
        self.done(times)

    def failed(self, error: ServingError) -> None:
        self._error = self._error or error

    def free(self) -> None:
        """Do nothing: the next warm-up batch waits for the answers."""

    def respond(self, index: int, response: InferResponse) -> None:
        self._error = self._error or response.error
        if response.final:
            self._statistics.answered(self._batch[index], response, self._clock.now(), warm_up=True)
            self._unanswered -= 1
            self._settle()

    def done(self, times: ExecutionTimes | None) -> None:
        self._statistics.executed(self._batch, times, self._clock.now())
        self._running = False
        self._settle()

    def give_up(self, error: ServingError) -> None:
        """Fail a batch that takes too long; later responses to it are ignored."""
        if not self.over.done():
            self.over.set_result(error)

    def _settle(self) -> None:
        if not (self._running or self._unanswered or self.over.done()):
            self.over.set_result(self._error)
