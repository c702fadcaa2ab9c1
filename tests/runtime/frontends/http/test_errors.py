"""Refused requests: their statuses and messages."""

# Messages stand whole on their line, so that they can be searched for.
# ruff: noqa: E501

import httpx
import pytest
from tests.runtime.frontends.conftest import Running
from tests.runtime.frontends.http.asking import ECHO, GOOD

BAD_SHAPE = b'{"inputs":[{"name":"IN","datatype":"FP32","shape":[1,3],"data":[1,2]}]}'
ERRORS: list[tuple[str, str, bytes, int, str]] = [
    ("POST", "/v2/models/echo/infer", b"{", 500, "failed to parse the request JSON buffer: Invalid value. at 1"),
    ("POST", "/v2/models/echo/infer", b"{}", 500, "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'"),
    ("POST", "/v2/models/echo/infer", BAD_SHAPE, 500, "Failed to parse 'data' field: shape does not match true shape"),
    ("POST", "/v2/models/none/infer", GOOD, 404, "Request for unknown model: 'none' is not found"),
    ("POST", "/v2/models/none/infer", b"{", 404, "Request for unknown model: 'none' is not found"),
    ("POST", "/v2/models/fails/infer", GOOD, 500, "the model broke"),
    ("POST", "/v2/models/busy/infer", GOOD, 503, "Exceeds maximum queue size"),
    ("POST", "/v2/models/repeat/infer", GOOD, 501, "HTTP end point doesn't support models with decoupled transaction policy"),
    ("GET", "/v2/models/echo/infer", b"", 405, "Method Not Allowed"),
    ("POST", "/v2", b"", 405, "Method Not Allowed"),
    ("POST", "/v2/health/live", b"", 405, "Method Not Allowed"),
    ("GET", "/v2/repository/index", b"", 405, "Method Not Allowed"),
    ("GET", "/", b"", 404, "Not Found"),
    ("GET", "/v2/", b"", 404, "Not Found"),
    ("GET", "/v2/health", b"", 404, "Not Found"),
    ("GET", "/v2/models/", b"", 404, "Not Found"),
    ("GET", "/v2/models/echo/versions/x/ready", b"", 404, "Not Found"),
    ("GET", "/v2/models/echo/versions/1/trace/setting", b"", 404, "Not Found"),
    ("GET", "/v2/models/echo/versions/9/ready", b"", 400, "Model version not ready"),
    ("GET", "/v2/models/none/ready", b"", 400, "Model version not ready"),
    ("POST", "/v2/repository/index", b'{"ready":1}', 400, "Invalid value for 'ready': expected a boolean"),
    ("POST", "/v2/repository/index", b"[" * 5000, 500, "failed to parse the request JSON buffer: Invalid value."),
    ("POST", "/v2/repository/repo/models/m/load", b"", 501, "'repository_name' specification is not supported"),
    ("POST", "/v2/repository/models/bad/load", b"", 400, "failed to load 'bad'"),
    ("POST", "/v2/repository/models/m/load", b'{"parameters":{"x":"y"}}', 500, "unexpected error on creating Triton parameter"),
    ("POST", "/v2/repository/models/m/load", b'{"parameters":{"config":{}}}', 500, "attempt to access JSON non-string as string"),
    ("POST", "/v2/repository/models/m/unload", b'{"parameters":{"unload_dependents":1}}', 500, "Unable to parse 'unload_dependents': attempt to access JSON non-boolean as boolean"),
    ("GET", "/v2/systemsharedmemory/region/r/status", b"", 404, "Unable to find system shared memory region: 'r'"),
    ("GET", "/v2/cudasharedmemory/region/r/status", b"", 404, "Unable to find cuda shared memory region: 'r'"),
    ("POST", "/v2/systemsharedmemory/register", b"", 501, "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable."),
    ("POST", "/v2/cudasharedmemory/region/r/register", b"", 501, "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable."),
    ("POST", "/v2/trace/setting", b'{"trace_file":"x"}', 501, "trace file location can not be updated through network protocol"),
    ("POST", "/v2/trace/setting", b'{"trace_rate":5}', 500, "attempt to access JSON non-string as string"),
    ("POST", "/v2/models/echo/trace/setting", b'{"trace_level":["TENSORS"]}', 400, "Attempting to set invalid trace setting :trace file name is not given"),
    ("POST", "/v2/logging", b'{"log_file":"x"}', 501, "log file location can not be updated through network protocol"),
    ("POST", "/v2/logging", b'{"log_info":5}', 500, "attempt to access JSON non-boolean as boolean"),
    ("POST", "/v2/logging", b'{"log_verbose_level":-1}', 500, "attempt to access JSON non-unsigned-integer as unsigned-integer"),
    ("POST", "/v2/logging", b'{"log_format":"x"}', 400, "invalid argument for log_format, got: x"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body", "status", "message"), ERRORS)
def test_errors(client: httpx.Client, method: str, path: str, body: bytes, status: int, message: str) -> None:
    reply = client.request(method, path, content=body)
    assert reply.status_code == status
    assert set(reply.json()) == {"error"}
    assert reply.json()["error"].startswith(message)
    assert reply.headers["content-type"] == "application/json"


def test_restricted(running: Running) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{running.restricted_http}") as client:
        reply = client.post("/v2/models/echo/infer", json=ECHO)
        reported = "This API is restricted, expecting header 'Open-Sesame'"
        assert (reply.status_code, reply.json()) == (403, {"error": reported})
        assert client.get("/v2/health/live").status_code == 200
        opened = {"open-sesame": "please", "Fwd-Me": "on"}
        assert client.post("/v2/models/echo/infer", json=ECHO, headers=opened).status_code == 200
        assert running.plane.requests[0].parameters == {"Fwd-Me": "on"}
        reserved = {"open-sesame": "please", "triton_x": "on"}
        reply = client.post("/v2/models/echo/infer", json=ECHO, headers=reserved)
        assert reply.json()["error"] == "Header 'triton_x' is reserved for Triton usage and cannot be forwarded."
