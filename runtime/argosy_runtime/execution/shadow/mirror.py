"""Mirroring: which requests of a stable version are copied to a candidate, and what must not be felt of it."""

import logging
from typing import Final, Protocol

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.comparison.answers import AnswerFormat
from argosy_runtime.comparison.sampled import is_sampled
from argosy_runtime.execution.clock import Clock
from argosy_runtime.messages import Deliver, InferRequest, Submission
from argosy_runtime.modelconfig.parameters.traffic import Shadow
from argosy_runtime.scheduling.shadow_share import ShadowShare
from argosy_runtime.telemetry.shadow.statistics import Obstacle, ShadowStatistics
from argosy_runtime.telemetry.statistics import ModelStatistics

from .comparing import ComparisonWork
from .mirrored import Comparison, MirroredRequest
from .requests import ShadowRequests, size_of

_log: Final = logging.getLogger("argosy.shadow")


class ShadowedVersion(Protocol):
    """A version that takes requests, as the stable one or as the candidate."""

    name: str
    version: int
    config: ModelConfig
    statistics: ModelStatistics

    @property
    def ready(self) -> bool:
        """True if it can answer."""

    def submit(self, request: InferRequest, deliver: Deliver) -> Submission:
        """Start a request. Raises ServingError where it is refused at once; other errors are delivered."""


class Mirror:
    """Sends the requests of a stable version to it, and a copy of some to a candidate.

    A client gets the stable version's responses as they come: before the copy's, and whatever becomes of that.
    """

    def __init__(self, shadow: Shadow, stable: ModelConfig, work: ComparisonWork, clock: Clock) -> None:
        self._shadow = shadow
        self._share = ShadowShare(shadow.share)
        self._work = work
        self._requests = ShadowRequests()
        self._open: set[MirroredRequest] = set()
        tolerances = {tolerance.output: tolerance for tolerance in shadow.tolerances}
        self._comparison = Comparison(AnswerFormat(stable), tolerances, work, clock, self._open.discard)
        self._closed = False

    @property
    def in_flight(self) -> int:
        """The copies whose comparison is not over."""
        return len(self._open)

    def submit(
        self, stable: ShadowedVersion, candidate: ShadowedVersion | None, request: InferRequest, deliver: Deliver
    ) -> Submission:
        """Submit a request to the stable version, as its own `submit`. `candidate`: None while it is not loaded."""
        if self._closed or candidate is None or not self._share.chooses(request):
            return stable.submit(request, deliver)
        try:
            mirrored = self._mirrored(stable, candidate, request)
        except Exception:
            _log.exception("a request of model '%s' cannot be copied", stable.name)
            mirrored = None
        if mirrored is None:
            return stable.submit(request, deliver)
        self._open.add(mirrored)
        try:
            submission = stable.submit(request, mirrored.before(deliver))
        except BaseException:
            mirrored.withdraw()
            raise
        mirrored.send(candidate.submit)
        return submission

    def close(self) -> None:
        """Withdraw all copies, and make no further ones."""
        self._closed = True
        for mirrored in list(self._open):
            mirrored.cancel()

    def _mirrored(
        self, stable: ShadowedVersion, candidate: ShadowedVersion, request: InferRequest
    ) -> MirroredRequest | None:
        """Return the copy to send; None where the request is skipped, which is counted."""
        statistics = shadow_statistics(candidate)
        size = size_of(request)
        obstacle = self._obstacle(stable, candidate, request)
        if obstacle is None:
            # Memory is reserved last: an error before would keep it forever.
            is_random = is_sampled(request, self._comparison.answers)
            copy = self._requests.copy(request)
            if self._work.reserve(size):
                return MirroredRequest(self._comparison, copy, size, statistics, is_random)
            obstacle = Obstacle.MEMORY
        statistics.skipped(obstacle)
        self._share.give_up(request)
        return None

    def _obstacle(self, stable: ShadowedVersion, candidate: ShadowedVersion, request: InferRequest) -> Obstacle | None:
        """Return why a chosen request is not copied now."""
        if not candidate.ready:
            return Obstacle.NOT_READY
        if len(self._open) >= self._shadow.max_in_flight:
            return Obstacle.IN_FLIGHT
        if request.sequence_id and not request.sequence_start:
            return None  # A sequence is copied as a whole, or given up.
        is_busy = stable.statistics.pending > max(1, stable.config.max_batch_size)
        return Obstacle.BUSY if is_busy or candidate.statistics.pending else None


def shadow_statistics(candidate: ShadowedVersion) -> ShadowStatistics:
    """Return the counters of a version as a candidate, which are made when it first is one."""
    statistics = candidate.statistics
    if statistics.shadow is None:
        statistics.shadow = ShadowStatistics(output.name for output in candidate.config.output)
    return statistics.shadow
