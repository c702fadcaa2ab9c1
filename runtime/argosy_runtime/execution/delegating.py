"""What requests have in common that other models of the server answer: of ensembles, routed models, adapters."""

from typing import Final

from argosy_runtime.backends.contract import ExecutionTimes
from argosy_runtime.messages import InferRequest, InferResponse
from argosy_runtime.telemetry.statistics import ModelStatistics, reason_of


def count_delegated(
    statistics: ModelStatistics,
    request: InferRequest,
    now: int,
    size: int,
    arrived: int,
    responded: int,
    response: InferResponse,
) -> None:
    """Count a request with its last response; the one before came at `responded`, 0 where there was none.

    A copy for a shadow does not count.
    """
    if request.is_shadow:
        return
    total, error = now - arrived, response.error
    if error is not None:
        statistics.failed(total, reason_of(error))
        return
    statistics.took(total, responded, now, response.is_empty)
    if statistics.observes:
        statistics.observe(total, 0, now, streamed=responded > 0)
    statistics.succeeded(1, total, 0, size)
    # It only waits for other models, whose own statistics separate queueing from computing.
    statistics.ran(1, size, ExecutionTimes(0, total, 0))


class NotYet:
    """Submission of a request that is being submitted, or has ended."""

    __slots__ = ()

    def cancel(self) -> None:
        """Do nothing: the caller checks once it is submitted."""

    def pause(self) -> None:
        """Do nothing: the caller checks once it is submitted."""

    def resume(self) -> None:
        """Do nothing: the caller checks once it is submitted."""


NOT_YET: Final = NotYet()
