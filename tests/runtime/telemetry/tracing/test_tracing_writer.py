"""The thread of traces: requests never wait for it, and what it cannot take in time is dropped and reported."""

import logging
import threading

import pytest

from argosy_runtime.telemetry.tracing import writer
from argosy_runtime.telemetry.tracing.options import TraceOptions
from argosy_runtime.telemetry.tracing.settings import TraceSetting
from argosy_runtime.telemetry.tracing.writer import TraceWriter
from argosy_runtime.traces import OpenTraces, TraceLevel, TraceRecord

SETTING = TraceSetting(TraceOptions())


class SlowSink:
    """Writes nothing before it may."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.written: list[TraceRecord] = []
        self.retired: list[TraceSetting] = []
        self.closed = False

    def write(self, record: TraceRecord, setting: TraceSetting, complete: bool) -> None:
        self.may.wait()
        if record.level is TraceLevel.OFF:
            raise ValueError("this one cannot be written")
        self.written.append(record)

    def retire(self, setting: TraceSetting) -> None:
        self.retired.append(setting)

    def close(self) -> None:
        self.closed = True


def record(level: TraceLevel = TraceLevel.TIMESTAMPS) -> TraceRecord:
    return TraceRecord(level, "HTTP", OpenTraces(), lambda _: None)


def test_everything_is_written_before_the_end():
    sink = SlowSink()
    sink.may.set()
    traces = TraceWriter(lambda: sink)
    records = [record() for _ in range(100)]
    for one in records:
        traces.write(one, SETTING, complete=False)
    traces.retire(SETTING)
    traces.close(10)
    assert (sink.written, sink.retired, sink.closed) == (records, [SETTING], True)


def test_nothing_runs_before_the_first_record():
    before = threading.active_count()
    traces = TraceWriter(SlowSink)
    traces.retire(SETTING)
    traces.close(10)
    assert threading.active_count() == before


def test_records_beyond_the_limit_are_dropped_and_reported(monkeypatch, caplog: pytest.LogCaptureFixture):
    monkeypatch.setattr(writer, "MOST_RECORDS", 5)
    sink = SlowSink()
    traces = TraceWriter(lambda: sink)
    with caplog.at_level(logging.WARNING, "argosy.trace"):
        for _ in range(12):
            traces.write(record(), SETTING, complete=False)
        sink.may.set()
        traces.close(10)
    assert len(sink.written) == 5
    assert [line.getMessage() for line in caplog.records] == [
        "traces come faster than they can be written: some are lost",
        "7 traces were lost, since they came faster than they could be written",
    ]


def test_a_record_that_cannot_be_written_does_not_end_the_thread(caplog: pytest.LogCaptureFixture):
    sink = SlowSink()
    sink.may.set()
    traces = TraceWriter(lambda: sink)
    good = record()
    traces.write(record(TraceLevel.OFF), SETTING, complete=False)
    traces.write(good, SETTING, complete=False)
    traces.close(10)
    assert sink.written == [good]
    assert "this one cannot be written" in caplog.text


def test_the_end_waits_only_so_long(caplog: pytest.LogCaptureFixture):
    sink = SlowSink()
    traces = TraceWriter(lambda: sink)
    traces.write(record(), SETTING, complete=False)
    traces.close(0.01)
    assert "traces could not be written within 0.01 s" in caplog.text
    sink.may.set()
