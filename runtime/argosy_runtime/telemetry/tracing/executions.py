"""What the dispatchers record of the traced requests among those that they run."""

from collections.abc import Sequence

from argosy_runtime.backends.contract import ExecutionTimes
from argosy_runtime.scheduling.queued_request import QueuedRequest


def trace_execution(batch: Sequence[QueuedRequest], times: ExecutionTimes | None, now: int) -> None:
    """Record an execution at the traced requests of its batch; without `times` only at those that are over."""
    for queued in batch:
        trace = queued.request.trace
        if trace is not None and (times is not None or queued.over):
            trace.computed(queued.started, times or ExecutionTimes(0, now - queued.started, 0))


def trace_answer(queued: QueuedRequest, now: int) -> None:
    """Record the last response to a traced request. One that comes after its execution was computed until then."""
    trace = queued.request.trace
    if trace is None:
        return
    if queued.executed:
        trace.computed(queued.started, ExecutionTimes(0, now - queued.started, 0))
    trace.answered(now, running=bool(queued.started) and not queued.executed)
