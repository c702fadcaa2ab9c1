"""Traces of `argosy serve`: files, and spans at a real receiver, with the contexts of clients, ensembles and models."""

import json
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpc
from tests.peers.otlp import OtlpReceiver, attributes, receiving, refusing, tree
from tests.serve.conftest import Start
from tests.serve.process import PATIENCE_S, Serving, wait_until

MODELS = Path(__file__).resolve().parents[1] / "models_traced"
VALUES = {"name": "X", "datatype": "FP32", "shape": [1, 2], "data": [1.5, -2]}
TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
CLIENT = f"00-{TRACE_ID}-b7ad6b7169203331-01"
HTTP = ["HTTP_RECV_START", "HTTP_RECV_END", "INFER_RESPONSE_COMPLETE", "HTTP_SEND_START", "HTTP_SEND_END"]
GRPC = ["GRPC_WAITREAD_START", "GRPC_WAITREAD_END", "INFER_RESPONSE_COMPLETE", "GRPC_SEND_START", "GRPC_SEND_END"]
MODEL = ["REQUEST_START", "QUEUE_START", "REQUEST_END"]
COMPUTE = ["COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END"]
DOUBLE = ("double", {"events": MODEL, "spans": [("compute", {"events": COMPUTE, "spans": []})]})


def infer(server: Serving, model: str, **headers: str) -> dict[str, Any]:
    """Return the answer to a request over HTTP with these headers."""
    body = json.dumps({"inputs": [VALUES], "id": "mine"}).encode()
    url = f"http://127.0.0.1:{server.ports['HTTP']}/v2/models/{model}/infer"
    with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=30) as answer:
        return json.loads(answer.read())


def infer_by_grpc(server: Serving, model: str, **metadata: str) -> None:
    """Send a request over gRPC with this metadata."""
    values = grpc.InferInput("X", [1, 2], "FP32")
    values.set_data_from_numpy(np.array([[1.5, -2]], np.float32))
    with grpc.InferenceServerClient(f"127.0.0.1:{server.ports['GRPCInference']}") as client:
        client.infer(model, [values], headers=metadata)


def spans_of(receiver: OtlpReceiver, trace_id: str, count: int) -> list[Any]:
    """Wait for the spans of one trace."""
    wait_until(lambda: len([span for span in receiver.spans if span.trace_id.hex() == trace_id]) >= count)
    return [span for span in receiver.spans if span.trace_id.hex() == trace_id]


@pytest.fixture
def traced(serve: Start) -> Any:
    """Yield a server that traces only what its clients trace, and the receiver of its spans."""
    with receiving() as receiver:
        settings = ["mode=opentelemetry", "level=TIMESTAMPS", "rate=0", f"opentelemetry,url={receiver.url}"]
        settings += ["opentelemetry,bsp_schedule_delay=50", "opentelemetry,resource=service.name=mine"]
        server = serve(*[f"--trace-config={setting}" for setting in settings], repository=MODELS).wait_until_ready()
        yield server, receiver


def test_a_clients_context_is_traced_through_an_ensemble(traced: tuple[Serving, OtlpReceiver]):
    server, receiver = traced
    infer(server, "twice")
    infer(server, "twice", traceparent=CLIENT)
    spans = spans_of(receiver, TRACE_ID, 6)
    assert tree(spans) == {
        "InferRequest": {"events": HTTP, "spans": [("twice", {"events": MODEL, "spans": [DOUBLE, DOUBLE]})]}
    }
    assert len(receiver.spans) == 6, "the request without a context is not traced"
    root = next(span for span in spans if span.name == "InferRequest")
    assert root.parent_span_id.hex() == "b7ad6b7169203331"
    assert receiver.resource()["service.name"] == "mine"


def test_a_context_reaches_the_models_that_a_model_calls(traced: tuple[Serving, OtlpReceiver]):
    server, receiver = traced
    answer = infer(server, "caller", traceparent=CLIENT, tracestate="vendor=1")
    spans = spans_of(receiver, TRACE_ID, 5)
    caller = next(span for span in spans if span.name == "caller")
    inner = next(span for span in spans if span.name == "double")
    assert inner.parent_span_id == caller.span_id, "of its two calls the one with the trace is traced"
    assert [span.name for span in spans].count("double") == 1
    assert attributes(inner)["triton.request_id"] == "of the caller"
    context = next(output for output in answer["outputs"] if output["name"] == "CONTEXT")["data"][0]
    parent = f"00-{TRACE_ID}-{caller.span_id.hex()}-01"
    assert json.loads(context) == {"traceparent": parent, "tracestate": "vendor=1"}


