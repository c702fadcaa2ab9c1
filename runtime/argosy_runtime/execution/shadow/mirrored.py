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
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, QueueTrace, Submission
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
    """How answers are compared, and what that takes.

    `answered` is called with each copy that the candidate has answered, `ended` with each that is over.
    """

    answers: AnswerFormat
    tolerances: Mapping[str, OutputTolerance]
    work: ComparisonWork
    clock: Clock
    answered: Callable[["MirroredRequest"], None]
    ended: Callable[["MirroredRequest"], None]


class _Side:
    """The answer of one version so far, to a request that has `begun`. In nanoseconds how long its `first` and its last
    response took, the time in queues left out.
    """

    __slots__ = ("answer", "begun", "ended", "error", "first", "trace")

    def __init__(self, answers: AnswerFormat, trace: QueueTrace, begun: int) -> None:
        self.answer: AnswerRecord = answers.begin()
        self.begun = begun
        self.trace = trace
        self.error: ServingError | None = None
        self.first: int | None = None
        self.ended: int | None = None

    def note(self, response: InferResponse, now: int) -> None:
        """Note when a response came, and its error."""
        took = max(0, now - self.begun - self.trace.ns)
        self.first = took if self.first is None else self.first
        self.error = self.error or response.error
        if response.final:
            self.ended = took


class MirroredRequest:
    """A request and its copy, of which `size` bytes are held. Nothing that fails here reaches the client.

    `trace` is the request's. `is_random`: its answer is drawn at random, so that it is not compared.
    """

    def __init__(
        self,
        comparison: Comparison,
        trace: QueueTrace,
        copy: InferRequest,
        size: int,
        statistics: ShadowStatistics,
        is_random: bool,
    ) -> None:
        self.copy = copy
        self.has_timed_out = False
        self._comparison = comparison
        self._reserved = size
        self._statistics = statistics
        self._begun = comparison.clock.now()
        self._stable = _Side(comparison.answers, trace, self._begun)
        self._candidate = _Side(comparison.answers, copy.queue_trace or QueueTrace(), self._begun)
        self._obstacle = Obstacle.SAMPLED if is_random else None
        self._patience = 0
        self._is_sent = False
        self._submission: Submission = NOT_YET
        self._timer: Timer | None = None
        self._over = False

    @property
    def is_answered(self) -> bool:
        """Whether the candidate has answered."""
        return self._candidate.ended is not None

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
        self._is_sent = True
        self._candidate.begun = self._comparison.clock.now()
        if self._patience:
            self._limit()
        try:
            submission = submit(self.copy, self._receive)
        except ServingError as error:
            self._receive(InferResponse(error=error))
        except Exception as bug:
            _log.exception("a copy of request '%s' cannot be submitted", self.copy.id)
            self._receive(InferResponse(error=internal(str(bug))))
        else:
            self._follow(submission)

    def _follow(self, submission: Submission) -> None:
        """Keep the submitted copy, to cancel it; cancel it now if this was over before."""
        if self._over:
            submission.cancel()
        else:
            self._submission = submission

    def give_up(self, why: Obstacle | None) -> None:
        """End without sending the copy, unless it was sent. None: the candidate does not answer those before it."""
        if self._over or self._is_sent:
            return
        if why is None:
            self._fail(FailureReason.TIMEOUT, "earlier copies are not answered")
        else:
            self._statistics.skipped(why)
        self.withdraw()

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
            self._guarded(partial(self._comparison.answered, self))

    def _take(self, side: _Side, response: InferResponse) -> None:
        """Note a response of one side, and hold its outputs."""
        side.note(response, self._comparison.clock.now())
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
            self._patience = _PATIENCE * (self._comparison.clock.now() - self._begun) + _PATIENCE_NS
            if self._is_sent:
                self._limit()

    def _limit(self) -> None:
        """Begin the time that the candidate has from now on, the stable version having ended."""
        clock = self._comparison.clock
        self._timer = clock.call_at(clock.now() + self._patience, partial(self._guarded, self._time_out))

    def _time_out(self) -> None:
        trace = self._candidate.trace
        if self._stable.error is not None:
            self._statistics.uncompared(Obstacle.STABLE_FAILED)
        elif trace.waiting or trace.calls:
            self._statistics.uncompared(Obstacle.BUSY)  # It waits for other models, behind their requests.
        else:
            self.has_timed_out = True
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
                self.copy.model_name,
                self.copy.id,
                count,
                message,
            )

    def _count_stable_failure(self, error: ServingError, other: ServingError | None) -> None:
        """Count a request that the stable version failed: the same kind of error from both is the same answer."""
        if other is not None and other.kind is error.kind:
            self._statistics.compared([], self.copy.id)
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
                histogram.add(time)

    def _compare(self) -> None:
        stable, candidate = self._stable.answer, self._candidate.answer
        work = partial(stable.compare, candidate, self._comparison.tolerances)
        self._comparison.work.run(stable.nbytes + candidate.nbytes, work, self._compared)

    def _compared(self, result: list[OutputComparison] | Exception) -> None:
        if self._over:
            return
        if isinstance(result, Exception):
            _log.error("the answers to request '%s' cannot be compared", self.copy.id, exc_info=result)
            self._statistics.uncompared(Obstacle.ERROR)
        else:
            examples = self._statistics.compared(result, self.copy.id)
            if examples:
                self._log_example(examples)
        self._end()

    def _log_example(self, examples: list[OutputComparison]) -> None:
        details = [f"output '{one.output}': {one.difference.detail}" for one in examples if one.difference is not None]
        _log.warning(
            "model '%s': two versions answer request '%s' (%s) differently: %s",
            self.copy.model_name,
            self.copy.id,
            description(self.copy),
            "; ".join(details),
        )

    def _guarded(self, step: Callable[[], None]) -> None:
        """Take a step that must not fail the client's request, unless this is over."""
        if self._over:
            return
        try:
            step()
        except Exception:
            _log.exception("the answers to request '%s' cannot be compared", self.copy.id)
            if not self._over:
                self._statistics.uncompared(Obstacle.ERROR)
                self.withdraw()

    def _end(self) -> None:
        if self._over:
            return
        self._over = True
        self._statistics.calls += self._candidate.trace.calls
        if self._timer is not None:
            self._timer.cancel()
        self._comparison.work.release(self._reserved)
        self._submission = NOT_YET
        self._drop()
        self._comparison.ended(self)
