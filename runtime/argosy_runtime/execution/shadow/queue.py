"""Copies that wait for their turn, so that no request waits for one of them.

A copy begins while no request waits for an instance of the stable version, and an instance of the candidate is free. As
the candidate's instances have copies alone, requests and copies then share nothing but the devices, and after each copy
these are left alone for a while. Copies that wait too long are given up.
"""

from collections.abc import Callable
from typing import Final

from argosy_runtime.execution.clock import Clock, Timer
from argosy_runtime.telemetry.shadow.statistics import Obstacle

from .mirrored import MirroredRequest
from .rest import Rest
from .versions import ComparedVersion, has_executions

LONGEST_WAIT_NS: Final = 10_000_000_000
"""A version under which requests wait all the time, for so long, has no time for copies."""
_RECHECK_NS: Final = 2_000_000
"""How often it is checked at most whether a rest is over, besides at the end of each request."""


class ShadowQueue:
    """The copies for one candidate that have not begun, in their order, and those that it has not answered.

    `skip` is called with each copy that has waited too long, and why: None where the candidate does not answer.
    """

    def __init__(
        self,
        stable: ComparedVersion,
        candidate: ComparedVersion,
        clock: Clock,
        skip: Callable[[MirroredRequest, Obstacle | None], None],
    ) -> None:
        self._stable = stable
        self._candidate = candidate
        self._clock = clock
        self._skip = skip
        self._waiting: dict[MirroredRequest, int] = {}
        self._begun: set[MirroredRequest] = set()
        self._hangs = False
        self._rest = Rest(stable, clock.now())
        self._since = 0
        self._timer: Timer | None = None
        self._timer_at = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, copy: MirroredRequest) -> None:
        """Queue a copy, and send it at once if it may begin."""
        self._waiting[copy] = self._clock.now() + LONGEST_WAIT_NS
        self.advance()

    def advance(self) -> None:
        """Send the copies that may begin now."""
        if self._waiting and self._why_not() is None:
            self._begin()
        if self._waiting:
            self._set_timer()

    def _begin(self) -> None:
        """Send the copies that fit into a batch of each of the candidate's instances."""
        self._since = self._clock.now()
        fits = len(self._waiting)
        if has_executions(self._candidate):
            fits = (self._candidate.instances or 1) * max(1, self._candidate.config.max_batch_size)
        for copy in list(self._waiting)[:fits]:
            if self._waiting.pop(copy, None) is not None:
                self._begun.add(copy)
                copy.send(self._candidate.submit)

    def left(self, copy: MirroredRequest) -> None:
        """Note that the candidate has answered a copy, or that it is over."""
        self._waiting.pop(copy, None)
        if copy in self._begun:
            self._begun.discard(copy)
            if not self._begun and copy.is_answered:
                now = self._clock.now()
                self._rest.begin(now, now - self._since)
        if copy.has_timed_out or copy.is_answered:
            self._hangs = copy.has_timed_out
        self.advance()

    def clear(self) -> None:
        """Send no further copy."""
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _why_not(self) -> Obstacle | None:
        """Return why the next copy may not begin."""
        if _is_waited_for(self._stable):
            return Obstacle.BUSY
        if not has_executions(self._candidate):
            return None  # They begin as soon as they are sent; how many may is limited where they are made.
        if self._begun or self._candidate.statistics.busy >= (self._candidate.instances or 1):
            return Obstacle.IN_FLIGHT
        return Obstacle.BUSY if self._rests() else None

    def _rests(self) -> bool:
        now = self._clock.now()
        return has_executions(self._stable) and self._rest.until(now) > now

    def _set_timer(self) -> None:
        """Call back when the first copy has waited too long, or a rest ends."""
        now = self._clock.now()
        at = next(iter(self._waiting.values()))
        if not self._begun and self._rests():
            at = min(at, max(self._rest.until(now), now + _RECHECK_NS))
        if self._timer is not None:
            if self._timer_at <= at:
                return
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._clock.call_at(at, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self.advance()
        now, why = self._clock.now(), self._why_not()
        if why is Obstacle.IN_FLIGHT and self._hangs:
            why = None
        for copy in [copy for copy, until in self._waiting.items() if until <= now]:
            if copy in self._waiting:
                self._skip(copy, why)


def _is_waited_for(version: ComparedVersion) -> bool:
    """Return whether a request waits for an instance. While one is free, those that wait do so for their batch."""
    statistics, instances = version.statistics, version.instances
    if not statistics.pending:
        return False
    return instances is None or statistics.busy >= instances
