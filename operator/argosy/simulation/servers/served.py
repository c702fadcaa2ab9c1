"""The work of a server since the last sample, and the interface of all kinds of servers."""

from dataclasses import dataclass, field
from typing import Protocol

from argosy.autoscaling.decision import Allocation


@dataclass(slots=True)
class Served:
    """Requests that were started: when each arrived, was started and had its last response, in seconds of the trace.
    `over`: when each execution that was started ends; `lasting`: its seconds. `busy_s` are those of all executions
    together. Of engines: when each request whose prompt was begun arrived (`prompted`) and had its first token
    (`first`); `tokens` that were generated, and `between_s` the seconds between one of a sequence's tokens and its
    next, of all sequences together.
    """

    arrived: list[float] = field(default_factory=list)
    started: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    over: list[float] = field(default_factory=list)
    lasting: list[float] = field(default_factory=list)
    prompted: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    tokens: float = 0.0
    between_s: float = 0.0
    busy_s: float = 0.0


class Server(Protocol):
    """One replica. Requests are offered in the order of their arrival, before time passes them."""

    served: Served

    def offer(self, arrivals: list[float], numbers: range) -> None:
        """Queue requests by their times of arrival; `numbers` are their indexes in the trace."""

    def advance(self, until: float) -> None:
        """Start all executions that start until a second of the trace."""

    def change(self, allocation: Allocation, now: float) -> None:
        """Set the instances, the window and the largest batch from now on."""

    def unfinished(self, until: float) -> float:
        """Return seconds of instances' time that executions begun by then take beyond it."""

    @property
    def queued(self) -> int:
        """Queued requests, and those in an engine."""

    @property
    def running(self) -> int:
        """Those of the queued requests that an engine generates."""

    @property
    def idle_from(self) -> float:
        """When the last execution ends."""
