"""Streams that are calls, and the status with which any other stream ends."""

import asyncio
import gzip
import zlib
from typing import Any

import pytest
from tests.runtime.frontends.grpc.calling import CODE, METHOD, Plane, Raw, framed

from argosy_runtime.frontends.grpc import listener as grpc_frontend


async def test_what_is_no_call(raw: Raw) -> None:
    assert (await raw.ask(b"", method="GET"))[":status"] == "405"
    assert (await raw.ask(b"", content_type="text/plain"))[":status"] == "415"


@pytest.mark.parametrize(
    ("body", "changes", "status"),
    [
        (b"", {}, CODE.UNIMPLEMENTED),
        (framed(b"") * 2, {}, CODE.UNIMPLEMENTED),
        (b"\0\0\0", {}, CODE.INTERNAL),
        (framed(b"xx")[:-1], {}, CODE.INTERNAL),
        (framed(gzip.compress(b"", mtime=0), 1), {}, CODE.INTERNAL),
        (framed(b"no gzip", 1), {"grpc_encoding": "gzip"}, CODE.INTERNAL),
        (framed(b""), {"grpc_encoding": "snappy"}, CODE.UNIMPLEMENTED),
        (framed(b""), {"grpc_timeout": "soon"}, CODE.INTERNAL),
    ],
)
async def test_bad_calls_end_with_a_status(raw: Raw, body: bytes, changes: dict[str, str], status: Any) -> None:
    assert (await raw.ask(body, **changes))["grpc-status"] == str(status.value[0])


@pytest.mark.parametrize("method", ["ModelReady", "ModelInfer"])
async def test_bytes_that_are_no_message(raw: Raw, method: str) -> None:
    answer = await raw.ask(framed(b"\xff"), path=METHOD + method)
    assert (answer["grpc-status"], answer["grpc-message"]) == ("13", "Unable to parse request")


@pytest.mark.parametrize("method", ["ModelInfer", "ModelStreamInfer"])
async def test_a_message_that_becomes_too_large_is_refused(plane: Plane, method: str) -> None:
    options = grpc_frontend.GrpcListenOptions(host="127.0.0.1", port=0, max_input_size=1 << 20)
    listener = await grpc_frontend.serve(plane, options)
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    bomb = framed(gzip.compress(bytes((1 << 20) + 1), mtime=0), 1)
    answer = await Raw(reader, writer).ask(bomb, path=METHOD + method, grpc_encoding="gzip")
    assert answer["grpc-status"] == str(CODE.RESOURCE_EXHAUSTED.value[0])
    assert "1048576 bytes" in answer["grpc-message"]
    writer.close()
    await listener.stop(0)


@pytest.mark.parametrize(
    ("body", "changes"),
    [
        (framed(b""), {"grpc_timeout": "99999999H"}),
        (framed(gzip.compress(b"", mtime=0), 1), {"grpc_encoding": "gzip"}),
        (framed(zlib.compress(b""), 1), {"grpc_encoding": "deflate"}),
        (framed(b""), {"content_type": "application/grpc+proto"}),
    ],
)
async def test_good_calls(raw: Raw, body: bytes, changes: dict[str, str]) -> None:
    assert "grpc-status" not in await raw.ask(body, **changes)
