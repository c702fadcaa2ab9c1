"""Records as OpenTelemetry spans, named and nested as Triton's: InferRequest, a span for each model, and `compute`.

The module imports OpenTelemetry's SDK, so it is imported only in that mode.
"""

from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    TraceFlags,
    TraceState,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from argosy_runtime import traces
from argosy_runtime.traces import Trace, TraceRecord

from .options import TraceOptions
from .settings import TraceSetting

DEFAULT_URL: Final = "http://localhost:4318/v1/traces"
_SERVICE: Final = "triton-inference-server"
_SCOPE: Final = "triton-server"
_COMPUTE: Final = ("COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END")
_MODEL: Final = ("REQUEST_START", "QUEUE_START", "REQUEST_END")
_PROPAGATOR: Final = TraceContextTextMapPropagator()


def extract(traceparent: str, tracestate: str) -> traces.SpanContext | None:
    """Return the context that a client sent by W3C's headers; None where it is not valid."""
    carrier = {"traceparent": traceparent, "tracestate": tracestate}
    context = get_current_span(_PROPAGATOR.extract(carrier)).get_span_context()
    if not context.is_valid:
        return None
    return traces.SpanContext(context.trace_id, context.span_id, context.trace_state.to_header())


class _Ids(IdGenerator):
    """Gives the ids that were chosen while the request ran: models may have passed them on."""

    def __init__(self) -> None:
        self.trace_id = 0
        self.span_id = 0

    def generate_trace_id(self) -> int:
        return self.trace_id

    def generate_span_id(self) -> int:
        return self.span_id


class SpanExporter:
    """Sends records as spans by OTLP over HTTP. `offset` is the wall clock's lead over the monotonic one, in ns."""

    def __init__(self, options: TraceOptions, offset: int) -> None:
        config = dict(options.config)
        queue = int(config["bsp_max_queue_size"])
        self._offset = offset
        self._ids = _Ids()
        self._processor = BatchSpanProcessor(
            OTLPSpanExporter(endpoint=config.get("url", DEFAULT_URL)),
            max_queue_size=queue,
            schedule_delay_millis=int(config["bsp_schedule_delay"]),
            max_export_batch_size=min(queue, int(config["bsp_max_export_batch_size"])),
        )
        # Neither is the number of a stream's events limited here; the record limits it.
        limits = SpanLimits(max_events=SpanLimits.UNSET)
        self._provider = TracerProvider(
            sampler=ALWAYS_ON,
            resource=_resource(options),
            id_generator=self._ids,
            span_limits=limits,
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(self._processor)
        self._tracer = self._provider.get_tracer(_SCOPE)

    def write(self, record: TraceRecord, setting: TraceSetting, complete: bool) -> None:
        """Make the spans of a record."""
        if record.span is None:
            return
        stamps = [activity for activity in record.traces[0].activities if isinstance(activity, tuple)]
        if not stamps:
            return
        self._ids.trace_id = record.span.trace_id
        front = [stamp for stamp in stamps if stamp[0] not in (*_COMPUTE, *_MODEL)]
        times = [ns for _, ns in stamps]
        root = self._start("InferRequest", _client(record.span), min(times), traces.new_span_id())
        for name, ns in front:
            root.add_event(name, timestamp=ns + self._offset)
        contexts = {0: root.get_span_context()}
        for trace in record.traces:
            if trace.begun:
                contexts[trace.id] = self._model_spans(trace, contexts.get(trace.parent_id, contexts[0]))
        root.end(max(times) + self._offset)

    def retire(self, setting: TraceSetting) -> None:
        """Do nothing: spans are sent as they come."""

    def close(self) -> None:
        """Send what is left."""
        self._provider.shutdown()

    def _model_spans(self, trace: Trace, parent: SpanContext) -> SpanContext:
        stamps = [activity for activity in trace.activities if isinstance(activity, tuple)]
        own = [stamp for stamp in stamps if stamp[0] in _MODEL]
        compute = [stamp for stamp in stamps if stamp[0] in _COMPUTE]
        if not own:
            return parent
        span = self._start(trace.model_name, parent, own[0][1], trace.span_id)
        span.set_attributes(_attributes(trace))
        for name, ns in own:
            span.add_event(name, timestamp=ns + self._offset)
        if compute:
            inner = self._start("compute", span.get_span_context(), compute[0][1], traces.new_span_id())
            for name, ns in compute:
                inner.add_event(name, timestamp=ns + self._offset)
            inner.end(compute[-1][1] + self._offset)
        span.end(own[-1][1] + self._offset)
        return span.get_span_context()

    def _start(self, name: str, parent: SpanContext | None, began: int, span_id: int) -> Span:
        self._ids.span_id = span_id
        context = Context() if parent is None else set_span_in_context(NonRecordingSpan(parent), Context())
        return self._tracer.start_span(name, context, SpanKind.SERVER, start_time=began + self._offset)


def _attributes(trace: Trace) -> dict[str, str | int]:
    attributes: dict[str, str | int] = {
        "triton.model_name": trace.model_name,
        "triton.model_version": int(trace.model_version or -1),
        "triton.trace_id": trace.id,
        "triton.trace_parent_id": trace.parent_id,
    }
    if trace.request_id:
        attributes["triton.request_id"] = trace.request_id
    return attributes


def _client(span: traces.SpanContext) -> SpanContext | None:
    """Return the context of the client's span; None where no client sent one."""
    if not span.parent_span_id:
        return None
    state = TraceState.from_header([span.state]) if span.state else None
    return SpanContext(span.trace_id, span.parent_span_id, True, TraceFlags(TraceFlags.SAMPLED), state)


def _resource(options: TraceOptions) -> Resource:
    """Return the attributes of the server: of the flags, then of OTEL_RESOURCE_ATTRIBUTES, then Triton's default."""
    declared = [value.partition("=") for name, value in options.config if name == "resource"]
    attributes = {key: value for key, _, value in declared}
    named = Resource.create().attributes.get(SERVICE_NAME, "unknown_service")
    if SERVICE_NAME not in attributes and str(named).startswith("unknown_service"):
        attributes[SERVICE_NAME] = _SERVICE
    return Resource.create(attributes)
