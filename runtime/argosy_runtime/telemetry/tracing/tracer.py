"""Traces the requests of a server: chooses them, and passes on what was recorded."""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from random import getrandbits
from time import monotonic_ns, time_ns
from typing import Final

from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Origin
from argosy_runtime.traces import TRACING, OpenTraces, SpanContext, Trace, TraceLevel, TraceRecord

from .files import TraceFiles
from .options import TraceMode, TraceOptions
from .settings import Changes, TraceSetting, TraceSettings
from .writer import TraceSink, TraceWriter

_log: Final = logging.getLogger("argosy.trace")
Extract = Callable[[str, str], SpanContext | None]
"""Reads the context in the values of W3C's two headers."""


class Tracer:
    """The tracing of one server. All methods run on the event loop.

    `active`: some requests may be traced. Where it is False, nothing has to be called for a request.
    """

    def __init__(self, options: TraceOptions) -> None:
        self._extract: Extract | None = None
        make: Callable[[], TraceSink] = TraceFiles
        if options.mode is TraceMode.OPENTELEMETRY:
            from . import spans  # which imports OpenTelemetry's SDK

            self._extract = spans.extract
            make = partial(spans.SpanExporter, options, time_ns() - monotonic_ns())
            if options.level & TraceLevel.TENSORS:
                _log.warning("tensors are not traced in mode opentelemetry")
        self._writer = TraceWriter(make)
        self._settings = TraceSettings(options, self._replaced)
        self._open = OpenTraces()
        problem = self._settings.of("").problem
        # In mode opentelemetry a rate of 0 traces the requests of clients that trace.
        if options.level and options.mode is TraceMode.TRITON and problem:
            _log.warning("--trace-config: no request is traced: %s", problem)
        self.active = self._settings.active
        TRACING.on = self.active

    def settings(self, model: str) -> dict[str, str | Sequence[str]]:
        """Return the settings of a model, or the global ones for "", by the names of the trace extension."""
        current = self._settings.of(model).current
        levels = [level.name or "" for level in (TraceLevel.TIMESTAMPS, TraceLevel.TENSORS) if current.level & level]
        values: dict[str, str | Sequence[str]] = {
            "trace_level": levels or ["OFF"],
            "trace_rate": str(current.rate),
            "trace_count": str(current.count),
        }
        if current.mode is TraceMode.TRITON:
            values |= {"log_frequency": str(current.log_frequency), "trace_file": current.file}
        return values | {"trace_mode": current.mode.value} | dict(current.config)

    def change(self, model: str, changes: Changes) -> None:
        """Change the settings of a model, or the global ones for "". Raises INVALID_ARG."""
        try:
            self._settings.change(model, changes)
        finally:
            self.active = self._settings.active
            TRACING.on = self.active

    def begin(self, request: InferRequest, deliver: Deliver) -> Deliver:
        """Decide on a client's request; return what its responses are to be delivered to.

        A request that is traced has a `trace` then, and must be submitted, or be given up by `refused`.
        """
        setting = self._settings.of(request.model_name)
        if not setting.options.level:
            return deliver
        origin = request.origin
        client = None if origin is None or self._extract is None else _client_span(origin, self._extract)
        if not setting.sample(forced=client is not None):
            return deliver
        level = setting.options.level
        if self._extract is not None:
            level &= TraceLevel.TIMESTAMPS
            client = client or SpanContext(getrandbits(128) or 1)
        protocol = "" if origin is None else origin.protocol
        record = TraceRecord(level, protocol, self._open, partial(self._completed, setting), client)
        request.trace = record.add()
        record.received(request.received, monotonic_ns())
        return _Delivery(record, deliver).deliver

    def refused(self, request: InferRequest) -> None:
        """End the record of a request that was refused, and to which no response is delivered."""
        if request.trace is not None and request.trace.record is not None:
            now = monotonic_ns()
            request.trace.record.sent(now, now)
            request.trace.record.over()
            request.trace = None

    def called(self, caller: Trace) -> Trace | None:
        """Return the trace of a request that a model makes for another one; None where that is over."""
        parent = self._open.find(caller.id)
        return None if parent is None else parent.child()

    def close(self, seconds: float) -> None:
        """Write what was traced, for at most `seconds`."""
        for setting in self._settings.all:
            self._writer.retire(setting)
        self._writer.close(seconds)

    def _completed(self, setting: TraceSetting, record: TraceRecord) -> None:
        self._writer.write(record, setting, setting.collect())
        self._retire_if_over(setting)

    def _replaced(self, setting: TraceSetting) -> None:
        setting.replaced = True
        self._retire_if_over(setting)

    def _retire_if_over(self, setting: TraceSetting) -> None:
        if setting.replaced and not setting.open:
            self._writer.retire(setting)


def _client_span(origin: Origin, extract: Extract) -> SpanContext | None:
    """Return the context that a client sent with its request, None where it sent none."""
    parent = origin.header("traceparent")
    return extract(parent, origin.header("tracestate") or "") if parent else None


class _Delivery:
    """The front end's receiver of the responses to a traced request, with the times when it gets and has sent them."""

    __slots__ = ("_deliver", "_record")

    def __init__(self, record: TraceRecord, deliver: Deliver) -> None:
        self._record = record
        self._deliver = deliver

    def deliver(self, response: InferResponse) -> None:
        is_final = response.final  # a front end may change it
        is_sent = not response.is_empty
        now = monotonic_ns()
        # As in Triton, where streams over gRPC have this time once.
        if response.error is None and (is_final or self._record.protocol == "HTTP"):
            self._record.responding(now)
        try:
            self._deliver(response)
        finally:
            if is_sent:
                self._record.sent(now, monotonic_ns())
            if is_final:
                self._record.over()
