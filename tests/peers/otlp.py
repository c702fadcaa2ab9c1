"""A receiver of OpenTelemetry traces: OTLP over HTTP, decoded by the official messages."""

import base64
import gzip
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

PATIENCE_S = 20.0


class OtlpReceiver:
    """What has come. `url` is what an exporter sends to."""

    def __init__(self, address: str) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self._came = threading.Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                is_json = self.headers["Content-Type"].startswith("application/json")
                receiver._take(_from_json(body) if is_json else ExportTraceServiceRequest.FromString(body))
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer((address, 0), Handler)
        self.url = f"http://{address}:{self._server.server_port}/v1/traces"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _take(self, request: ExportTraceServiceRequest) -> None:
        with self._came:
            self.requests.append(request)
            self._came.notify_all()

    @property
    def spans(self) -> list[Span]:
        """Every span, in the order of its arrival."""
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def wait_for(self, count: int) -> list[Span]:
        """Wait for so many spans, and return all."""
        end = time.monotonic() + PATIENCE_S
        with self._came:
            while len(self.spans) < count and self._came.wait(end - time.monotonic()):
                pass
        assert len(self.spans) >= count, f"{len(self.spans)} of {count} spans have come"
        return self.spans

    def resource(self) -> dict[str, str]:
        """Return the attributes of the server that has sent last."""
        attributes = self.requests[-1].resource_spans[0].resource.attributes
        return {pair.key: pair.value.string_value for pair in attributes}

    def close(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._server.server_close()


def _from_json(body: bytes) -> ExportTraceServiceRequest:
    """Read OTLP's JSON, whose ids are hexadecimal where protobuf's own JSON has base 64."""
    text = re.sub(rb'"((?:trace|span|parentSpan)Id)":\s*"([0-9a-fA-F]*)"', _id_as_base64, body)
    return json_format.Parse(text, ExportTraceServiceRequest(), ignore_unknown_fields=True)


def _id_as_base64(match: re.Match[bytes]) -> bytes:
    return b'"%b":"%b"' % (match[1], base64.b64encode(bytes.fromhex(match[2].decode())))


@contextmanager
def refusing() -> Iterator[str]:
    """Yield the URL of a receiver that is away: its port is taken, and refuses connections."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1/traces"


@contextmanager
def receiving(address: str = "127.0.0.1") -> Iterator[OtlpReceiver]:
    """Run a receiver on an address of this machine."""
    receiver = OtlpReceiver(address)
    try:
        yield receiver
    finally:
        receiver.close()


def attributes(span: Span) -> dict[str, Any]:
    """Return a span's attributes as values."""
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in span.attributes}


def tree(spans: list[Span]) -> dict[str, Any]:
    """Return spans by name, nested as they are; `events` are the names of a span's events."""
    below: dict[bytes, list[Span]] = {}
    ids = {span.span_id for span in spans}
    for span in sorted(spans, key=lambda span: span.start_time_unix_nano):
        below.setdefault(span.parent_span_id if span.parent_span_id in ids else b"", []).append(span)

    def node(span: Span) -> tuple[str, Any]:
        children = [node(child) for child in below.get(span.span_id, [])]
        return span.name, {"events": [event.name for event in span.events], "spans": children}

    return dict(node(span) for span in below.get(b"", []))
