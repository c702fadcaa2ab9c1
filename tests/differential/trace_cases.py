"""Traced requests, and the trace files that both servers write of them, in a form that can be compared."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import tritonclient.grpc as grpc
from tests.differential.http_calls import Call, get, post, send
from tests.differential.normalise import normalised
from tests.peers.server import Server

MODELS = Path(__file__).resolve().parents[1] / "models_traced"
_VALUES = {"name": "X", "datatype": "FP32", "shape": [1, 2], "data": [1.5, -2]}


@dataclass(frozen=True)
class TraceCase:
    """A server's flags, and calls to it; `{file}` is the trace file."""

    name: str
    flags: tuple[str, ...]
    calls: tuple[Call | str, ...]
    """A call over HTTP, or the name of a model that is asked over gRPC."""


def _infer(model: str, request_id: str = "") -> Call:
    body = {"inputs": [_VALUES]} | ({"id": request_id} if request_id else {})
    return post(f"/v2/models/{model}/infer", body)


_ALL = ("--trace-config=rate=1", "--trace-config=triton,file={file}")
_TIMES = ("--trace-config=level=TIMESTAMPS", *_ALL)
_SETTING = "/v2/trace/setting"
_OF_DOUBLE = "/v2/models/double/trace/setting"

CASES = [
    TraceCase("a model", _TIMES, (_infer("double"), _infer("double", "mine"))),
    TraceCase("a model over gRPC", _TIMES, ("double",)),
    TraceCase("an ensemble", _TIMES, (_infer("twice", "mine"),)),
    TraceCase("an ensemble over gRPC", _TIMES, ("twice",)),
    TraceCase("a model that calls another", _TIMES, (_infer("caller"),)),
    TraceCase("a stream", (*_TIMES, "--trace-config=level=TENSORS"), ("several",)),
    TraceCase("generate", _TIMES, (post("/v2/models/double/generate", {"X": [1.0, 2.0]}),)),
    TraceCase("events", _TIMES, (post("/v2/models/several/generate_stream", {"X": [1.0, 2.0]}),)),
    TraceCase("tensors", ("--trace-config=level=TENSORS", *_ALL), (_infer("double"), _infer("twice"))),
    TraceCase("times and tensors", (*_TIMES, "--trace-config=level=TENSORS"), (_infer("double"), _infer("twice"))),
    TraceCase(
        "every third",
        ("--trace-config=level=TIMESTAMPS", "--trace-config=rate=3", "--trace-config=triton,file={file}"),
        tuple(_infer("double", str(number)) for number in range(1, 8)),
    ),
    TraceCase(
        "a count that runs out",
        (*_TIMES, "--trace-config=count=2"),
        (*[_infer("double")] * 3, get(_SETTING), post(_SETTING, {"trace_rate": "5"}), post(_SETTING, {})),
    ),
    TraceCase(
        "a file for every two",
        (*_TIMES, "--trace-config=triton,log-frequency=2"),
        tuple(_infer("double", str(number)) for number in range(5)),
    ),
    TraceCase(
        "settings of a model",
        _TIMES,
        (
            post(_OF_DOUBLE, {"trace_level": ["OFF"]}),
            _infer("double", "not traced"),
            _infer("twice", "traced"),
            get(_SETTING),
            post(_SETTING, {"trace_count": "7", "log_frequency": "3"}),
            get(_OF_DOUBLE),
            post(_OF_DOUBLE, {"trace_level": None}),
            _infer("double", "traced again"),
            get(_OF_DOUBLE),
            post(_SETTING, {"trace_count": None, "log_frequency": None}),
            _infer("double", "and again"),
            get(_SETTING),
        ),
    ),
    TraceCase(
        "wrong settings",
        _TIMES,
        (
            post(_OF_DOUBLE, {"trace_rate": "0"}),
            post(_SETTING, {"trace_count": "0"}),
            post(_SETTING, {"trace_count": "-2"}),
            post(_SETTING, {"trace_count": "two"}),
            post(_SETTING, {"trace_count": "99999999999"}),
            post(_SETTING, {"trace_rate": "99999999999"}),
            post(_SETTING, {"log_frequency": "x"}),
            post(_SETTING, {"log_frequency": ""}),
            post(_SETTING, {"trace_rate": 5}),
            post(_SETTING, {"trace_level": "OFF"}),
            post(_SETTING, {"trace_level": [5]}),
            post(_SETTING, {"trace_level": ["OFF", "TENSORS"]}),
            post(_SETTING, {"trace_level": ["LOUD"]}),
            post(_SETTING, {"trace_file": "elsewhere"}),
            post(_SETTING, {"trace_mode": "opentelemetry", "unknown": 1}),
            post(_SETTING, b"[]"),
            post("/v2/models/nope/trace/setting", {}),
            get("/v2/models/nope/trace/setting"),
            get(_SETTING),
        ),
    ),
    TraceCase("an empty change", _TIMES, (post(_SETTING, b""),)),
    TraceCase("a wrong request", _TIMES, (post("/v2/models/double/infer", {"inputs": []}), _infer("double"))),
    TraceCase("off", ("--trace-config=rate=1", "--trace-config=triton,file={file}"), (_infer("double"), get(_SETTING))),
    TraceCase(
        "on without a file",
        ("--trace-config=level=TIMESTAMPS", "--trace-config=rate=1"),
        (
            get(_SETTING),
            _infer("double"),
            post(_SETTING, {"trace_rate": "2"}),
            post(_SETTING, {"trace_level": ["OFF"]}),
        ),
    ),
    TraceCase(
        "settings of OpenTelemetry",
        (
            "--trace-config=mode=opentelemetry",
            "--trace-config=level=TIMESTAMPS",
            "--trace-config=rate=0",
            "--trace-config=opentelemetry,url=http://127.0.0.1:9/v1/traces",
            "--trace-config=opentelemetry,resource=zone=a",
            "--trace-config=opentelemetry,bsp_schedule_delay=100",
        ),
        (
            get(_SETTING),
            post(_SETTING, {"trace_rate": "4"}),
            post(_SETTING, {"trace_level": ["OFF"], "trace_rate": "0"}),
        ),
    ),
]


