"""Per-model counters, with the names of the statistics extension.

All durations are nanoseconds. One `ModelStatistics` belongs to one version of one model. The dispatcher reports the
events of its requests: they are `accepted` into a queue, leave it, are `answered`, and their batch is `executed`.
"""

from collections.abc import Mapping, Sequence
from time import time_ns

from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.backends.contract import ExecutionTimes
from argosy_runtime.errors import CLIENT_FAULTS, ErrorKind, FailureReason, ServingError
from argosy_runtime.histograms import DurationHistogram
from argosy_runtime.messages import InferResponse
from argosy_runtime.scheduling.queued_request import QueuedRequest

from .engines import EngineStatistics
from .latencies.durations import Duration
from .latencies.responses import ResponseStatistics
from .latencies.summaries import LatencySummaries
from .shadow.statistics import ShadowStatistics

_MILLISECOND = 1_000_000


class BatchStatistics:
    """The durations of executions of one batch size."""

    __slots__ = ("compute_infer", "compute_input", "compute_output")

    def __init__(self) -> None:
        self.compute_input = Duration()
        self.compute_infer = Duration()
        self.compute_output = Duration()


class ModelStatistics:
    """The counters of one model version. Copies for a shadow count in executions and their rows, and in `shadow`, which
    is that of the candidate's version; they are no requests.

    Histograms of requests that succeeded: `queueing` of their time in the queue; `single` of the duration of those with
    one response, `streamed` of those with several. `first_response` is from a request to the first of several, and
    `between_responses` from one to the next. `busy` instances have a batch now. Where a model `answers_later` than its
    execution returns, the execution's time does not measure its work. `model_errors`: requests that the model itself
    answered with an error which they did not cause; they count as answered. `instances_lost` while it served.

    Only where they are asked for: `summaries` of latencies; `responses` of a decoupled model, by index;
    `first_response_ms`, first responses in buckets of the model's own. `caches`: its responses are cached.
    """

    def __init__(
        self,
        summaries: bool = False,
        responses: bool = False,
        first_response_ms: Sequence[float] = (),
        caches: bool = False,
    ) -> None:
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
        self.cache_hits = Duration()
        self.cache_misses = Duration()
        self.batches: dict[int, BatchStatistics] = {}
        self.failures = dict.fromkeys(FailureReason, 0)
        self.model_errors = 0
        self.instances_lost = 0
        self.queueing = DurationHistogram()
        self.single = DurationHistogram()
        self.streamed = DurationHistogram()
        self.first_response = DurationHistogram()
        self.between_responses = DurationHistogram()
        self.engines = EngineStatistics()
        self.shadow: ShadowStatistics | None = None
        self.answers_later = False
        self.busy = 0
        self._busy_ns = 0
        self.caches = caches
        self.summaries = LatencySummaries() if summaries else None
        self.responses = ResponseStatistics() if responses else None
        self.first_response_ms: DurationHistogram | None = None
        if first_response_ms:
            self.first_response_ms = DurationHistogram([round(bound * _MILLISECOND) for bound in first_response_ms])
        self._observes = summaries or bool(first_response_ms)

    def accepted(self) -> None:
        """Count a request that entered the queue."""
        self.pending += 1

    def left_queue(self, requests: int) -> None:
        """Subtract the requests that left the queue, for whatever reason."""
        self.pending -= requests

    def instance_taken(self, now: int) -> None:
        """Count an instance that begins a batch."""
        self.busy += 1
        self._busy_ns -= now

    def instance_freed(self, now: int) -> None:
        """Subtract an instance that has finished its batch, or ended."""
        self.busy -= 1
        self._busy_ns += now

    def busy_ns(self, now: int) -> int:
        """Return how long all instances together have had batches."""
        return self._busy_ns + self.busy * now

    def responded(self, arrived: int, last: int, now: int) -> None:
        """Record a response that is not final; the one before it came at `last`, 0 where it is the first."""
        if last:
            self.between_responses.add(now - last)
            return
        self.first_response.add(now - arrived)
        if self.first_response_ms is not None:
            self.first_response_ms.add(now - arrived)

    def response_sent(self, queued: QueuedRequest, response: InferResponse, now: int) -> None:
        """Count a response of a decoupled model; the one before it came at `queued.responded`."""
        if self.responses is not None and queued.started and not queued.request.is_shadow:
            self.responses.add(queued.responses, response, now - (queued.responded or queued.started))
            queued.responses += 1

    def answered(self, queued: QueuedRequest, response: InferResponse, now: int, warm_up: bool = False) -> None:
        """Record the final response of a request. Requests of a `warm_up` are in no histogram."""
        reason = failure_reason(queued, response.error)
        if queued.request.is_shadow:
            self.inference_count += queued.size if reason is None else 0
            return
        if reason is not None:
            self.failed(now - queued.arrived, reason)
            return
        queued.succeeded = True
        if response.error is not None and response.error.kind not in CLIENT_FAULTS:
            self.model_errors += 1
        waited = queued.started - queued.arrived
        if not warm_up:
            self.queueing.add(waited)
            self.took(now - queued.arrived, queued.responded, now, response.is_empty)
        if self._observes:
            self.observe(now - queued.arrived, waited, now, streamed=queued.responded > 0 or warm_up)
        self.succeeded(1, now - queued.arrived, waited, queued.size)
        if queued.executed:
            # Its execution ended before the request, which was therefore not charged with the batch.
            self.charge(1, ExecutionTimes(0, now - queued.started, 0))

    def answered_together(
        self, batch: Sequence[QueuedRequest], responses: Sequence[InferResponse], times: ExecutionTimes, now: int
    ) -> None:
        """Record a batch that was executed and whose requests all have their final responses."""
        succeeded = rows = rows_ran = spent = waited = 0
        for queued, response in zip(batch, responses, strict=True):
            rows_ran += queued.size
            queued.executed = True
            if self.responses is not None:
                self.response_sent(queued, response, now)
            reason = failure_reason(queued, response.error)
            if queued.request.is_shadow:
                self.inference_count += queued.size if reason is None else 0
                continue
            if reason is not None:
                self.failed(now - queued.arrived, reason)
                continue
            queued.succeeded = True
            if response.error is not None and response.error.kind not in CLIENT_FAULTS:
                self.model_errors += 1
            succeeded += 1
            rows += queued.size
            took = now - queued.arrived
            spent += took
            self.single.add(took)
            queueing = queued.started - queued.arrived
            waited += queueing
            self.queueing.add(queueing)
            if self._observes:
                self.observe(took, queueing, now)
        if succeeded:
            self.succeeded(succeeded, spent, waited, rows)
        self.ran(succeeded, rows_ran, times)

    def executed(self, batch: Sequence[QueuedRequest], times: ExecutionTimes | None, now: int) -> None:
        """Record a batch that was executed. Its requests that have succeeded are charged with its times."""
        succeeded = rows = 0
        for queued in batch:
            queued.executed = True
            succeeded += queued.succeeded
            rows += queued.size
            if times is None and not queued.over:
                self.answers_later = True
        self.ran(succeeded, rows, times or ExecutionTimes(0, now - batch[0].started, 0))

    def took(self, total_ns: int, last: int, now: int, bare: bool) -> None:
        """Record the duration of a request that succeeded. Its last but one response came at `last`, 0 for none.

        A `bare` final response has no outputs.
        """
        if not last:
            self.single.add(total_ns)
            return
        self.streamed.add(total_ns)
        if not bare:
            self.between_responses.add(now - last)

    def observe(self, total_ns: int, queue_ns: int, now: int, streamed: bool = False) -> None:
        """Add a request that succeeded to what only some models have; the first response to a `streamed` one is there
        already.
        """
        if self.first_response_ms is not None and not streamed:
            self.first_response_ms.add(total_ns)
        if self.summaries is not None:
            self.summaries.advance(now)
            self.summaries.add("request", total_ns)
            self.summaries.add("queue", queue_ns)

    @property
    def observes(self) -> bool:
        """True if requests that succeed have to be observed."""
        return self._observes

    def succeeded(self, requests: int, total_ns: int, queue_ns: int, rows: int) -> None:
        """Count requests that succeeded, of `rows` rows together; the times are sums, too."""
        self.success.add(total_ns, requests)
        self.queue.add(queue_ns, requests)
        self.inference_count += rows
        self.last_inference_ms = time_ns() // _MILLISECOND

    def cache_hit(self, total_ns: int, queue_ns: int, lookup_ns: int, now: int) -> None:
        """Count a request that the response cache answered: it is no inference."""
        self.success.add(total_ns)
        self.queue.add(queue_ns)
        self.cache_hits.add(lookup_ns)
        self.single.add(total_ns)
        if self._observes:
            self.observe(total_ns, queue_ns, now)
        if self.summaries is not None:
            self.summaries.add("cache_hit", lookup_ns)

    def cache_miss(self, ns: int) -> None:
        """Count a request whose response was not in the cache, with the time of lookup and insertion.

        That is a part of the request's own time, too.
        """
        self.success.ns += ns
        self.cache_misses.add(ns)
        if self.summaries is not None:
            self.summaries.add("cache_miss", ns)

    def failed(self, total_ns: int, reason: FailureReason) -> None:
        """Count a request that was refused or failed."""
        self.fail.add(total_ns)
        self.failures[reason] += 1

    def ran(self, requests: int, rows: int, times: ExecutionTimes) -> None:
        """Count an execution of `rows` rows, of whose requests `requests` succeeded."""
        self.execution_count += 1
        self.charge(requests, times)
        batch = self.batches.get(rows)
        if batch is None:
            batch = self.batches[rows] = BatchStatistics()
        batch.compute_input.add(times.compute_input_ns)
        batch.compute_infer.add(times.compute_infer_ns)
        batch.compute_output.add(times.compute_output_ns)

    def charge(self, requests: int, times: ExecutionTimes) -> None:
        """Add these times for each of `requests` requests."""
        self.compute_input.add(times.compute_input_ns * requests, requests)
        self.compute_infer.add(times.compute_infer_ns * requests, requests)
        self.compute_output.add(times.compute_output_ns * requests, requests)
        if self.summaries is not None and requests:
            self.summaries.add("compute_input", times.compute_input_ns, requests)
            self.summaries.add("compute_infer", times.compute_infer_ns, requests)
            self.summaries.add("compute_output", times.compute_output_ns, requests)

    def execution_ns(self) -> int:
        """Return how long all executions took, each counted once."""
        return sum(
            [
                batch.compute_input.ns + batch.compute_infer.ns + batch.compute_output.ns
                for batch in self.batches.values()
            ]
        )

    def durations(self) -> DurationHistogram:
        """Return the histogram from each request that succeeded to its final response."""
        return self.single.with_all(self.streamed)

    def first_responses(self) -> DurationHistogram:
        """Return the histogram from each request to its first response, which of most is the only one."""
        return self.single.with_all(self.first_response)

    def message(self, name: str, version: str) -> pb.ModelStatistics:
        """Return the protocol's ModelStatistics."""
        return pb.ModelStatistics(
            name=name,
            version=version,
            last_inference=self.last_inference_ms,
            inference_count=self.inference_count,
            execution_count=self.execution_count,
            inference_stats=self._inference_message(),
            response_stats=None if self.responses is None else self.responses.messages(),
            batch_stats=[self._batch_message(rows, batch) for rows, batch in sorted(self.batches.items())],
        )

    def _inference_message(self) -> pb.InferStatistics:
        names = ("success", "fail", "queue", "compute_input", "compute_infer", "compute_output")
        durations: Mapping[str, pb.StatisticDuration] = {name: getattr(self, name).message() for name in names}
        return pb.InferStatistics(
            **durations, cache_hit=self.cache_hits.message(), cache_miss=self.cache_misses.message()
        )

    @staticmethod
    def _batch_message(rows: int, batch: BatchStatistics) -> pb.InferBatchStatistics:
        return pb.InferBatchStatistics(
            batch_size=rows,
            compute_input=batch.compute_input.message(),
            compute_infer=batch.compute_infer.message(),
            compute_output=batch.compute_output.message(),
        )


def failure_reason(queued: QueuedRequest, error: ServingError | None) -> FailureReason | None:
    """Return why a request failed; None where it did not. An error that the model itself returned is no failure."""
    if error is not None and error.reason is not None:
        return reason_of(error)
    return FailureReason.CANCELED if queued.cancelled else None


def reason_of(error: ServingError) -> FailureReason:
    """Return the reason that an error is counted by. An error that a model returned itself counts as the model's."""
    if error.kind is ErrorKind.CANCELLED:
        return FailureReason.CANCELED
    if error.kind in CLIENT_FAULTS and error.reason in (None, FailureReason.OTHER):
        return FailureReason.INVALID
    return error.reason or FailureReason.BACKEND
