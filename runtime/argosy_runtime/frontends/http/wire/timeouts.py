"""How long a connection may wait for its client.

One sweep looks at all connections now and then, so that no request costs a timer.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum, auto
from typing import Generic, Protocol, TypeVar

_LONGEST_PERIOD_S = 5.0
_SWEEPS_A_TIMEOUT = 4


class Phase(Enum):
    """What a connection is waiting for."""

    IDLE = auto()
    """A next request."""
    HEAD = auto()
    """The rest of a head."""
    BODY = auto()
    """The rest of a body."""
    ANSWERING = auto()
    """The application."""
    WRITING = auto()
    """The client, who does not read what is being written."""


@dataclass(frozen=True)
class Timeouts:
    """In seconds; 0 is for ever. `head`: from a request's first byte to its last header. `body`: between two pieces of
    a body. `idle`: between two requests, and for a client that reads nothing of an answer.

    The idle one is longer than load balancers keep a connection they mean to use again (Google's: 600 s).
    """

    head: float = 60.0
    body: float = 60.0
    idle: float = 620.0

    def of(self, phase: Phase) -> float:
        """The longest that a phase may last without progress; infinity for ever."""
        found = {Phase.HEAD: self.head, Phase.BODY: self.body, Phase.IDLE: self.idle, Phase.WRITING: self.idle}
        return found.get(phase, 0.0) or float("inf")

    @property
    def period(self) -> float:
        """How often to look, so that a timeout is kept to within a quarter; infinity where there is none."""
        shortest = min(self.of(phase) for phase in Phase)
        return shortest if shortest == float("inf") else min(_LONGEST_PERIOD_S, shortest / _SWEEPS_A_TIMEOUT)


class Patience:
    """What one connection was last seen waiting for, and since when."""

    __slots__ = ("_phase", "_progress", "_since")

    def __init__(self, now: float) -> None:
        self._phase = Phase.IDLE
        self._progress = 0
        self._since = now

    def is_over(self, phase: Phase, progress: int, now: float, timeouts: Timeouts) -> bool:
        """Whether a phase has lasted too long. It lasts while phase and `progress` stay as they are."""
        if phase is not self._phase or progress != self._progress:
            self._phase, self._progress, self._since = phase, progress, now
            return False
        return now - self._since >= timeouts.of(phase)


class Watched(Protocol):
    """A connection. `received` grows with what comes, `requests` with each complete request."""

    received: int
    requests: int

    @property
    def phase(self) -> Phase:
        """What it is waiting for."""

    def give_up(self) -> None:
        """It has waited too long."""


Connection = TypeVar("Connection", bound=Watched)


class Sweeper(Generic[Connection]):
    """Looks after all connections of a listener."""

    def __init__(self, connections: Collection[Connection], timeouts: Timeouts) -> None:
        self.timeouts = timeouts
        self._connections = connections
        self._patience: dict[Connection, Patience] = {}

    def sweep(self, now: float) -> None:
        """Give up the connections whose clients have let them wait too long; `now` in seconds."""
        known, self._patience = self._patience, {}
        for connection in tuple(self._connections):
            patience = self._patience[connection] = known.get(connection) or Patience(now)
            phase = connection.phase
            progress = connection.received if phase is Phase.BODY else connection.requests
            if patience.is_over(phase, progress, now, self.timeouts):
                connection.give_up()
