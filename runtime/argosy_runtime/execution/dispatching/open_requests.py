"""The requests of one model version that are not over: those of clients, and copies of them for a shadow."""

import asyncio

from argosy_runtime.messages import InferRequest
from argosy_runtime.scheduling.queued_request import QueuedRequest
from argosy_runtime.telemetry.statistics import ModelStatistics


class OpenRequests:
    """Counts of the requests that are not over.

    Copies for a shadow are owed to no client: nothing waits for them, and they are not among the pending requests of
    `statistics`.
    """

    def __init__(self, statistics: ModelStatistics) -> None:
        self.owed = 0
        self.mirrored = 0
        self._statistics = statistics
        self._drained: asyncio.Future[None] | None = None

    @property
    def running(self) -> int:
        """Number of requests of clients at instances."""
        return self.owed - self._statistics.pending

    def opened(self, queued: QueuedRequest) -> None:
        """Count a request."""
        if queued.request.is_shadow:
            self.mirrored += 1
        else:
            self.owed += 1

    def over(self, queued: QueuedRequest) -> None:
        """Count the end of a request. After that of the last one of a client, `draining` is done."""
        if queued.request.is_shadow:
            self.mirrored -= 1
            return
        self.owed -= 1
        if not self.owed and self._drained is not None:
            self.stop_draining()

    def left_queue(self, requests: list[QueuedRequest]) -> None:
        """Count requests that wait no more."""
        waited = len(requests)
        if self.mirrored:
            for queued in requests:
                if queued.request.is_shadow:
                    waited -= 1
                    _left_queue(queued.request)
        if waited:
            self._statistics.left_queue(waited)

    def entered_queue(self, queued: QueuedRequest) -> None:
        """Count a request that waits."""
        request = queued.request
        if not request.is_shadow:
            self._statistics.accepted()
        elif request.queue_trace is not None:
            request.queue_trace.waiting += 1

    def draining(self) -> "asyncio.Future[None]":
        """Return a future that is done once all clients are answered. All waiters share it, so it must be shielded."""
        if self._drained is None or self._drained.done():
            self._drained = asyncio.get_running_loop().create_future()
        return self._drained

    def stop_draining(self) -> None:
        """End the wait of all that wait for `draining`."""
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)


def _left_queue(copy: InferRequest) -> None:
    if copy.queue_trace is not None:
        copy.queue_trace.waiting -= 1
