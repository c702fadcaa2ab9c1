"""Timeouts of waiting requests: a heap, from which the entries of other requests are removed lazily."""

from heapq import heapify, heappop, heappush
from typing import Final

from .queued_request import QueuedRequest

# Entries of requests that have left, in addition to as many as there are waiting requests.
_SLACK: Final = 64


class Deadlines:
    """The deadlines of waiting requests. The heap has their numbers, so that it keeps no tensors alive.

    A request that leaves costs no search: its entry is skipped at the top, and the heap is rebuilt once most of its
    entries are such ones.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []
        self._waiting: dict[int, QueuedRequest] = {}
        self._last = 0

    def __len__(self) -> int:
        """Return the number of entries, with those of requests that have left."""
        return len(self._heap)

    def add(self, queued: QueuedRequest, deadline: int) -> None:
        """Add a request whose timeout expires at `deadline`, in nanoseconds."""
        self._last += 1
        queued.ticket = self._last
        self._waiting[queued.ticket] = queued
        heappush(self._heap, (deadline, queued.ticket))

    def forget(self, queued: QueuedRequest) -> None:
        """Remove a request of `add` that leaves the queue."""
        del self._waiting[queued.ticket]
        if len(self._heap) > 2 * len(self._waiting) + _SLACK:
            self._heap = [entry for entry in self._heap if entry[1] in self._waiting]
            heapify(self._heap)

    @property
    def next(self) -> int | None:
        """Time of the next timeout; None without one."""
        heap = self._heap
        while heap and heap[0][1] not in self._waiting:
            heappop(heap)
        return heap[0][0] if heap else None

    def struck(self, now: int) -> list[QueuedRequest]:
        """Remove and return the requests whose timeouts have expired by `now`, in that order."""
        struck: list[QueuedRequest] = []
        heap = self._heap
        while heap and heap[0][0] <= now:
            _, ticket = heappop(heap)
            queued = self._waiting.pop(ticket, None)
            if queued is not None:
                struck.append(queued)
        return struck
