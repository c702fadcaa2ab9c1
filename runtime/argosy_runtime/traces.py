"""What is traced of one request of a client: the activities of each model that works on it, with their times.

A request that is traced has a `TraceRecord`. Each model that works on it has a `Trace` there: the model that was named,
the steps of an ensemble, and the models that a model calls. Times are nanoseconds of the monotonic clock.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import IntFlag
from itertools import count
from random import getrandbits
from typing import Final, Protocol

from .tensors import Tensor, raw_tensor

# Activities of one model's trace; further ones are left out, so that a long stream does not fill the memory.
MOST_ACTIVITIES: Final = 4096
# Bytes of tensors in one record; further tensors are left out.
MOST_BYTES: Final = 64 << 20


class TraceLevel(IntFlag):
    """What is traced: times, the contents of tensors, or both."""

    OFF = 0
    TIMESTAMPS = 1
    TENSORS = 2


class Tracing:
    """`on`: whether a server of this process traces. Connections note when a request began to come only if it is."""

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = False


TRACING: Final = Tracing()


def new_span_id() -> int:
    """Return a random id of a span, which is not 0."""
    return getrandbits(64) or 1


class Times(Protocol):
    """Nanoseconds that a batch took."""

    @property
    def compute_input_ns(self) -> int:
        """Time to gather the inputs."""

    @property
    def compute_infer_ns(self) -> int:
        """Time of the model itself."""

    @property
    def compute_output_ns(self) -> int:
        """Time to split the outputs."""


class TracedRequest(Protocol):
    """A request; its tensors are made where they are read."""

    @property
    def id(self) -> str:
        """The client's id, "" without one."""

    @property
    def inputs(self) -> Mapping[str, Tensor]:
        """The input tensors by name."""


class TracedResponse(Protocol):
    """A response; its tensors are made where they are read."""

    @property
    def outputs(self) -> Sequence[Tensor]:
        """The output tensors."""


class TracedTensor:
    """A copy of a tensor, and the activity that it was part of."""

    __slots__ = ("activity", "tensor")

    def __init__(self, activity: str, tensor: Tensor) -> None:
        self.activity = activity
        self.tensor = tensor


Activity = tuple[str, int] | TracedTensor
"""A time by its name, or a tensor."""


class Trace:
    """The part of one model in a record; in a model's process only a reference to it, with neither record nor parent.

    `context` is the W3C context of the model's span as JSON, "" outside of OpenTelemetry mode. `begun`: a model has
    taken the request, so that names and version are known.
    """

    __slots__ = (
        "_answered",
        "_computed",
        "_open",
        "activities",
        "begun",
        "context",
        "id",
        "model_name",
        "model_version",
        "parent_id",
        "record",
        "request_id",
        "span_id",
    )

    def __init__(
        self,
        trace_id: int,
        parent_id: int = 0,
        record: "TraceRecord | None" = None,
        context: str = "",
        span_id: int = 0,
    ) -> None:
        self.id = trace_id
        self.parent_id = parent_id
        self.record = record
        self.context = context
        self.span_id = span_id
        self.model_name = ""
        self.model_version = ""
        self.request_id = ""
        self.activities: list[Activity] = []
        self.begun = False
        self._open = False
        self._computed = False
        self._answered = 0

    def child(self) -> "Trace":
        """Return the trace of a model that is called for this one's request."""
        assert self.record is not None
        return self.record.add(self.id)

    def begin(self, model_name: str, model_version: str, request: TracedRequest, now: int) -> None:
        """Record that a model queues the request."""
        assert self.record is not None
        if not self._open:
            self._open = True
            self.record.opened()
        self.model_name, self.model_version, self.request_id = model_name, model_version, request.id
        self.begun = True
        self._answered = 0
        self._computed = False
        self.stamp("REQUEST_START", now)
        self.stamp("QUEUE_START", now)
        if self.record.level & TraceLevel.TENSORS:
            for tensor in request.inputs.values():
                self._add_tensor("TENSOR_QUEUE_INPUT", tensor)

    def responded(self, response: TracedResponse) -> None:
        """Record the outputs of a response, if tensors are traced."""
        assert self.record is not None
        if self.record.level & TraceLevel.TENSORS:
            for tensor in response.outputs:
                self._add_tensor("TENSOR_BACKEND_OUTPUT", tensor)

    def computed(self, started: int, times: Times) -> None:
        """Record an execution that began at `started`; of several only the first."""
        if self._computed or not self._open:
            return
        self._computed = True
        infers = started + times.compute_input_ns
        ends = infers + times.compute_infer_ns
        self.stamp("COMPUTE_START", started)
        self.stamp("COMPUTE_INPUT_END", infers)
        self.stamp("COMPUTE_OUTPUT_START", ends)
        self.stamp("COMPUTE_END", ends + times.compute_output_ns)
        if self._answered:
            self._end()

    def answered(self, now: int, running: bool) -> None:
        """Record the last response. While the execution is `running` the trace ends with its `computed`."""
        self._answered = now
        if not running:
            self._end()

    def stamp(self, name: str, ns: int) -> None:
        """Record a time, if times are traced."""
        assert self.record is not None
        if self.record.level & TraceLevel.TIMESTAMPS and len(self.activities) < MOST_ACTIVITIES:
            self.activities.append((name, ns))

    def _add_tensor(self, activity: str, tensor: Tensor) -> None:
        assert self.record is not None
        data = tensor.data
        if self.record.takes(len(data)) and len(self.activities) < MOST_ACTIVITIES:
            copy = raw_tensor(tensor.name, tensor.datatype, tensor.shape, bytes(data))
            self.activities.append(TracedTensor(activity, copy))

    def _end(self) -> None:
        if not self._open:
            return
        assert self.record is not None
        self._open = False
        self.stamp("REQUEST_END", self._answered)
        self.record.closed()


