"""Timeouts of a connection that waits for its client.

One sweep checks all connections periodically, so that no request needs a timer.
"""

from dataclasses import dataclass
from enum import IntEnum
from math import inf

_LONGEST_PERIOD_S = 5.0
_SWEEPS_A_TIMEOUT = 4


class Phase(IntEnum):
    """What a connection is waiting for."""

    ANSWERING = 0
    """The application."""
    IDLE = 1
    """A next request."""
    HEAD = 2
    """The rest of a head."""
    BODY = 3
    """The rest of a body."""
    WRITING = 4
    """The client, which does not read the response that is being written."""
    HALF_CLOSED = 5
    """The application, for a client that has ended its side and may be gone."""


@dataclass(frozen=True)
class Timeouts:
    """In seconds; 0 is no limit. `head`: from a request's first byte to its last header. `body`: between two pieces of
    a body, and for an answer to begin once its client has ended its side. `idle`: between two requests, and for a
    client that reads nothing of an answer.

    The idle one is longer than load balancers keep a connection they mean to use again (Google's: 600 s).
    """

    head: float = 60.0
    body: float = 60.0
    idle: float = 620.0

    @property
    def limits(self) -> tuple[float, ...]:
        """The longest that each phase may last without progress; infinity for ever."""
        idle, head, body = (seconds or inf for seconds in (self.idle, self.head, self.body))
        return (inf, idle, head, body, idle, body)

    @property
    def period(self) -> float:
        """How often to look, so that a timeout is kept to within a quarter; infinity where there is none."""
        shortest = min(self.limits)
        return inf if shortest == inf else min(_LONGEST_PERIOD_S, shortest / _SWEEPS_A_TIMEOUT)


class Watch:
    """The phase in which one connection was last seen, and since when."""

    __slots__ = ("_phase", "_progress", "_since", "_unread")

    def __init__(self) -> None:
        self._phase = Phase.ANSWERING
        self._progress = 0
        self._since = 0.0
        self._unread = 0

    def is_over(self, phase: Phase, progress: int, unread: int, now: float, limits: tuple[float, ...]) -> bool:
        """Return whether a phase has lasted too long. It lasts while phase, `progress` and `unread` stay as they
        are.
        """
        if phase != self._phase or progress != self._progress or unread != self._unread:
            self._phase, self._progress, self._unread, self._since = phase, progress, unread, now
            return False
        return now - self._since >= limits[phase]
