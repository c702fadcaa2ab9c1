"""Mirroring: which requests of a stable version are copied to a candidate, and what must not be felt of it."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from argosy_runtime.comparison.answers import AnswerFormat
from argosy_runtime.comparison.sampled import is_sampled
from argosy_runtime.execution.clock import Clock
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, QueueTrace, Submission
from argosy_runtime.modelconfig.parameters.traffic import Shadow
from argosy_runtime.scheduling.shadow_share import ShadowShare
from argosy_runtime.telemetry.shadow.statistics import Obstacle, ShadowStatistics

from .comparing import ComparisonWork
from .mirrored import Comparison, MirroredRequest
from .queue import ShadowQueue
from .requests import ShadowRequests, size_of
from .versions import ComparedVersion

_log: Final = logging.getLogger("argosy.shadow")


class Mirror:
    """Sends the requests of a stable version to it, and a copy of some to a candidate.

    A client gets the stable version's responses as they come: before the copy's, and whatever becomes of that.
    """

    def __init__(
        self, shadow: Shadow, stable: ComparedVersion, candidate: ComparedVersion, work: ComparisonWork, clock: Clock
    ) -> None:
        self._shadow = shadow
        self._stable = stable
        self._candidate = candidate
        self._share = ShadowShare(shadow.share)
        self._work = work
        self._requests = ShadowRequests()
        self._open: set[MirroredRequest] = set()
        self._queue = ShadowQueue(stable, candidate, clock, self._give_up)
        tolerances = {tolerance.output: tolerance for tolerance in shadow.tolerances}
        answers = AnswerFormat(stable.config)
        self._comparison = Comparison(answers, tolerances, work, clock, self._queue.left, self._end)
        self._closed = False

    @property
    def in_flight(self) -> int:
        """The copies whose comparison is not over, those that wait for their turn among them."""
        return len(self._open)

    def submit(self, request: InferRequest, deliver: Deliver) -> Submission:
        """Submit a request to the stable version, as its own `submit`."""
        if self._closed or not self._share.chooses(request):
            return self._stable.submit(request, self._noticed(deliver) if self._queue else deliver)
        try:
            mirrored = self._mirrored(request)
        except Exception:
            _log.exception("a request of model '%s' cannot be copied", self._stable.name)
            mirrored = None
        if mirrored is None:
            return self._stable.submit(request, self._noticed(deliver))
        self._open.add(mirrored)
        try:
            submission = self._stable.submit(request, mirrored.before(self._noticed(deliver)))
        except BaseException:
            mirrored.withdraw()
            raise
        if mirrored in self._open:
            self._guarded(partial(self._queue.add, mirrored))
        return submission

    def close(self) -> None:
        """Withdraw all copies, and make no further ones."""
        self._closed = True
        self._queue.clear()
        for mirrored in list(self._open):
            mirrored.cancel()

    def _noticed(self, deliver: Deliver) -> Deliver:
        """Return what takes a request's responses where copies may wait for its end."""

        def notice(response: InferResponse) -> None:
            is_final = response.final
            try:
                deliver(response)
            finally:
                if is_final and self._queue:
                    self._guarded(self._queue.advance)

        return notice

    def _mirrored(self, request: InferRequest) -> MirroredRequest | None:
        """Return the copy to send; None where the request is skipped, which is counted."""
        statistics = shadow_statistics(self._candidate)
        size = size_of(request)
        obstacle = self._obstacle()
        if obstacle is None:
            # Memory is reserved last: an error before would keep it forever.
            is_random = is_sampled(request, self._comparison.answers)
            copy = self._requests.copy(request)
            if self._work.reserve(size):
                request.queue_trace, copy.queue_trace = QueueTrace(), QueueTrace()
                return MirroredRequest(self._comparison, request.queue_trace, copy, size, statistics, is_random)
            obstacle = Obstacle.MEMORY
        statistics.skipped(obstacle)
        self._share.give_up(request)
        return None

    def _obstacle(self) -> Obstacle | None:
        """Return why a chosen request is not copied."""
        if not self._candidate.ready:
            return Obstacle.NOT_READY
        return Obstacle.IN_FLIGHT if len(self._open) >= self._shadow.max_in_flight else None

    def _give_up(self, mirrored: MirroredRequest, why: Obstacle | None) -> None:
        """Skip a copy that has waited too long, and the later ones of its sequence."""
        self._share.give_up(mirrored.copy)
        for other in [mirrored, *self._open] if mirrored.copy.sequence_id else [mirrored]:
            if other.copy.sequence_id == mirrored.copy.sequence_id:
                other.give_up(why)

    def _end(self, mirrored: MirroredRequest) -> None:
        self._open.discard(mirrored)
        self._guarded(partial(self._queue.left, mirrored))

    def _guarded(self, step: Callable[[], None]) -> None:
        """Take a step that must not fail the client's request. No request is copied after one that fails."""
        try:
            step()
        except Exception:
            _log.exception("no further requests of model '%s' are copied", self._stable.name)
            if not self._closed:
                self.close()


def shadow_statistics(candidate: ComparedVersion) -> ShadowStatistics:
    """Return the counters of a version as a candidate, which are made when it first is one."""
    statistics = candidate.statistics
    if statistics.shadow is None:
        statistics.shadow = ShadowStatistics(output.name for output in candidate.config.output)
    return statistics.shadow
