"""Copies that wait for their turn, so that no request waits for one of them.

A copy begins while no request waits for an instance of the stable version, and an instance of the candidate is free. As
the candidate's instances have copies alone, requests and copies then share nothing but the devices. Copies that wait
too long are given up.
"""

from collections.abc import Callable
from typing import Final, Protocol

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.execution.clock import Clock, Timer
from argosy_runtime.messages import Deliver, InferRequest, Submission
from argosy_runtime.telemetry.shadow.statistics import Obstacle
from argosy_runtime.telemetry.statistics import ModelStatistics

from .mirrored import MirroredRequest

LONGEST_WAIT_NS: Final = 10_000_000_000
"""A version under which requests wait all the time, for so long, has no time for copies."""


class ShadowedVersion(Protocol):
    """A version that takes requests, as the stable one or as the candidate."""

    name: str
    version: int
    config: ModelConfig
    statistics: ModelStatistics

    @property
    def ready(self) -> bool:
        """True if it can answer."""

    @property
    def instances(self) -> int | None:
        """Number of instances that take batches; None for one without instances of its own, as an ensemble."""

    def submit(self, request: InferRequest, deliver: Deliver) -> Submission:
        """Start a request. Raises ServingError where it is refused at once; other errors are delivered."""


class ShadowQueue:
    """The copies for one candidate that have not begun, in their order, and those that it has not answered.

    `given_up` is called with each copy that has waited too long, and why: None where the candidate does not answer.
    """

    def __init__(
        self,
        stable: ShadowedVersion,
        candidate: ShadowedVersion,
        clock: Clock,
        given_up: Callable[[MirroredRequest, Obstacle | None], None],
    ) -> None:
        self._stable = stable
        self._candidate = candidate
        self._clock = clock
        self._given_up = given_up
        self._waiting: dict[MirroredRequest, int] = {}
        self._begun: set[MirroredRequest] = set()
        self._hangs = False
        self._timer: Timer | None = None

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, copy: MirroredRequest) -> None:
        """Queue a copy, and send it at once if it may begin."""
        self._waiting[copy] = self._clock.now() + LONGEST_WAIT_NS
        self.advance()
        if self._waiting and self._timer is None:
            self._set_timer()

    def advance(self) -> None:
        """Send the copies that may begin now."""
        while self._waiting and self._why_not() is None:
            copy = next(iter(self._waiting))
            del self._waiting[copy]
            self._begun.add(copy)
            copy.send(self._candidate.submit)

    def left(self, copy: MirroredRequest) -> None:
        """Note that the candidate has answered a copy, or that it is over."""
        self._waiting.pop(copy, None)
        self._begun.discard(copy)
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
        instances, statistics = self._candidate.instances, self._candidate.statistics
        if instances is None or statistics.answers_later:
            return None  # They begin as soon as they are sent; how many may is limited where they are made.
        if statistics.busy >= instances:
            return Obstacle.IN_FLIGHT
        fits = instances * max(1, self._candidate.config.max_batch_size)
        return None if len(self._begun) < fits else Obstacle.IN_FLIGHT

    def _set_timer(self) -> None:
        self._timer = self._clock.call_at(next(iter(self._waiting.values())), self._expire)

    def _expire(self) -> None:
        self._timer = None
        self.advance()
        now, why = self._clock.now(), self._why_not()
        if why is Obstacle.IN_FLIGHT and self._hangs:
            why = None
        for copy in [copy for copy, until in self._waiting.items() if until <= now]:
            if copy in self._waiting:
                self._given_up(copy, why)
        if self._waiting and self._timer is None:
            self._set_timer()


def _is_waited_for(version: ShadowedVersion) -> bool:
    """Return whether a request waits for an instance. While one is free, those that wait do so for their batch."""
    statistics, instances = version.statistics, version.instances
    if not statistics.pending:
        return False
    return instances is None or statistics.busy >= instances
