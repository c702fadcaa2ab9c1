"""Per-model counters, in the words of the statistics extension.

All durations are nanoseconds. One `ModelStatistics` belongs to one version of one model.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.backends.contract import ExecutionTimes
from argosy_runtime.errors import FailureReason


@dataclass(slots=True)
class Duration:
    """How often, and how long in all."""

    count: int = 0
    ns: int = 0

    def add(self, ns: int, count: int = 1) -> None:
        """One more (or `count` more, `ns` together)."""
        self.count += count
        self.ns += ns

    def message(self) -> pb.StatisticDuration:
        """As the protocol has it."""
        return pb.StatisticDuration(count=self.count, ns=self.ns)


@dataclass(slots=True)
class BatchStatistics:
    """What executions of one batch size took."""

    compute_input: Duration = field(default_factory=Duration)
    compute_infer: Duration = field(default_factory=Duration)
    compute_output: Duration = field(default_factory=Duration)


@dataclass(slots=True)
class ModelStatistics:
    """Everything counted about one model version."""

    inference_count: int = 0
    execution_count: int = 0
    last_inference_ms: int = 0
    pending: int = 0
    load_seconds: float = 0.0
    success: Duration = field(default_factory=Duration)
    fail: Duration = field(default_factory=Duration)
    queue: Duration = field(default_factory=Duration)
    compute_input: Duration = field(default_factory=Duration)
    compute_infer: Duration = field(default_factory=Duration)
    compute_output: Duration = field(default_factory=Duration)
    batches: dict[int, BatchStatistics] = field(default_factory=dict)
    failures: dict[FailureReason, int] = field(default_factory=lambda: dict.fromkeys(FailureReason, 0))

    def succeeded(self, total_ns: int, queue_ns: int, rows: int, now_ms: int) -> None:
        """A request of `rows` rows was answered."""
        self.success.add(total_ns)
        self.queue.add(queue_ns)
        self.inference_count += rows
        self.last_inference_ms = now_ms

    def failed(self, total_ns: int, reason: FailureReason) -> None:
        """A request was refused or failed."""
        self.fail.add(total_ns)
        self.failures[reason] += 1

    def executed(self, requests: int, rows: int, times: ExecutionTimes) -> None:
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
