"""Trace files: their entries, when a file is complete, and what cannot be written."""

import json
import logging
from pathlib import Path

import numpy as np
import pytest

from argosy_runtime.backends.contract import ExecutionTimes
from argosy_runtime.messages import InferRequest, InferResponse
from argosy_runtime.telemetry.tracing.entries import entries
from argosy_runtime.telemetry.tracing.files import TraceFiles
from argosy_runtime.telemetry.tracing.options import TraceOptions
from argosy_runtime.telemetry.tracing.settings import TraceSetting
from argosy_runtime.tensors import Tensor
from argosy_runtime.traces import OpenTraces, TraceLevel, TraceRecord

BOTH = TraceLevel.TIMESTAMPS | TraceLevel.TENSORS


def recorded(traces: OpenTraces, level: TraceLevel = BOTH, name: str = "m", *tensors: Tensor) -> TraceRecord:
    """Return the complete record of one request to a model."""
    done: list[TraceRecord] = []
    record = TraceRecord(level, "HTTP", traces, done.append)
    trace = record.add()
    record.received(5, 10)
    trace.begin(name, "1", InferRequest(name, {tensor.name: tensor for tensor in tensors}, id='i"1'), 20)
    trace.responded(InferResponse(outputs=list(tensors)))
    record.responding(50)
    record.sent(50, 60)
    record.over()
    trace.computed(30, ExecutionTimes(1, 2, 3))
    trace.answered(40, running=False)
    assert done == [record]
    return record


def test_entries_are_those_of_triton():
    traces = OpenTraces()
    values = Tensor("X", "FP32", np.array([[1.5, 2.0]], np.float32))
    text = entries(recorded(traces, BOTH, "m", values))
    tensor = {"name": "X", "data": "1.5,2", "shape": "1,2", "dtype": "FP32"}
    assert json.loads(f"[{text}]") == [
        {"id": 1, "timestamps": [{"name": "HTTP_RECV_START", "ns": 5}]},
        {"id": 1, "timestamps": [{"name": "HTTP_RECV_END", "ns": 10}]},
        {"id": 1, "model_name": "m", "model_version": 1, "request_id": 'i"1'},
        {"id": 1, "timestamps": [{"name": "REQUEST_START", "ns": 20}]},
        {"id": 1, "timestamps": [{"name": "QUEUE_START", "ns": 20}]},
        {"id": 1, "activity": "TENSOR_QUEUE_INPUT", "tensor": tensor},
        {"id": 1, "activity": "TENSOR_BACKEND_OUTPUT", "tensor": tensor},
        {"id": 1, "timestamps": [{"name": "INFER_RESPONSE_COMPLETE", "ns": 50}]},
        {"id": 1, "timestamps": [{"name": "COMPUTE_START", "ns": 30}]},
        {"id": 1, "timestamps": [{"name": "COMPUTE_INPUT_END", "ns": 31}]},
        {"id": 1, "timestamps": [{"name": "COMPUTE_OUTPUT_START", "ns": 33}]},
        {"id": 1, "timestamps": [{"name": "COMPUTE_END", "ns": 36}]},
        {"id": 1, "timestamps": [{"name": "REQUEST_END", "ns": 40}]},
        {"id": 1, "timestamps": [{"name": "HTTP_SEND_START", "ns": 50}]},
        {"id": 1, "timestamps": [{"name": "HTTP_SEND_END", "ns": 60}]},
    ]


@pytest.mark.parametrize(
    ("datatype", "array", "data"),
    [
        ("BOOL", np.array([True, False]), "1,0"),
        ("UINT8", np.array([1, 255], np.uint8), "1,255"),
        ("INT64", np.array([-(2**40)], np.int64), str(-(2**40))),
        ("FP64", np.array([0.1, 1e300]), "0.1,1e+300"),
        ("FP16", np.array([1.0], np.float16), ""),
        ("BYTES", np.array([b"a", b'q"\\'], np.object_), '"a","q"\\"'),
    ],
)
def test_tensors_of_every_kind_become_text(datatype: str, array: np.ndarray, data: str):
    record = recorded(OpenTraces(), TraceLevel.TENSORS, "m", Tensor("X", datatype, array))
    parsed = json.loads(f"[{entries(record)}]")
    assert [entry["activity"] for entry in parsed] == ["TENSOR_QUEUE_INPUT", "TENSOR_BACKEND_OUTPUT"]
    assert parsed[0]["tensor"] == {"name": "X", "data": data, "shape": str(len(array)), "dtype": datatype}


def test_without_limit_and_frequency_the_file_is_complete_at_any_time(tmp_path: Path):
    file = tmp_path / "trace.json"
    setting = TraceSetting(TraceOptions(TraceLevel.TIMESTAMPS, rate=1, file=str(file)))
    traces, files = OpenTraces(), TraceFiles()
    for number in (1, 2, 3):
        files.write(recorded(traces), setting, complete=False)
        heads = [entry for entry in json.loads(file.read_text()) if "model_name" in entry]
        assert [head["id"] for head in heads] == list(range(1, number + 1))
    files.close()


def test_collected_traces_become_numbered_files_and_the_rest_goes_where_triton_writes_it(tmp_path: Path):
    file = tmp_path / "trace.json"
    traces, files = OpenTraces(), TraceFiles()
    frequent = TraceSetting(TraceOptions(TraceLevel.TIMESTAMPS, rate=1, log_frequency=2, file=str(file)))
    for complete in (False, True, False):
        files.write(recorded(traces), frequent, complete)
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json.0"]
    files.retire(frequent)
    limited = TraceSetting(TraceOptions(TraceLevel.TIMESTAMPS, rate=1, count=9, file=str(file)))
    files.write(recorded(traces), limited, complete=False)
    files.retire(limited)
    files.close()
    heads = {
        path.name: [entry["id"] for entry in json.loads(path.read_text()) if "model_name" in entry]
        for path in tmp_path.iterdir()
    }
    assert heads == {"trace.json.0": [1, 2], "trace.json.1": [3], "trace.json": [4]}


def test_a_file_that_cannot_be_written_is_reported_once(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    missing = tmp_path / "nowhere" / "trace.json"
    setting = TraceSetting(TraceOptions(TraceLevel.TIMESTAMPS, rate=1, file=str(missing)))
    files = TraceFiles()
    with caplog.at_level(logging.ERROR, "argosy.trace"):
        for _ in range(3):
            files.write(recorded(OpenTraces()), setting, complete=False)
        files.close()
    assert [record.getMessage() for record in caplog.records] == [
        f"cannot write trace file '{missing}': No such file or directory; its traces are lost"
    ]


@pytest.mark.parametrize("frequency", [0, 3])
def test_a_refused_request_without_entries_leaves_json(tmp_path: Path, frequency: int):
    options = TraceOptions(TraceLevel.TENSORS, rate=1, log_frequency=frequency, file=str(tmp_path / "trace.json"))
    setting, traces, files = TraceSetting(options), OpenTraces(), TraceFiles()
    empty = TraceRecord(TraceLevel.TENSORS, "HTTP", traces, lambda record: None)
    empty.add()
    tensor = Tensor("X", "INT64", np.array([1]))
    for record, complete in ((empty, False), (recorded(traces, TraceLevel.TENSORS, "m", tensor), False), (empty, True)):
        files.write(record, setting, complete and frequency != 0)
    files.close()
    (path,) = tmp_path.iterdir()
    assert [entry["tensor"]["name"] for entry in json.loads(path.read_text())] == ["X", "X"]
