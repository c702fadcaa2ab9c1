"""Spans of requests at the activator: how long each one waited, as the parent of what the server traces of it.

OpenTelemetry's SDK is imported only where requests are traced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

_CONTEXT: Final = ("traceparent", "tracestate")
_NAME: Final = "activator"
_SERVICE: Final = "argosy-activator"


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """Where spans go, and one request in how many is traced of those without a context; 0 traces none of them."""

    url: str
    rate: int
    delay_ms: int = 5000


class RequestSpan:
    """The span of one request; without effect where the request is not traced."""

    def __init__(self, span: Span | None) -> None:
        self._span = span

    def passed_on(self, headers: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """Return the headers that a server gets: its spans are to be below this one."""
        if self._span is None:
            return list(headers)
        return [*(header for header in headers if header[0].lower() not in _CONTEXT), *_context_of(self._span).items()]

    def waited(self, outcome: str) -> None:
        """Note that the request no longer waits, and the reason: it was passed, refused, or its client is gone."""
        if self._span is not None:
            self._span.add_event("QUEUE_END")
            self._span.set_attribute("argosy.outcome", outcome)


class Spans:
    """Makes spans and sends them by OTLP over HTTP; none without options."""

    def __init__(self, options: TraceOptions | None) -> None:
        self._rate = options.rate if options is not None else 0
        self._provider = _provider(options) if options is not None else None
        self._requests = 0

    @contextmanager
    def request(self, model: str, headers: Iterable[tuple[str, Any]]) -> Iterator[RequestSpan]:
        """Yield the span of a request, which ends with the block."""
        span = self._begin(model, headers) if self._provider is not None else None
        try:
            yield RequestSpan(span)
        finally:
            if span is not None:
                span.end()

    def close(self) -> None:
        """Send what is left. Blocks for as long as the receiver needs."""
        if self._provider is not None:
            self._provider.shutdown()

    def _begin(self, model: str, headers: Iterable[tuple[str, Any]]) -> Span | None:
        from opentelemetry.trace import SpanKind, get_current_span
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        carrier = {name.lower(): value for name, value in headers if name.lower() in _CONTEXT}
        context = TraceContextTextMapPropagator().extract(carrier)
        if not get_current_span(context).get_span_context().is_valid and not self._is_next():
            return None
        assert self._provider is not None
        tracer = self._provider.get_tracer(_NAME)
        span = tracer.start_span(_NAME, context, SpanKind.SERVER, attributes={"triton.model_name": model})
        span.add_event("QUEUE_START")
        return span

    def _is_next(self) -> bool:
        """Count a request without a context. Return whether it is traced."""
        if not self._rate:
            return False
        self._requests += 1
        return self._requests % self._rate == 0


def _context_of(span: Span) -> dict[str, str]:
    from opentelemetry.trace import set_span_in_context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier, set_span_in_context(span))
    return carrier


def _provider(options: TraceOptions) -> TracerProvider:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON

    provider = TracerProvider(
        sampler=ALWAYS_ON, resource=Resource.create({SERVICE_NAME: _SERVICE}), shutdown_on_exit=False
    )
    exporter = OTLPSpanExporter(endpoint=options.url)
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=options.delay_ms))
    return provider
