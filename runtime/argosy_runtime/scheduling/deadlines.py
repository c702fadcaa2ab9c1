"""When the timeouts of waiting requests strike: a heap, from which what has left is dropped late."""

from heapq import heapify, heappop, heappush
from typing import Final

from .queued_request import QueuedRequest

# So many entries of requests that have left may stay beside as many as there are of those that wait.
_SLACK: Final = 64


class Deadlines:
    """The deadlines of the requests that wait. The heap names them by number, so that it keeps no tensors alive.

    A request that leaves costs no search: its entry is passed over when it comes to the top, and the heap is made again
    once most of its entries are such ones.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []
        self._waiting: dict[int, QueuedRequest] = {}
        self._last = 0

    def __len__(self) -> int:
        """Return how many entries there are, those of requests that have left among them."""
        return len(self._heap)

    def add(self, queued: QueuedRequest, deadline: int) -> None:
        """Note that a request's timeout strikes at `deadline`, in nanoseconds."""
        self._last += 1
        queued.ticket = self._last
        self._waiting[queued.ticket] = queued
        heappush(self._heap, (deadline, queued.ticket))

    def forget(self, queued: QueuedRequest) -> None:
        """Note that a request of `add` has left."""
        del self._waiting[queued.ticket]
        if len(self._heap) > 2 * len(self._waiting) + _SLACK:
            self._heap = [entry for entry in self._heap if entry[1] in self._waiting]
            heapify(self._heap)

    @property
    def next(self) -> int | None:
        """When the next timeout strikes; None where none will."""
        heap = self._heap
        while heap and heap[0][1] not in self._waiting:
            heappop(heap)
        return heap[0][0] if heap else None

    def struck(self, now: int) -> list[QueuedRequest]:
        """Return the requests whose timeouts have struck by `now`, in that order; they are here no more."""
        struck: list[QueuedRequest] = []
        heap = self._heap
        while heap and heap[0][0] <= now:
            _, ticket = heappop(heap)
            queued = self._waiting.pop(ticket, None)
            if queued is not None:
                struck.append(queued)
        return struck
