"""A server with a batching queue before its instances, as Triton's dynamic batcher and the runtime's have it."""

from bisect import bisect_right
from itertools import cycle
from math import inf

import numpy as np

from argosy.autoscaling.decision import Allocation
from argosy.simulation.servers.served import Served
from argosy.simulation.service import ServiceCurve

_DRAWS = 4096
_FORGET = 8192


class BatchingServer:
    """Instances of one device that take batches from one queue, first come, first served.

    A batch is formed when an instance is free and the queue holds the largest batch, or its oldest request has waited
    for the window. `from_s`: when it is ready.
    """

    def __init__(self, curve: ServiceCurve, allocation: Allocation, from_s: float, seed: int) -> None:
        self._curve = curve
        self._queue: list[float] = []
        self._head = 0
        self._from = from_s
        self._free = [from_s] * allocation.instances
        self._window = 0.0
        self._largest = curve.max_batch
        self._set_batching(allocation)
        draws = np.random.default_rng(seed).normal(1.0, curve.variation, _DRAWS)
        self._draws = cycle(np.clip(draws, 0.5, 2.0).tolist())
        self.served = Served()

    def offer(self, arrivals: list[float], numbers: range) -> None:
        """Queue requests by their times of arrival; their numbers are not used."""
        self._queue += arrivals

    def change(self, allocation: Allocation, now: float) -> None:
        """Set the allocation in place; removed instances finish their executions."""
        self._free.sort()
        del self._free[allocation.instances :]
        self._free += [max(now, self._from)] * (allocation.instances - len(self._free))
        self._set_batching(allocation)

    def _set_batching(self, allocation: Allocation) -> None:
        self._window = allocation.window_s or 0.0
        self._largest = max(1, min(self._curve.max_batch, allocation.max_batch or self._curve.max_batch))

    def unfinished(self, until: float) -> float:
        """Return seconds of instances' time that executions begun by then take beyond it."""
        return sum(free - until for free in self._free if free > until and free > self._from)

    @property
    def queued(self) -> int:
        """Queued requests."""
        return len(self._queue) - self._head

    @property
    def running(self) -> int:
        """No request is inside an engine."""
        return 0

    @property
    def idle_from(self) -> float:
        """When the last execution ends."""
        return max(self._free)

    def advance(self, until: float) -> None:
        """Form and start batches; the loop is written out, since every batch of a trace passes it."""
        queue, free, served = self._queue, self._free, self.served
        window, largest, head, count = self._window, self._largest, self._head, len(self._queue)
        seconds, draws, alone = self._curve.seconds, self._draws, len(free) == 1
        while head < count:
            start, first = min(free), queue[head]
            instance = 0 if alone else free.index(start)
            if first > start:
                start = first
            last = head + largest
            if window and first + window > start:
                full = queue[last - 1] if last <= count else inf
                start = max(start, min(first + window, full))
            if start > until:
                break
            taken = last if last <= count and queue[last - 1] <= start else bisect_right(queue, start, head, count)
            rows = taken - head
            lasts = seconds[rows - 1] * next(draws)
            if not alone:
                lasts *= self._curve.slower(1 + sum(other > start for other in free))
            end = free[instance] = start + lasts
            served.arrived += queue[head:taken]
            served.started += [start] * rows
            served.ended += [end] * rows
            served.over.append(end)
            served.lasting.append(lasts)
            served.busy_s += lasts
            head = taken
        self._head = head
        if head > _FORGET:
            del queue[:head]
            self._head = 0
