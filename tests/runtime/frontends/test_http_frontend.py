"""The HTTP front end over real sockets: statuses, bodies, clients, limits, disconnects."""

# Messages stand whole on their line, so that they can be searched for.
# ruff: noqa: E501

import asyncio
import base64
import gzip
import json
import logging
import socket
import zlib
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from tritonclient.utils import InferenceServerException

from argosy_runtime.errors import ServingError
from argosy_runtime.frontends.http import app as http_frontend

from .conftest import LIMIT, Running

ECHO = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1, 2], "data": [1.5, 2]}]}


@pytest.fixture
def client(running: Running) -> Iterator[httpx.Client]:
    with httpx.Client(
        base_url=f"http://127.0.0.1:{running.http}", headers={"accept-encoding": "identity"}
    ) as http_client:
        yield http_client


def test_infer_answers_flat_json(client: httpx.Client) -> None:
    nested = {"inputs": [{**ECHO["inputs"][0], "data": [[1.5, 2]]}], "id": "7"}
    reply = client.post("/v2/models/echo/infer", json=nested)
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "application/json"
    assert reply.content == (
        b'{"id":"7","model_name":"echo","model_version":"1","outputs":[{"name":"OUT","datatype":"FP32",'
        b'"shape":[1,2],"data":[1.5,2.0]}]}'
    )


def test_version_reaches_the_plane_without_zeros(client: httpx.Client, running: Running) -> None:
    assert client.post("/v2/models/echo/versions/007/infer", json=ECHO).status_code == 200
    assert running.plane.requests[0].model_version == "7"


def test_percent_encoded_names_are_decoded(client: httpx.Client) -> None:
    reply = client.get("/v2/models/my%20model%2Fx")
    assert reply.json() == {"error": "Request for unknown model: 'my model/x' is not found"}


