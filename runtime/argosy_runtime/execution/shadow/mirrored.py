"""One request that two versions answer: the client's answer, and the copy's, to be compared once both are complete."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from argosy_runtime.comparison.answers import AnswerFormat, AnswerRecord
from argosy_runtime.comparison.differences import OutputComparison
from argosy_runtime.errors import ErrorKind, FailureReason, ServingError, internal
from argosy_runtime.execution.clock import Clock, Timer
from argosy_runtime.execution.delegating import NOT_YET
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission
from argosy_runtime.modelconfig.parameters.traffic import OutputTolerance
from argosy_runtime.telemetry.shadow.statistics import Obstacle, ShadowStatistics
from argosy_runtime.telemetry.statistics import reason_of

from .comparing import ComparisonWork
from .requests import description

_log: Final = logging.getLogger("argosy.shadow")
_PATIENCE: Final = 10
_PATIENCE_NS: Final = 30_000_000_000
"""A candidate that has not answered ten times the stable version's duration and half a minute later has failed."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How answers are compared, and what that takes. `ended` is called with each copy that is over."""

    answers: AnswerFormat
    tolerances: Mapping[str, OutputTolerance]
    work: ComparisonWork
    clock: Clock
    ended: Callable[["MirroredRequest"], None]


class _Side:
    """The answer of one version so far, with the times of its `first` and its last response, in nanoseconds."""

    __slots__ = ("answer", "ended", "error", "first")

    def __init__(self, answers: AnswerFormat) -> None:
        self.answer: AnswerRecord = answers.begin()
        self.error: ServingError | None = None
        self.first: int | None = None
        self.ended: int | None = None