class OpenTraces:
    """The traces whose records are not complete, by id: models refer to them when they call others."""

    def __init__(self) -> None:
        self._ids = count(1)  # 0 is no parent
        self._traces: dict[int, Trace] = {}

    def add(self, parent_id: int, record: "TraceRecord", context: str, span_id: int) -> Trace:
        """Return a further trace."""
        number = next(self._ids)
        trace = self._traces[number] = Trace(number, parent_id, record, context, span_id)
        return trace

    def find(self, trace_id: int) -> Trace | None:
        """Return a trace, None where its record is complete."""
        return self._traces.get(trace_id)

    def forget(self, record: "TraceRecord") -> None:
        """Remove the traces of a record that is complete."""
        for trace in record.traces:
            self._traces.pop(trace.id, None)


class SpanContext:
    """Where the spans of a record belong: the trace's id, the client's span (0 without one), and `tracestate`."""

    __slots__ = ("parent_span_id", "state", "trace_id")

    def __init__(self, trace_id: int, parent_span_id: int = 0, state: str = "") -> None:
        self.trace_id = trace_id
        self.parent_span_id = parent_span_id
        self.state = state


class TraceRecord:
    """All that is traced of one request: its models' traces, the first that of the model that was named.

    `complete` is called once, when the last response is sent and every model has ended its part. `protocol` is HTTP or
    GRPC, "" where no front end took the request. `span` is None outside of OpenTelemetry mode.
    """

    __slots__ = ("_complete", "_open", "_open_traces", "_sent", "level", "nbytes", "protocol", "span", "traces")

    def __init__(
        self,
        level: TraceLevel,
        protocol: str,
        open_traces: OpenTraces,
        complete: "Callable[[TraceRecord], None]",
        span: SpanContext | None = None,
    ) -> None:
        self.level = level
        self.protocol = protocol
        self.span = span
        self.nbytes = 0
        self.traces: list[Trace] = []
        self._open_traces = open_traces
        self._complete = complete
        self._open = 1  # the front end
        self._sent: list[tuple[int, int]] = []

    def add(self, parent_id: int = 0) -> Trace:
        """Return a further trace."""
        span_id = 0 if self.span is None else new_span_id()
        trace = self._open_traces.add(parent_id, self, self._context(span_id), span_id)
        self.traces.append(trace)
        return trace

    def received(self, began: int, now: int) -> None:
        """Record that the request has come completely; its first byte came at `began`, 0 where that is unknown."""
        name = "GRPC_WAITREAD" if self.protocol == "GRPC" else f"{self.protocol}_RECV"
        if self.protocol:
            self.traces[0].stamp(f"{name}_START", began or now)
            self.traces[0].stamp(f"{name}_END", now)

    def responding(self, now: int) -> None:
        """Record that the front end has a response."""
        self.traces[0].stamp("INFER_RESPONSE_COMPLETE", now)

    def sent(self, began: int, now: int) -> None:
        """Record that a response was sent, from `began` on."""
        if len(self._sent) < MOST_ACTIVITIES:
            self._sent.append((began, now))

    def over(self) -> None:
        """Record that the front end has ended its part."""
        self._close()

    def opened(self) -> None:
        """Count a model that begins its part."""
        self._open += 1

    def closed(self) -> None:
        """Count a model that has ended its part."""
        self._close()

    def takes(self, nbytes: int) -> bool:
        """Return whether the record has room for a tensor, and count it if it has."""
        if self.nbytes + nbytes > MOST_BYTES:
            return False
        self.nbytes += nbytes
        return True

    def _close(self) -> None:
        self._open -= 1
        if self._open:
            return
        if self.protocol:
            for began, ended in self._sent:
                self.traces[0].stamp(f"{self.protocol}_SEND_START", began)
                self.traces[0].stamp(f"{self.protocol}_SEND_END", ended)
        self._open_traces.forget(self)
        self._complete(self)

    def _context(self, span_id: int) -> str:
        if self.span is None:
            return ""
        parent = f"00-{self.span.trace_id:032x}-{span_id:016x}-01"
        state = f',"tracestate":"{self.span.state}"' if self.span.state else ""
        return f'{{"traceparent":"{parent}"{state}}}'
