"""`max_inflight_requests` of an ensemble: how many requests of each step are open at a time, of all requests to it.

Further ones wait in the order in which they came.
"""

from collections import OrderedDict
from typing import Generic, TypeVar

Call = TypeVar("Call")


class StepLimits(Generic[Call]):
    """The open and the waiting calls of each of `steps` steps, of which `limit` may be open at a time."""

    def __init__(self, limit: int, steps: int) -> None:
        self._limit = limit
        self._open = [0] * steps
        self._waiting: list[OrderedDict[Call, None]] = [OrderedDict() for _ in range(steps)]

    def enter(self, step: int, call: Call) -> bool:
        """Open a call of a step. Return False where it has to wait."""
        if self._open[step] < self._limit:
            self._open[step] += 1
            return True
        self._waiting[step][call] = None
        return False

    def leave(self, step: int) -> Call | None:
        """Close a call of a step. Return the one that is open in its place, None where none waits."""
        if self._waiting[step]:
            call, _ = self._waiting[step].popitem(last=False)
            return call
        self._open[step] -= 1
        return None

    def withdraw(self, step: int, call: Call) -> None:
        """Remove a call that waits."""
        self._waiting[step].pop(call, None)
