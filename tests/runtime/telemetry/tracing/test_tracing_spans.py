"""Spans: names, nesting and attributes as Triton's, received by OTLP; and the contexts of clients."""

import pytest
from tests.peers.otlp import attributes, receiving, refusing, tree

from argosy_runtime.backends.contract import ExecutionTimes
from argosy_runtime.messages import InferRequest
from argosy_runtime.telemetry.tracing.options import TraceMode, TraceOptions
from argosy_runtime.telemetry.tracing.settings import TraceSetting
from argosy_runtime.telemetry.tracing.spans import SpanExporter, extract
from argosy_runtime.traces import OpenTraces, SpanContext, Trace, TraceLevel, TraceRecord

CLIENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TIMES = ExecutionTimes(1, 2, 3)


def options(url: str, *more: tuple[str, str]) -> TraceOptions:
    batches = (("bsp_max_queue_size", "64"), ("bsp_schedule_delay", "50"), ("bsp_max_export_batch_size", "8"))
    config = (("url", url), *more, *batches)
    return TraceOptions(TraceLevel.TIMESTAMPS, rate=1, mode=TraceMode.OPENTELEMETRY, config=config)


def ensemble(span: SpanContext, done: list[TraceRecord]) -> list[Trace]:
    """Record a request to an ensemble of one step."""
    record = TraceRecord(TraceLevel.TIMESTAMPS, "HTTP", OpenTraces(), done.append, span)
    outer = record.add()
    record.received(10, 20)
    outer.begin("outer", "2", InferRequest("outer", {}, id="mine"), 30)
    inner = outer.child()
    inner.begin("inner", "1", InferRequest("inner", {}), 40)
    inner.computed(50, TIMES)
    inner.answered(60, running=False)
    outer.answered(70, running=False)
    record.responding(71)
    record.sent(71, 80)
    record.over()
    return [outer, inner]


def test_an_ensembles_spans_arrive_as_a_tree():
    done: list[TraceRecord] = []
    traces = ensemble(SpanContext(0x1234), done)
    with receiving() as receiver:
        settings = options(receiver.url, ("resource", "service.name=mine"), ("resource", "zone=a"))
        exporter = SpanExporter(settings, offset=1_000_000)
        exporter.write(done[0], TraceSetting(settings), complete=False)
        exporter.close()
        spans = receiver.wait_for(4)
        resource = receiver.resource()
    assert tree(spans) == {
        "InferRequest": {
            "events": [
                "HTTP_RECV_START",
                "HTTP_RECV_END",
                "INFER_RESPONSE_COMPLETE",
                "HTTP_SEND_START",
                "HTTP_SEND_END",
            ],
            "spans": [
                (
                    "outer",
                    {
                        "events": ["REQUEST_START", "QUEUE_START", "REQUEST_END"],
                        "spans": [
                            (
                                "inner",
                                {
                                    "events": ["REQUEST_START", "QUEUE_START", "REQUEST_END"],
                                    "spans": [
                                        (
                                            "compute",
                                            {
                                                "events": [
                                                    "COMPUTE_START",
                                                    "COMPUTE_INPUT_END",
                                                    "COMPUTE_OUTPUT_START",
                                                    "COMPUTE_END",
                                                ],
                                                "spans": [],
                                            },
                                        )
                                    ],
                                },
                            )
                        ],
                    },
                )
            ],
        }
    }
    by_name = {span.name: span for span in spans}
    assert {int.from_bytes(span.trace_id) for span in spans} == {0x1234}
    assert int.from_bytes(by_name["outer"].span_id) == traces[0].span_id
    assert by_name["InferRequest"].start_time_unix_nano == 1_000_010
    assert by_name["InferRequest"].end_time_unix_nano == 1_000_080
    assert by_name["compute"].end_time_unix_nano == 1_000_056
    assert attributes(by_name["outer"]) == {
        "triton.model_name": "outer",
        "triton.model_version": 2,
        "triton.trace_id": traces[0].id,
        "triton.trace_parent_id": 0,
        "triton.request_id": "mine",
    }
    assert attributes(by_name["inner"])["triton.trace_parent_id"] == traces[0].id
    assert (resource["service.name"], resource["zone"]) == ("mine", "a")


def test_a_clients_span_is_the_parent():
    span = extract(CLIENT, "vendor=1")
    assert span is not None
    assert (span.trace_id, span.parent_span_id, span.state) == (
        0x0AF7651916CD43DD8448EB211C80319C,
        0xB7AD6B7169203331,
        "vendor=1",
    )
    done: list[TraceRecord] = []
    traces = ensemble(span, done)
    assert traces[0].context == (
        f'{{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-{traces[0].span_id:016x}-01","tracestate":"vendor=1"}}'
    )
    with receiving() as receiver:
        exporter = SpanExporter(options(receiver.url), offset=0)
        exporter.write(done[0], TraceSetting(options("")), complete=False)
        spans = {span.name: span for span in receiver.wait_for(4)}
        exporter.close()
    assert spans["InferRequest"].parent_span_id.hex() == "b7ad6b7169203331"
    assert receiver.resource()["service.name"] == "triton-inference-server"


@pytest.mark.parametrize("header", ["", "x", "00-0-0-01", "00-" + "0" * 32 + "-b7ad6b7169203331-01", CLIENT + "-more"])
def test_what_is_no_context_is_none(header: str):
    assert extract(header, "") is None


def test_spans_that_no_receiver_takes_are_logged_as_lost(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "1")
    done: list[TraceRecord] = []
    ensemble(SpanContext(1), done)
    with refusing() as url:
        exporter = SpanExporter(options(url), offset=0)
        exporter.write(done[0], TraceSetting(options("")), complete=False)
        exporter.close()
    assert "Failed to export" in caplog.text