class MirroredRequest:
    """A request and its copy, of which `size` bytes are held. Nothing that fails here reaches the client.

    `is_random`: its answer is drawn at random, so that it is not compared.
    """

    def __init__(
        self, comparison: Comparison, copy: InferRequest, size: int, statistics: ShadowStatistics, is_random: bool
    ) -> None:
        self._comparison = comparison
        self._copy = copy
        self._reserved = size
        self._statistics = statistics
        self._stable, self._candidate = _Side(comparison.answers), _Side(comparison.answers)
        self._obstacle = Obstacle.SAMPLED if is_random else None
        self._begun = comparison.clock.now()
        self._submission: Submission = NOT_YET
        self._timer: Timer | None = None
        self._over = False

    def before(self, deliver: Deliver) -> Deliver:
        """Return what takes the stable version's responses: it notes each, delivers it, and only then goes on."""

        def tee(response: InferResponse) -> None:
            is_final = response.final
            self._guarded(partial(self._take, self._stable, response))
            try:
                deliver(response)
            finally:
                if is_final:
                    self._guarded(self._stable_ended)

        return tee

    def send(self, submit: Callable[[InferRequest, Deliver], Submission]) -> None:
        """Submit the copy to the candidate."""
        if self._over:
            return
        try:
            submission = submit(self._copy, self._receive)
        except ServingError as error:
            self._receive(InferResponse(error=error))
        except Exception as bug:
            _log.exception("a copy of request '%s' cannot be submitted", self._copy.id)
            self._receive(InferResponse(error=internal(str(bug))))
        else:
            self._follow(submission)

    def _follow(self, submission: Submission) -> None:
        """Keep the submitted copy, to cancel it; cancel it now if this was over before."""
        if self._over:
            submission.cancel()
        else:
            self._submission = submission

    def cancel(self) -> None:
        """Withdraw the copy."""
        if not self._over:
            self._statistics.canceled()
            self.withdraw()

    def withdraw(self) -> None:
        """End without a result."""
        submission = self._submission
        self._end()
        submission.cancel()

    def _receive(self, response: InferResponse) -> None:
        is_final = response.final
        self._guarded(partial(self._take, self._candidate, response))
        if is_final:
            self._guarded(self._compare_if_complete)

    def _take(self, side: _Side, response: InferResponse) -> None:
        """Note a response of one side, and hold its outputs."""
        now = self._comparison.clock.now()
        side.first = now if side.first is None else side.first
        side.error = side.error or response.error
        if response.final:
            side.ended = now
        if response.error is None and self._obstacle is None:
            size = side.answer.add(response)
            if self._comparison.work.reserve(size):
                self._reserved += size
            else:
                self._obstacle = Obstacle.MEMORY
                self._drop()

    def _drop(self) -> None:
        self._stable.answer.drop()
        self._candidate.answer.drop()

    def _stable_ended(self) -> None:
        error = self._stable.error
        if error is not None and (error.kind is ErrorKind.CANCELLED or error.reason is FailureReason.CANCELED):
            self.cancel()
        elif self._candidate.ended is not None:
            self._compare_if_complete()
        else:
            now = self._comparison.clock.now()
            until = now + _PATIENCE * (now - self._begun) + _PATIENCE_NS
            self._timer = self._comparison.clock.call_at(until, partial(self._guarded, self._time_out))

    def _time_out(self) -> None:
        if self._stable.error is not None:
            self._statistics.uncompared(Obstacle.STABLE_FAILED)
        else:
            self._fail(FailureReason.TIMEOUT, "it was not answered in time")
        self.withdraw()

    def _compare_if_complete(self) -> None:
        """Count the request once both sides have ended."""
        stable, candidate = self._stable, self._candidate
        if stable.ended is None or candidate.ended is None:
            return
        if stable.error is not None:
            self._count_stable_failure(stable.error, candidate.error)
        elif candidate.error is not None:
            reason = None if candidate.error.reason is None else reason_of(candidate.error)
            self._fail(reason, candidate.error.message)
        else:
            self._count_durations()
            if self._obstacle is None:
                self._compare()
                return
            self._statistics.uncompared(self._obstacle)
        self._end()

    def _fail(self, reason: FailureReason | None, message: str) -> None:
        """Count the copy as failed. The log has the first ones, and ever fewer of many."""
        count = self._statistics.failed(reason)
        if not count & (count - 1):
            _log.warning(
                "model '%s': the copy of request '%s' failed (%d so far): %s",
                self._copy.model_name,
                self._copy.id,
                count,
                message,
            )

    def _count_stable_failure(self, error: ServingError, other: ServingError | None) -> None:
        """Count a request that the stable version failed: the same kind of error from both is the same answer."""
        if other is not None and other.kind is error.kind:
            self._statistics.compared([], self._copy.id)
        else:
            self._statistics.uncompared(Obstacle.STABLE_FAILED)

    def _count_durations(self) -> None:
        stable, candidate, statistics = self._stable, self._candidate, self._statistics
        for histogram, time in (
            (statistics.stable, stable.ended),
            (statistics.candidate, candidate.ended),
            (statistics.stable_first, stable.first),
            (statistics.candidate_first, candidate.first),
        ):
            if time is not None:
                histogram.add(time - self._begun)

    def _compare(self) -> None:
        stable, candidate = self._stable.answer, self._candidate.answer
        work = partial(stable.compare, candidate, self._comparison.tolerances)
        self._comparison.work.run(stable.nbytes + candidate.nbytes, work, self._compared)

    def _compared(self, result: list[OutputComparison] | Exception) -> None:
        if self._over:
            return
        if isinstance(result, Exception):
            _log.error("the answers to request '%s' cannot be compared", self._copy.id, exc_info=result)
            self._statistics.uncompared(Obstacle.ERROR)
        else:
            examples = self._statistics.compared(result, self._copy.id)
            if examples:
                self._log_example(examples)
        self._end()

    def _log_example(self, examples: list[OutputComparison]) -> None:
        details = [f"output '{one.output}': {one.difference.detail}" for one in examples if one.difference is not None]
        _log.warning(
            "model '%s': two versions answer request '%s' (%s) differently: %s",
            self._copy.model_name,
            self._copy.id,
            description(self._copy),
            "; ".join(details),
        )

    def _guarded(self, step: Callable[[], None]) -> None:
        """Take a step that must not fail the client's request, unless this is over."""
        if self._over:
            return
        try:
            step()
        except Exception:
            _log.exception("the answers to request '%s' cannot be compared", self._copy.id)
            if not self._over:
                self._statistics.uncompared(Obstacle.ERROR)
                self.withdraw()

    def _end(self) -> None:
        if self._over:
            return
        self._over = True
        if self._timer is not None:
            self._timer.cancel()
        self._comparison.work.release(self._reserved)
        self._submission = NOT_YET
        self._drop()
        self._comparison.ended(self)
