"""Per-model counters, in the words of the statistics extension.

All durations are nanoseconds. One `ModelStatistics` belongs to one version of one model. Whoever runs its requests says
what becomes of them: they are `accepted` into a queue, leave it, are `answered`, and their batch is `executed`.
"""

from collections.abc import Mapping, Sequence
from time import time_ns

from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.backends.contract import ExecutionTimes
from argosy_runtime.errors import ErrorKind, FailureReason, ServingError
from argosy_runtime.messages import InferResponse
from argosy_runtime.scheduling.queued_request import QueuedRequest

from .engines import EngineStatistics
from .histogram import DurationHistogram

_MILLISECOND = 1_000_000


class Duration:
    """How often, and how long in all."""

    __slots__ = ("count", "ns")

    def __init__(self) -> None:
        self.count = 0
        self.ns = 0

    def add(self, ns: int, count: int = 1) -> None:
        """One more (or `count` more, `ns` together)."""
        self.count += count
        self.ns += ns

    def message(self) -> pb.StatisticDuration:
        """As the protocol has it."""
        return pb.StatisticDuration(count=self.count, ns=self.ns)


class BatchStatistics:
    """What executions of one batch size took."""

    __slots__ = ("compute_infer", "compute_input", "compute_output")

    def __init__(self) -> None:
        self.compute_input = Duration()
        self.compute_infer = Duration()
        self.compute_output = Duration()


