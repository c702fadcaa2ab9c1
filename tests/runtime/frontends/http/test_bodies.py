"""Bodies of every form: JSON, raw, binary, compressed, in chunks; and how large they may be."""

import asyncio
import gzip
import json
import threading
import zlib
from typing import Any

import httpx
import numpy as np
import pytest
import tritonclient.http as triton
from tests.runtime.frontends.conftest import LIMIT, Running
from tests.runtime.frontends.http.asking import ECHO, GOOD
from tests.runtime.frontends.noted_zlib import Zlib

from argosy_runtime.frontends.inflating import OFFLOAD_BYTES


def test_infer_answers_flat_json(client: httpx.Client) -> None:
    nested = {"inputs": [{**ECHO["inputs"][0], "data": [[1.5, 2]]}], "id": "7"}
    reply = client.post("/v2/models/echo/infer", json=nested)
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "application/json"
    assert reply.content == (
        b'{"id":"7","model_name":"echo","model_version":"1","outputs":[{"name":"OUT","datatype":"FP32",'
        b'"shape":[1,2],"data":[1.5,2.0]}]}'
    )


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


def test_unknown_encoding_names_the_supported_ones(client: httpx.Client) -> None:
    reply = client.post("/v2/models/echo/infer", content=GOOD, headers={"content-encoding": "br"})
    assert (reply.status_code, reply.headers["accept-encoding"]) == (501, "gzip, deflate")
    assert reply.json() == {"error": "Unsupported compression type"}
    reply = client.post("/v2/models/text/generate", content=b"{}", headers={"content-encoding": "gzip"})
    assert reply.json()["error"] == "Unsupported content-encoding, only 'identity' is supported."


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
@pytest.mark.parametrize("cut", [1, 4, 10])
def test_a_compressed_body_that_is_cut_short_is_refused(
    client: httpx.Client, encoding: str, pack: Any, cut: int
) -> None:
    full = pack(json.dumps(ECHO).encode())
    reply = client.post("/v2/models/echo/infer", content=full[:-cut], headers={"content-encoding": encoding})
    assert (reply.status_code, reply.json()["error"]) == (400, "the compressed body is cut short")


async def _thread() -> int:
    return threading.get_ident()


def test_large_bodies_are_unpacked_in_threads(
    client: httpx.Client, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = Zlib(monkeypatch, asyncio.run_coroutine_threadsafe(_thread(), running.loop).result(10))
    becomes_large = gzip.compress(GOOD + b" " * 2 * OFFLOAD_BYTES)
    is_large = gzip.compress(GOOD + b" " * 2 * OFFLOAD_BYTES, 0)
    for body in (becomes_large, is_large):
        noted.made.clear()
        reply = client.post("/v2/models/echo/infer", content=body, headers={"content-encoding": "gzip"})
        assert reply.json()["outputs"][0]["data"] == [1.5, 2.0]
        assert noted.on_the_loop <= OFFLOAD_BYTES + 1
        assert noted.in_threads > 2 * OFFLOAD_BYTES


def test_limits(client: httpx.Client) -> None:
    flag = "Use --http-max-input-size to increase the limit."
    reply = client.post("/v2/models/echo/infer", content=b" " * (LIMIT + 1))
    reported = f"request JSON size of {LIMIT + 1} bytes exceeds the maximum allowed input size of {LIMIT} bytes. {flag}"
    assert (reply.status_code, reply.json()["error"]) == (400, reported)
    packed = gzip.compress(b" " * (LIMIT + 1))
    reply = client.post("/v2/models/echo/infer", content=packed, headers={"content-encoding": "gzip"})
    reported = f"Decompressed data size exceeds the maximum allowed value of {LIMIT} bytes. {flag}"
    assert (reply.status_code, reply.json()["error"]) == (400, reported)
    header = {"Inference-Header-Content-Length": "0"}
    reply = client.post("/v2/models/slow/infer", content=b"\0" * (LIMIT + 4), headers=header)
    reported = (
        f"Raw input has a byte_size ({LIMIT + 4} bytes) that exceeds the maximum allowed value of {LIMIT} bytes. {flag}"
    )
    assert (reply.status_code, reply.json()["error"]) == (400, reported)


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


def test_nan_is_read_and_written_bare(client: httpx.Client) -> None:
    body = GOOD.replace(b"[1.5, 2]", b"[NaN, -Infinity]")
    reply = client.post("/v2/models/echo/infer", content=body)
    assert reply.content.endswith(b'"data":[NaN,-Infinity]}]}')
