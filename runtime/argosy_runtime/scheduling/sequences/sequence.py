"""A sequence, and one of its requests."""

from collections import deque
from secrets import randbits

from argosy_runtime.messages import Tensor
from argosy_runtime.scheduling.queued_request import QueuedRequest


class Step:
    """One request of a sequence, with the flags that the model is to see."""

    __slots__ = ("end", "queued", "sequence", "start")

    def __init__(self, queued: QueuedRequest, sequence: "Sequence", start: bool, end: bool) -> None:
        self.queued = queued
        self.sequence = sequence
        self.start = start
        self.end = end


class Sequence:
    """A sequence from its first request until its slot is free again. Compared by identity; times are nanoseconds.

    `waiting`: its requests that are not running, in order; `running`: the one that is at the instance, or about to go
    there. `instance` is 0 in the backlog, else the number of that which has its slot, at `position`. `ending`: no
    further request joins it. `expires`: when its wait in the backlog ends, 0 for never. `states`: its implicit state by
    the name of the output.
    """

    __slots__ = (
        "ending",
        "expires",
        "id",
        "instance",
        "position",
        "running",
        "states",
        "waiting",
    )

    def __init__(self, identifier: int | str) -> None:
        self.id: int | str = identifier
        self.waiting: deque[Step] = deque()
        self.running: Step | None = None
        self.instance = 0
        self.position = 0
        self.ending = False
        self.expires = 0
        self.states: dict[str, Tensor] | None = None

    @property
    def is_over(self) -> bool:
        """Whether its slot is free again."""
        return self.ending and not self.waiting and self.running is None


class UnnamedIds:
    """What models see as the ids of sequences whose requests have none, positive and below 2^63.

    Models may keep state by the id: clients cannot guess one, and the low 32 bits of 2^32 of them differ.
    """

    __slots__ = ("_last", "_step")

    def __init__(self) -> None:
        self._last = randbits(32)
        self._step = randbits(32) | 1

    def next(self) -> int:
        """Return another id."""
        self._last = (self._last + self._step) & 0xFFFF_FFFF
        return (randbits(30) + 1) << 32 | self._last
