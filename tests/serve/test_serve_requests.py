"""Wrong requests to a served model, by hand over HTTP: a status and a word, and the server goes on. And its metrics."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.serve.conftest import CONFIG, MODEL
from tests.serve.process import Serving, start


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """Yield one server, of one model `echo`, that takes bodies of up to 100 kB."""
    folder = tmp_path_factory.mktemp("requests")
    (folder / "models" / "echo" / "1").mkdir(parents=True)
    (folder / "models" / "echo" / "1" / "model.py").write_text(MODEL.format(initialize="pass", execute="y = x"))
    (folder / "models" / "echo" / "config.pbtxt").write_text(CONFIG)
    serving = start(folder / "models", folder / "server.log", "--http-max-input-size=100000")
    try:
        yield serving.wait_until_ready()
    finally:
        serving.end()


def _tensor(**changes: Any) -> dict[str, Any]:
    return {"name": "X", "datatype": "INT32", "shape": [1], "data": [1], **changes}


INFER = "/v2/models/echo/infer"


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        (INFER, {"inputs": [_tensor(datatype="FP32", data=[1.5])]}, 400, "data-type is 'FP32'"),
        (INFER, {"inputs": [_tensor(datatype="INT33")]}, 400, "invalid datatype for input X"),
        (INFER, {"inputs": [_tensor(shape=[2], data=[1, 2])]}, 400, "unexpected shape for input 'X'"),
        (INFER, {"inputs": [_tensor(shape=[1, 1])]}, 400, "unexpected shape for input 'X'"),
        (INFER, {"inputs": [_tensor(shape=[-1])]}, 500, "Unable to parse 'shape'"),
        (INFER, {"inputs": [_tensor(data=[1, 2])]}, 500, "Shape does not match true shape of 'data' field"),
        (INFER, {"inputs": [_tensor(data=["one"])]}, 500, "Unable to parse 'data'"),
        (INFER, {"inputs": [_tensor(name="Z")]}, 400, "Z"),
        (INFER, {"inputs": []}, 400, "but got 0 inputs for model 'echo'"),
        (INFER, {"inputs": [_tensor()], "outputs": [{"name": "Q"}]}, 400, "unexpected inference output 'Q'"),
        (INFER, b"{", 500, "JSON"),
        (INFER, b"", 400, "Expected 4, got 0"),
        (INFER, b"x" * 100_001, 400, "100000"),
        ("/v2/models/nope/infer", {"inputs": [_tensor()]}, 404, "unknown model: 'nope' is not found"),
        ("/v2/models/echo/versions/7/infer", {"inputs": [_tensor()]}, 404, "'echo' version 7 is not found"),
        ("/v2/models/echo/versions/latest/infer", {"inputs": [_tensor()]}, 404, ""),
        ("/v2/no/such/path", None, 404, ""),
        ("/v2/models/echo/infer", None, 405, ""),
    ],
)
def test_a_wrong_request(server: Serving, path: str, body: Any, status: int, message: str) -> None:
    got, text = server.ask(path, body)
    assert (got, message in text.decode()) == (status, True), (got, text)
    if got not in (404, 405):
        assert list(json.loads(text)) == ["error"]
    assert server.infer("echo", 8) == (200, 8)


def test_what_is_no_http_is_refused(server: Serving) -> None:
    with socket.create_connection(("127.0.0.1", server.ports["HTTP"]), timeout=10) as connection:
        connection.sendall(b"this is not HTTP\r\n\r\n")
        assert connection.recv(1024).startswith(b"HTTP/1.1 400 ")
        while connection.recv(1024):
            pass
    assert server.infer("echo", 9) == (200, 9)


def _samples(server: Serving) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return every value by its name and labels. The parser adds `_total` to a counter's name."""
    families = list(text_string_to_metric_families(server.metrics()))
    assert all(family.documentation for family in families)
    return {
        (sample.name.removesuffix("_total"), frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def test_metrics_parse_and_count(server: Serving) -> None:
    labels = frozenset({("model", "echo"), ("version", "1")})
    before = _samples(server)
    for value in range(3):
        assert server.infer("echo", value) == (200, value)
    after = _samples(server)
    for name in ("request_success", "count", "exec_count"):
        key = (f"nv_inference_{name}", labels)
        assert after[key] - before[key] == 3, name
    for name in ("request_duration_us", "compute_infer_duration_us"):
        key = (f"nv_inference_{name}", labels)
        assert after[key] > before[key], name
    assert after["nv_inference_pending_request_count", labels] == 0


def test_failures_count_by_reason(server: Serving) -> None:
    reasons = {
        dict(labels)["reason"]
        for name, labels in _samples(server)
        if name == "nv_inference_request_failure" and ("model", "echo") in labels
    }
    assert reasons == {"REJECTED", "CANCELED", "BACKEND", "OTHER"}