class ModelStatistics:
    """Everything counted about one model version.

    Of requests that succeeded: `queueing`, how long each waited; `single`, how long those took that had one response;
    `streamed` those that had several. `first_response` is from a request to the first of several, `between_responses`
    from one to the next. `busy` instances have a batch now. Once a model `answers_later` than its execution ends, that
    end says nothing of how long it works.
    """

    def __init__(self) -> None:
        self.inference_count = 0
        self.execution_count = 0
        self.last_inference_ms = 0
        self.pending = 0
        self.load_seconds = 0.0
        self.success = Duration()
        self.fail = Duration()
        self.queue = Duration()
        self.compute_input = Duration()
        self.compute_infer = Duration()
        self.compute_output = Duration()
        self.batches: dict[int, BatchStatistics] = {}
        self.failures = dict.fromkeys(FailureReason, 0)
        self.queueing = DurationHistogram()
        self.single = DurationHistogram()
        self.streamed = DurationHistogram()
        self.first_response = DurationHistogram()
        self.between_responses = DurationHistogram()
        self.engines = EngineStatistics()
        self.answers_later = False
        self.busy = 0
        self._busy_ns = 0

    def accepted(self) -> None:
        """A request waits for its turn."""
        self.pending += 1

    def left_queue(self, requests: int) -> None:
        """So many wait no longer, whatever becomes of them."""
        self.pending -= requests

    def instance_taken(self, now: int) -> None:
        """An instance begins with a batch."""
        self.busy += 1
        self._busy_ns -= now

    def instance_freed(self, now: int) -> None:
        """It can take the next one, or is no more."""
        self.busy -= 1
        self._busy_ns += now

    def busy_ns(self, now: int) -> int:
        """Return how long instances have had batches, all of them together."""
        return self._busy_ns + self.busy * now

    def responded(self, arrived: int, last: int, now: int) -> None:
        """A response came that is not the last; the one before it at `last`, 0 where it is the first."""
        if last:
            self.between_responses.add(now - last)
        else:
            self.first_response.add(now - arrived)

    def answered(self, queued: QueuedRequest, response: InferResponse, now: int, warm_up: bool = False) -> None:
        """A request has its last response. One of a `warm_up` is in no histogram: no client waited for it."""
        reason = failure_reason(queued, response.error)
        if reason is not None:
            self.failed(now - queued.arrived, reason)
            return
        queued.succeeded = True
        waited = queued.started - queued.arrived
        if not warm_up:
            self.queueing.add(waited)
            self.took(now - queued.arrived, queued.responded, now, response.is_empty)
        self.succeeded(1, now - queued.arrived, waited, queued.size)
        if queued.executed:
            # Its execution ended before it did, so the batch could not be charged with it.
            self.charge(1, ExecutionTimes(0, now - queued.started, 0))

    def answered_together(
        self, batch: Sequence[QueuedRequest], responses: Sequence[InferResponse], times: ExecutionTimes, now: int
    ) -> None:
        """The whole of a batch has its last responses, and has been executed."""
        succeeded = rows = rows_ran = spent = waited = 0
        for queued, response in zip(batch, responses, strict=True):
            rows_ran += queued.size
            queued.executed = True
            reason = failure_reason(queued, response.error)
            if reason is not None:
                self.failed(now - queued.arrived, reason)
                continue
            queued.succeeded = True
            succeeded += 1
            rows += queued.size
            took = now - queued.arrived
            spent += took
            self.single.add(took)
            took = queued.started - queued.arrived
            waited += took
            self.queueing.add(took)
        if succeeded:
            self.succeeded(succeeded, spent, waited, rows)
        self.ran(succeeded, rows_ran, times)

    def executed(self, batch: Sequence[QueuedRequest], times: ExecutionTimes | None, now: int) -> None:
        """A batch has run; those of its requests that have succeeded are charged with it."""
        succeeded = rows = 0
        for queued in batch:
            queued.executed = True
            succeeded += queued.succeeded
            rows += queued.size
            if times is None and not queued.over:
                self.answers_later = True
        self.ran(succeeded, rows, times or ExecutionTimes(0, now - batch[0].started, 0))

    def took(self, total_ns: int, last: int, now: int, bare: bool) -> None:
        """A request succeeded after `total_ns`; its response before the last came at `last`, 0 where there was none.

        A `bare` last response says no more than that it is the last.
        """
        if not last:
            self.single.add(total_ns)
            return
        self.streamed.add(total_ns)
        if not bare:
            self.between_responses.add(now - last)

    def succeeded(self, requests: int, total_ns: int, queue_ns: int, rows: int) -> None:
        """Requests of `rows` rows together were answered; the times are sums too."""
        self.success.add(total_ns, requests)
        self.queue.add(queue_ns, requests)
        self.inference_count += rows
        self.last_inference_ms = time_ns() // _MILLISECOND

    def failed(self, total_ns: int, reason: FailureReason) -> None:
        """A request was refused or failed."""
        self.fail.add(total_ns)
        self.failures[reason] += 1

    def ran(self, requests: int, rows: int, times: ExecutionTimes) -> None:
        """A batch of `rows` rows ran; `requests` of its requests succeeded, each charged the whole batch's time."""
        self.execution_count += 1
        self.charge(requests, times)
        batch = self.batches.get(rows)
        if batch is None:
            batch = self.batches[rows] = BatchStatistics()
        batch.compute_input.add(times.compute_input_ns)
        batch.compute_infer.add(times.compute_infer_ns)
        batch.compute_output.add(times.compute_output_ns)

    def charge(self, requests: int, times: ExecutionTimes) -> None:
        """`requests` requests took these times, each of them."""
        self.compute_input.add(times.compute_input_ns * requests, requests)
        self.compute_infer.add(times.compute_infer_ns * requests, requests)
        self.compute_output.add(times.compute_output_ns * requests, requests)

    def execution_ns(self) -> int:
        """Return how long all executions took, each counted once, whatever requests it had."""
        return sum(
            [
                batch.compute_input.ns + batch.compute_infer.ns + batch.compute_output.ns
                for batch in self.batches.values()
            ]
        )

    def durations(self) -> DurationHistogram:
        """From each request that succeeded to its last response."""
        return self.single.with_all(self.streamed)

    def first_responses(self) -> DurationHistogram:
        """From each request to its first response, which is the last one of most."""
        return self.single.with_all(self.first_response)

    def message(self, name: str, version: str) -> pb.ModelStatistics:
        """As ModelStatistics of the protocol."""
        return pb.ModelStatistics(
            name=name,
            version=version,
            last_inference=self.last_inference_ms,
            inference_count=self.inference_count,
            execution_count=self.execution_count,
            inference_stats=self._inference_message(),
            batch_stats=[self._batch_message(rows, batch) for rows, batch in sorted(self.batches.items())],
        )

    def _inference_message(self) -> pb.InferStatistics:
        names = ("success", "fail", "queue", "compute_input", "compute_infer", "compute_output")
        durations: Mapping[str, pb.StatisticDuration] = {name: getattr(self, name).message() for name in names}
        return pb.InferStatistics(**durations, cache_hit=pb.StatisticDuration(), cache_miss=pb.StatisticDuration())

    @staticmethod
    def _batch_message(rows: int, batch: BatchStatistics) -> pb.InferBatchStatistics:
        return pb.InferBatchStatistics(
            batch_size=rows,
            compute_input=batch.compute_input.message(),
            compute_infer=batch.compute_infer.message(),
            compute_output=batch.compute_output.message(),
        )


def failure_reason(queued: QueuedRequest, error: ServingError | None) -> FailureReason | None:
    """As what a request failed, None where it did not: an error that the model itself answered with is an answer."""
    if error is not None and error.reason is not None:
        return FailureReason.CANCELED if error.kind is ErrorKind.CANCELLED else error.reason
    return FailureReason.CANCELED if queued.cancelled else None