def test_metadata_has_the_context_over_grpc(traced: tuple[Serving, OtlpReceiver]):
    server, receiver = traced
    infer_by_grpc(server, "double", traceparent=CLIENT)
    assert tree(spans_of(receiver, TRACE_ID, 3)) == {"InferRequest": {"events": GRPC, "spans": [DOUBLE]}}


def test_without_a_trace_a_models_context_is_none(serve: Start):
    server = serve(repository=MODELS).wait_until_ready()
    answer = infer(server, "caller", traceparent=CLIENT)
    assert next(output for output in answer["outputs"] if output["name"] == "CONTEXT")["data"] == ["None"]


def test_spans_that_wait_are_sent_at_the_end(serve: Start):
    with receiving() as receiver:
        settings = ["mode=opentelemetry", "level=TIMESTAMPS", "rate=1", f"opentelemetry,url={receiver.url}"]
        server = serve(*[f"--trace-config={setting}" for setting in settings], repository=MODELS).wait_until_ready()
        infer(server, "double")
        server.process.terminate()
        assert server.process.wait(30) == 0
        assert sorted(span.name for span in receiver.spans) == ["InferRequest", "compute", "double"]


def test_a_receiver_that_is_away_delays_nothing(serve: Start):
    settings = ["mode=opentelemetry", "level=TIMESTAMPS", "rate=1", "opentelemetry,url=http://127.0.0.1:9/v1/traces"]
    server = serve(*[f"--trace-config={setting}" for setting in settings], repository=MODELS).wait_until_ready()
    assert infer(server, "double")["outputs"][0]["data"] == [3.0, -4.0]
    server.process.terminate()
    assert server.process.wait(30) == 0


def test_a_trace_file_can_be_read_while_the_server_runs(serve: Start, tmp_path: Path):
    file = tmp_path / "trace.json"
    settings = ["level=TIMESTAMPS", "rate=1", f"triton,file={file}"]
    server = serve(*[f"--trace-config={setting}" for setting in settings], repository=MODELS).wait_until_ready()
    infer(server, "twice")
    wait_until(file.exists)
    wait_until(lambda: len(names_by_model(file)) == 3)
    outer, first, second = names_by_model(file)
    assert (outer[0], first[0], second[0]) == ("twice", "double", "double")
    assert outer[1] == [*HTTP[:2], *MODEL[:2], HTTP[2], MODEL[2], *HTTP[3:]]
    assert first[1] == [*MODEL[:2], *COMPUTE, MODEL[2]]


def test_a_file_that_cannot_be_written_is_reported_and_requests_go_on(serve: Start, tmp_path: Path):
    settings = ["level=TIMESTAMPS", "rate=1", f"triton,file={tmp_path / 'nowhere' / 'trace.json'}"]
    server = serve(*[f"--trace-config={setting}" for setting in settings], repository=MODELS).wait_until_ready()
    infer(server, "double")
    wait_until(lambda: "cannot write trace file" in server.text)
    assert infer(server, "double")["outputs"][0]["data"] == [3.0, -4.0]


def names_by_model(file: Path) -> list[tuple[str, list[str]]]:
    """Return the models of a trace file in the order of their ids, each with the names of its times."""
    traces: dict[int, tuple[str, list[str]]] = {}
    names: dict[int, list[str]] = {}
    for entry in json.loads(file.read_text()):
        if "model_name" in entry:
            traces[entry["id"]] = (entry["model_name"], names.setdefault(entry["id"], []))
        else:
            names.setdefault(entry["id"], []).append(entry["timestamps"][0]["name"])
    return [traces[number] for number in sorted(traces)]


def test_a_receiver_that_is_away_loses_spans_and_nothing_else(serve: Start, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "1")
    with refusing() as url:
        settings = ["mode=opentelemetry", "level=TIMESTAMPS", "rate=1", f"opentelemetry,url={url}"]
        settings += [f"opentelemetry,bsp_{name}" for name in ("schedule_delay=50", "max_queue_size=4")]
        server = serve(*[f"--trace-config={setting}" for setting in settings], repository=MODELS).wait_until_ready()
        expected = infer(server, "twice")["outputs"]
        wait_until(lambda: "Failed to export" in server.text, server.log)
        for _ in range(20):  # many times the queue's size
            assert infer(server, "twice")["outputs"] == expected
        server.process.terminate()
        assert server.process.wait(PATIENCE_S) == 0
