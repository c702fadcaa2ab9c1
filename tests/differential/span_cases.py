"""Traced requests, and the spans that both servers send of them to a receiver."""

import json
import tempfile
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import Span
from tests.differential.trace_cases import MODELS
from tests.peers.otlp import attributes, receiving
from tests.peers.server import Server

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
CASES = {"double": 3, "twice": 6, "caller": 5}
"""Models, and how many spans a request to each has."""


def spans(start: Callable[..., Server], model: str) -> dict[str, Any]:
    """Return the spans of one request with a client's context, as a tree without times and ids."""
    body = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 2], "data": [1.5, -2]}], "id": "mine"}
    with receiving() as receiver, tempfile.TemporaryDirectory() as folder:
        settings = ["mode=opentelemetry", "level=TIMESTAMPS", "rate=0", f"opentelemetry,url={receiver.url}"]
        flags = [f"--trace-config={setting}" for setting in [*settings, "opentelemetry,bsp_schedule_delay=50"]]
        server = start(MODELS, *flags, log=Path(folder) / "server.log")
        try:
            url = f"http://{server.http}/v2/models/{model}/infer"
            headers = {"traceparent": f"00-{TRACE_ID}-{PARENT}-01"}
            request = urllib.request.Request(url, json.dumps(body).encode(), headers)
            with urllib.request.urlopen(request, timeout=30) as answer:
                assert answer.status == 200
            received = receiver.wait_for(CASES[model])
        finally:
            server.stop()
        assert {span.trace_id.hex() for span in received} == {TRACE_ID}
        return {"service": receiver.resource()["service.name"], "spans": _below(received, PARENT)}


def _below(received: list[Span], parent: str) -> list[Any]:
    children = [span for span in received if span.parent_span_id.hex() == parent]
    return [
        {
            "name": span.name,
            "kind": span.kind,
            "attributes": attributes(span),
            "events": sorted(event.name for event in span.events),
            "spans": _below(received, span.span_id.hex()),
        }
        for span in sorted(children, key=lambda span: span.start_time_unix_nano)
    ]