GOOD = json.dumps(ECHO).encode()
BAD_SHAPE = b'{"inputs":[{"name":"IN","datatype":"FP32","shape":[1,3],"data":[1,2]}]}'
ERRORS: list[tuple[str, str, bytes, int, str]] = [
    ("POST", "/v2/models/echo/infer", b"{", 500, "failed to parse the request JSON buffer: Invalid value. at 1"),
    ("POST", "/v2/models/echo/infer", b"{}", 500, "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'"),
    ("POST", "/v2/models/echo/infer", BAD_SHAPE, 500, "Unable to parse 'data': Shape does not match true shape of 'data' field"),
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
    ("POST", "/v2/systemsharedmemory/register", b"", 501, "shared memory regions are not supported by this server"),
    ("POST", "/v2/cudasharedmemory/region/r/register", b"", 501, "shared memory regions are not supported by this server"),
    ("GET", "/v2/models/echo/trace/setting", b"", 501, "trace settings are not supported"),
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


def test_log_settings_change_and_are_told(client: httpx.Client, running: Running) -> None:
    everything = {
        "log_file": "",
        "log_info": True,
        "log_warning": True,
        "log_error": True,
        "log_verbose_level": 0,
        "log_format": "default",
    }
    assert client.get("/v2/logging").json() == everything
    change = {"log_info": False, "log_verbose_level": None, "log_format": "ISO8601", "no such setting": 1}
    told = client.post("/v2/logging", json=change).json()
    assert told == {**everything, "log_info": False, "log_format": "ISO8601"}
    assert list(told) == list(everything)
    assert not running.plane.log.lets_through(logging.INFO)


@pytest.mark.parametrize("kind", ["system", "cuda"])
def test_no_region_is_registered_and_all_can_be_unregistered(client: httpx.Client, kind: str) -> None:
    assert client.get(f"/v2/{kind}sharedmemory/status").json() == []
    for path in ("unregister", "region/r/unregister"):
        reply = client.post(f"/v2/{kind}sharedmemory/{path}")
        assert (reply.status_code, reply.content) == (200, b"")


def test_health(client: httpx.Client, running: Running) -> None:
    for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/echo/ready"):
        reply = client.get(path)
        assert (reply.status_code, reply.content) == (200, b"")
    running.plane.is_ready = False
    reply = client.get("/v2/health/ready")
    assert (reply.status_code, reply.content) == (400, b"")


def test_metadata_config_statistics_index(client: httpx.Client) -> None:
    assert client.get("/v2").json() == {
        "name": "argosy",
        "version": "0.1.0",
        "extensions": ["classification"],
    }
    metadata = client.get("/v2/models/echo").json()
    assert metadata["inputs"] == [{"name": "IN", "datatype": "FP32", "shape": [-1, -1]}]
    config = client.get("/v2/models/echo/versions/1/config").json()
    assert (config["name"], config["max_batch_size"], config["instance_group"]) == ("echo", 8, [])
    stats = client.get("/v2/models/echo/stats").json()["model_stats"]
    assert stats[0]["inference_count"] == 0
    assert stats[0]["inference_stats"]["queue"] == {"count": 0, "ns": 0}
    assert len(client.get("/v2/models/stats").json()["model_stats"]) > 1
    assert client.post("/v2/repository/index").json() == [
        {"name": "echo", "version": "1", "state": "READY"},
        {"name": "never"},
    ]
    assert len(client.post("/v2/repository/any/index", json={"ready": True}).json()) == 1


def test_load_and_unload(client: httpx.Client, running: Running) -> None:
    parameters = {"config": "{}", "file:1/model.onnx": base64.b64encode(b"\x00onnx").decode()}
    reply = client.post("/v2/repository/models/m/load", json={"parameters": parameters})
    assert (reply.status_code, reply.content) == (200, b"")
    assert running.plane.loaded == [("m", "{}", {"file:1/model.onnx": b"\x00onnx"})]
    client.post("/v2/repository/models/m/unload", json={"parameters": {"unload_dependents": True}})
    client.post("/v2/repository/models/m/unload")
    assert running.plane.unloaded == [("m", True), ("m", False)]


def test_raw_body_answers_binary(client: httpx.Client) -> None:
    data = np.arange(3, dtype=np.float32).tobytes()
    reply = client.post(
        "/v2/models/slow/versions/1/infer", content=b"", headers={"Inference-Header-Content-Length": "-1"}
    )
    assert reply.json()["error"] == "inference header size should be in range (0, 0), got: -1"
    client_headers = {"Inference-Header-Content-Length": "0"}
    reply = client.post("/v2/models/half/infer", content=data, headers=client_headers)
    length = int(reply.headers["inference-header-content-length"])
    assert reply.headers["content-type"] == "application/octet-stream"
    assert json.loads(reply.content[:length])["outputs"][0]["shape"] == [6]
    assert reply.content[length:] == data


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_compression_both_ways(client: httpx.Client, encoding: str, pack: Any) -> None:
    headers = {"content-encoding": encoding, "accept-encoding": f"identity;q=0.5, {encoding}"}
    reply = client.post("/v2/models/echo/infer", content=pack(GOOD), headers=headers)
    assert reply.headers["content-encoding"] == encoding
    assert reply.json()["outputs"][0]["data"] == [1.5, 2.0]


def test_unknown_encoding_names_the_known_ones(client: httpx.Client) -> None:
    reply = client.post("/v2/models/echo/infer", content=GOOD, headers={"content-encoding": "br"})
    assert (reply.status_code, reply.headers["accept-encoding"]) == (501, "gzip, deflate")
    assert reply.json() == {"error": "Unsupported compression type"}
    reply = client.post("/v2/models/text/generate", content=b"{}", headers={"content-encoding": "gzip"})
    assert reply.json()["error"] == "Unsupported content-encoding, only 'identity' is supported."


def test_limits(client: httpx.Client) -> None:
    flag = "Use --http-max-input-size to increase the limit."
    reply = client.post("/v2/models/echo/infer", content=b" " * (LIMIT + 1))
    told = f"request JSON size of {LIMIT + 1} bytes exceeds the maximum allowed input size of {LIMIT} bytes. {flag}"
    assert (reply.status_code, reply.json()["error"]) == (400, told)
    packed = gzip.compress(b" " * (LIMIT + 1))
    reply = client.post("/v2/models/echo/infer", content=packed, headers={"content-encoding": "gzip"})
    told = f"Decompressed data size exceeds the maximum allowed value of {LIMIT} bytes. {flag}"
    assert (reply.status_code, reply.json()["error"]) == (400, told)
    header = {"Inference-Header-Content-Length": "0"}
    reply = client.post("/v2/models/slow/infer", content=b"\0" * (LIMIT + 4), headers=header)
    told = (
        f"Raw input has a byte_size ({LIMIT + 4} bytes) that exceeds the maximum allowed value of {LIMIT} bytes. {flag}"
    )
    assert (reply.status_code, reply.json()["error"]) == (400, told)


def test_chunked_bodies_and_their_limit(client: httpx.Client) -> None:
    reply = client.post("/v2/models/echo/infer", content=iter([GOOD[:10], GOOD[10:]]))
    assert reply.status_code == 200
    reply = client.post("/v2/models/echo/infer", content=(b" " * (LIMIT // 4) for _ in range(5)))
    assert reply.status_code == 400


def test_binary_tensors_have_no_limit(running: Running) -> None:
    array = np.random.default_rng(0).random((1, LIMIT // 2), np.float32)
    with triton.InferenceServerClient(f"127.0.0.1:{running.http}") as client:
        sent = triton.InferInput("IN", array.shape, "FP32")
        sent.set_data_from_numpy(array)
        result = client.infer("echo", [sent])
        np.testing.assert_array_equal(result.as_numpy("OUT"), array)


def test_tritonclient(running: Running) -> None:
    with triton.InferenceServerClient(f"127.0.0.1:{running.http}") as client:
        assert client.is_server_live()
        assert client.is_server_ready()
        assert client.is_model_ready("echo")
        assert client.get_server_metadata()["name"] == "argosy"
        assert client.get_model_config("echo")["backend"] == "python"
        numbers = np.array([1, -2], np.int32)
        strings = np.array([b"\xff\x00", "é".encode()], np.object_)
        inputs = [triton.InferInput("A", [2], "INT32"), triton.InferInput("B", [2], "BYTES")]
        inputs[0].set_data_from_numpy(numbers, binary_data=False)
        inputs[1].set_data_from_numpy(strings)
        outputs = [
            triton.InferRequestedOutput("OUT_A"),
            triton.InferRequestedOutput("OUT_B", binary_data=True),
        ]
        result = client.infer(
            "any", inputs, outputs=outputs, request_id="r", sequence_id=5, sequence_start=True, priority=3,
            timeout=9, parameters={"mine": 1.5},
        )  # fmt: skip
        np.testing.assert_array_equal(result.as_numpy("OUT_A"), numbers)
        assert list(result.as_numpy("OUT_B")) == list(strings)
        assert result.get_response()["id"] == "r"
    seen = running.plane.requests[0]
    assert (seen.sequence_id, seen.sequence_start, seen.sequence_end) == (5, True, False)
    assert (seen.priority, seen.timeout_us, seen.parameters) == (3, 9, {"mine": 1.5})


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_tritonclient_compression_and_classification(running: Running, algorithm: str) -> None:
    with triton.InferenceServerClient(f"127.0.0.1:{running.http}") as client:
        sent = triton.InferInput("IN", [1, 3], "FP32")
        sent.set_data_from_numpy(np.array([[0.5, 2, 1]], np.float32))
        result = client.infer(
            "echo",
            [sent],
            outputs=[triton.InferRequestedOutput("OUT", class_count=2)],
            request_compression_algorithm=algorithm,
            response_compression_algorithm=algorithm,
        )
        assert result.as_numpy("OUT").tolist() == [[b"2.000000:1:dog", b"1.000000:2"]]


async def test_tritonclient_aio(running: Running) -> None:
    async with triton_aio.InferenceServerClient(f"127.0.0.1:{running.http}") as client:
        sent = triton_aio.InferInput("IN", [1, 2], "FP32")
        sent.set_data_from_numpy(np.array([[np.nan, 1]], np.float32), binary_data=False)
        results = await asyncio.gather(*(client.infer("echo", [sent]) for _ in range(8)))
        assert all(np.isnan(result.as_numpy("OUT")[0, 0]) for result in results)
        with pytest.raises(InferenceServerException, match="unknown model"):
            await client.get_model_metadata("none")


def test_nan_is_read_and_written_bare(client: httpx.Client) -> None:
    body = GOOD.replace(b"[1.5, 2]", b"[NaN, -Infinity]")
    reply = client.post("/v2/models/echo/infer", content=body)
    assert reply.content.endswith(b'"data":[NaN,-Infinity]}]}')


def test_generate(client: httpx.Client, running: Running) -> None:
    reply = client.post("/v2/models/text/generate", json={"text": "hi", "id": "x", "parameters": {"tokens": 3}})
    assert reply.content == b'{"OUT_text":"hi","id":"x","model_name":"text","model_version":"1"}'
    assert running.plane.requests[0].parameters == {"id": "x", "tokens": 3}
    reply = client.post("/v2/models/repeat/generate", json={"IN": 2})
    assert reply.json()["error"].startswith("generate expects model to produce exactly 1 response")
    reply = client.post("/v2/models/fails/generate", json={"IN": 2})
    assert (reply.status_code, reply.json()) == (400, {"error": "the model broke"})


def test_generate_stream(client: httpx.Client) -> None:
    reply = client.post("/v2/models/repeat/generate_stream", json={"IN": 2})
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert reply.content == (
        b'data: {"OUT":0,"model_name":"repeat","model_version":"1"}\n\n'
        b'data: {"OUT":1,"model_name":"repeat","model_version":"1"}\n\n'
    )
    reply = client.post("/v2/models/repeat/generate_stream", json={"IN": 0})
    assert (reply.status_code, reply.content) == (200, b"")
    reply = client.post("/v2/models/fails/generate_stream", json={"IN": 1})
    assert (reply.status_code, reply.content) == (400, b'data: {"error":"the model broke"}\n\n')
    reply = client.post("/v2/models/busy/generate_stream", json={"IN": 1})
    assert (reply.status_code, reply.json()) == (503, {"error": "Exceeds maximum queue size"})


@pytest.mark.parametrize("path", ["infer", "generate_stream"])
def test_hanging_up_cancels(running: Running, path: str) -> None:
    body = b'{"inputs":[{"name":"IN","datatype":"FP32","shape":[1],"data":[1]}],"IN":1}'
    if path != "infer":
        body = b'{"IN":1}'
    with socket.create_connection(("127.0.0.1", running.http)) as connection:
        head = f"POST /v2/models/slow/{path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        assert running.plane.started.wait(5)
    assert running.plane.cancelled.wait(5)


def test_hanging_up_within_the_body_harms_nothing(client: httpx.Client, running: Running) -> None:
    with socket.create_connection(("127.0.0.1", running.http)) as connection:
        connection.sendall(b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{")
    assert client.get("/v2/health/live").status_code == 200
    assert running.plane.requests == []


def exchange(port: int, sent: bytes) -> bytes:
    """Everything that comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(sent)
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))


def test_pipelined_requests_are_answered_in_order(running: Running) -> None:
    bodies = [json.dumps({**ECHO, "id": str(index)}).encode() for index in range(3)]
    sent = b"".join(
        b"POST /v2/models/echo/infer HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body) for body in bodies
    )
    back = exchange(running.http, sent + b"GET /v2/health/live HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert [back.find(b'"id":"%d"' % index) for index in range(3)] == sorted(
        back.find(b'"id":"%d"' % index) for index in range(3)
    )
    assert back.count(b"HTTP/1.1 200 OK") == 4
    assert back.endswith(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


async def test_a_draining_listener_answers_and_ends_each_connection_with_its_last_answer(running: Running) -> None:
    listener = await http_frontend.serve(running.plane, http_frontend.HttpOptions(host="127.0.0.1", port=0))
    ready = b"GET /v2/health/ready HTTP/1.1\r\n\r\n"
    stream = b"POST /v2/models/repeat/generate_stream HTTP/1.1\r\nContent-Length: 8\r\n\r\n" + b'{"IN":1}'
    kept_reader, kept = await asyncio.open_connection("127.0.0.1", listener.port)
    kept.write(ready)
    assert await kept_reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    listener.drain()
    kept.write(ready * 2)
    answers = (await kept_reader.read()).split(b"HTTP/1.1 200 OK")
    assert [b"Connection: close" in answer for answer in answers] == [False, False, True]
    for sent in (ready, stream):
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.write(sent)
        back = await reader.read()
        assert back.startswith(b"HTTP/1.1 200 OK")
        assert b"Connection: close" in back
        writer.close()
    kept.close()
    await listener.stop(1.0)


def test_http_1_0_gets_plain_streams(running: Running) -> None:
    body = b'{"IN":1}'
    head = b"POST /v2/models/repeat/generate_stream HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % len(body)
    back = exchange(running.http, head + body)
    assert b"chunked" not in back
    assert back.endswith(b'\r\n\r\ndata: {"OUT":0,"model_name":"repeat","model_version":"1"}\n\n')


@pytest.mark.parametrize("sent", [b"nonsense\r\n\r\n", b"GET /v2 HTTP/1.1\r\nA: " + b"a" * 70_000 + b"\r\n\r\n"])
def test_what_is_no_http_is_refused_and_cut(running: Running, sent: bytes) -> None:
    assert exchange(running.http, sent).startswith(b"HTTP/1.1 400 Bad Request\r\n")


def test_an_offer_to_upgrade_is_ignored(running: Running) -> None:
    head = b"POST /v2/models/echo/infer HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: %d\r\n\r\n"
    last = b"GET /v2/health/live HTTP/1.1\r\nConnection: close\r\n\r\n"
    back = exchange(running.http, head % len(GOOD) + GOOD + last)
    assert back.count(b"HTTP/1.1 200 OK\r\n") == 2
    assert b'"data":[1.5,2.0]' in back


def test_paths_in_full_with_queries_and_heads(running: Running) -> None:
    back = exchange(running.http, b"GET http://x/v2/health/live?a=b HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert back.startswith(b"HTTP/1.1 200 OK\r\n")
    back = exchange(running.http, b"HEAD /v2 HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert back.startswith(b"HTTP/1.1 405 ")
    assert back.endswith(b"\r\n\r\n")


def test_expect_continue(running: Running) -> None:
    head = b"POST /v2/models/echo/infer HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(GOOD)
    with socket.create_connection(("127.0.0.1", running.http), timeout=5) as connection:
        connection.sendall(head)
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(GOOD)
        assert connection.recv(100).startswith(b"HTTP/1.1 200 OK")


def test_restricted(running: Running) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{running.restricted_http}") as client:
        reply = client.post("/v2/models/echo/infer", json=ECHO)
        told = "This API is restricted, expecting header 'Open-Sesame'"
        assert (reply.status_code, reply.json()) == (403, {"error": told})
        assert client.get("/v2/health/live").status_code == 200
        opened = {"open-sesame": "please", "Fwd-Me": "on"}
        assert client.post("/v2/models/echo/infer", json=ECHO, headers=opened).status_code == 200
        assert running.plane.requests[0].parameters == {"fwd-me": "on"}
        reserved = {"open-sesame": "please", "triton_x": "on"}
        reply = client.post("/v2/models/echo/infer", json=ECHO, headers=reserved)
        assert reply.json()["error"] == "Header 'triton_x' is reserved for Triton usage and cannot be forwarded."


async def test_a_port_in_use_is_named_by_its_flag(running: Running) -> None:
    options = http_frontend.HttpOptions(host="127.0.0.1", port=running.http)
    with pytest.raises(ServingError, match=f"--http-port {running.http} is in use"):
        await http_frontend.serve(running.plane, options)


async def test_drain_lets_requests_finish_and_then_cancels(running: Running) -> None:
    plane = running.plane
    options = http_frontend.HttpOptions(host="127.0.0.1", port=0)
    body = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1], "data": [1]}]}

    async def ask(port: int) -> httpx.Response:
        async with httpx.AsyncClient() as client:
            return await client.post(f"http://127.0.0.1:{port}/v2/models/slow/infer", json=body, timeout=10)

    for timeout_s, status in ((5.0, 200), (0.01, 503)):
        plane.reset()
        listener = await http_frontend.serve(plane, options)
        asked = asyncio.create_task(ask(listener.port))
        assert await asyncio.to_thread(plane.started.wait, 5)
        stopping = asyncio.create_task(listener.stop(timeout_s))
        if status == 200:
            plane.released.set()
        assert (await asked).status_code == status
        await stopping


def test_metrics(running: Running) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{running.metrics}") as client:
        reply = client.get("/metrics")
        assert (reply.status_code, reply.content) == (200, b"nv_inference_count 1\n")
        assert reply.headers["content-type"] == "text/plain; charset=utf-8"
        assert client.post("/metrics").status_code == 405
        assert client.get("/other").status_code == 404