def outcome(start: Callable[..., Server], case: TraceCase, folder: Path) -> dict[str, Any]:
    """Return the answers of a server that `start` starts, and the files that it has written when it has ended."""
    file = folder / "trace.json"
    server = start(MODELS, *[flag.replace("{file}", str(file)) for flag in case.flags], log=folder / "server.log")
    try:
        answers = [_answer(server, call, str(file)) for call in case.calls]
    finally:
        server.stop()
    files = {path.name: _shape(path) for path in sorted(folder.glob("trace.json*"))}
    return {"answers": answers, "files": files}


def _answer(server: Server, call: Call | str, file: str) -> Any:
    if isinstance(call, str):
        return _over_stream(server, call) if call == "several" else _over_grpc(server, call)
    answer = normalised(send(server.http, call))
    is_setting = call.path.endswith("/trace/setting")
    return json.loads(json.dumps(answer).replace(file, "<file>")) if is_setting else answer["status"]


def _over_grpc(server: Server, model: str) -> str:
    with grpc.InferenceServerClient(server.grpc) as client:
        return str(client.infer(model, [_values()], request_id="over gRPC").get_response().model_name)


def _over_stream(server: Server, model: str) -> int:
    """Return how many responses come."""
    responses: SimpleQueue[Any] = SimpleQueue()
    with grpc.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: responses.put(error or result))
        client.async_stream_infer(model, [_values()], request_id="streamed")
        client.stop_stream()
    return responses.qsize()


def _values() -> grpc.InferInput:
    values = grpc.InferInput("X", [1, 2], "FP32")
    values.set_data_from_numpy(np.array([[1.5, -2]], np.float32))
    return values


def _shape(path: Path) -> list[Any]:
    """Return the traces of a file in the order of their ids, which begin with 1: their heads, names and tensors."""
    traces: dict[int, list[Any]] = {}
    for entry in json.loads(path.read_text()):
        number = entry.pop("id")
        traces.setdefault(number, []).append(entry)
    order = {number: slot for slot, number in enumerate(sorted(traces), 1)}
    shaped = []
    for number in sorted(traces):
        head = next((entry for entry in traces[number] if "model_name" in entry), {})
        if "parent_id" in head:
            head["parent_id"] = order[head["parent_id"]]
        names = [entry["timestamps"][0]["name"] for entry in traces[number] if "timestamps" in entry]
        tensors = [entry for entry in traces[number] if "tensor" in entry]
        shaped.append({"head": head, "times": sorted(names), "tensors": tensors})
    return shaped
