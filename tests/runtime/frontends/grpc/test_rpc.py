"""gRPC's own forms: messages in pieces, heads, statuses."""

import base64
import gzip
import math
import struct
import tracemalloc
import urllib.parse
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.frontends.grpc.rpc.framing import (
    MessageReader,
    decompress,
    decompress_at_once,
    gzipped,
    is_one_message,
    prefix,
)
from argosy_runtime.frontends.grpc.rpc.metadata import CallHead, is_grpc
from argosy_runtime.frontends.grpc.rpc.status import RpcError, Status, percent_encoded
from argosy_runtime.frontends.inflating import OFFLOAD_BYTES
from argosy_runtime.http2.headers import request_head

LIMIT = 1 << 16
MESSAGES = st.lists(st.tuples(st.binary(max_size=60), st.booleans()), max_size=6)


def framed(message: bytes, compressed: bool, encoding: bytes) -> bytes:
    pack = {b"gzip": gzip.compress, b"deflate": zlib.compress}[encoding]
    data = pack(message) if compressed else message
    return struct.pack(">BI", compressed, len(data)) + data


@given(MESSAGES, st.sampled_from([b"gzip", b"deflate"]), st.data())
def test_messages_come_out_complete_however_they_come_in(
    messages: list[tuple[bytes, bool]], encoding: bytes, data: st.DataObject
) -> None:
    stream = b"".join(framed(message, compressed, encoding) for message, compressed in messages)
    reader, got = MessageReader(), []
    while stream:
        size = data.draw(st.integers(0, len(stream)))
        reader.add(stream[: size or 1])
        stream = stream[size or 1 :]
        while (message := reader.next()) is not None:
            got.append(decompress(message, encoding, LIMIT) if reader.compressed else message)
    assert got == [message for message, _ in messages]
    assert reader.is_empty


def test_a_message_alone_is_distinguished_from_others() -> None:
    one = prefix(3) + b"abc"
    assert is_one_message(one)
    assert not any(map(is_one_message, (b"", one[:4], one[:-1], one + b"x", b"\x01" + one[1:], one + one)))


@given(st.lists(st.binary(max_size=100), max_size=4), st.integers(1, 9))
def test_what_is_compressed_is_read_again(parts: list[bytes], level: int) -> None:
    reader = MessageReader()
    reader.add(gzipped(parts, level))
    message = reader.next()
    assert message is not None
    assert reader.compressed
    assert decompress_at_once(message, b"gzip", LIMIT) == b"".join(parts)


@pytest.mark.parametrize(("size", "taken"), [(LIMIT, True), (LIMIT + 1, False), (500 * LIMIT, False)])
def test_a_compressed_message_becomes_no_more_than_the_limit(size: int, taken: bool) -> None:
    tracemalloc.start()
    message = gzip.compress(bytes(size))
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    if taken:
        assert decompress(message, b"gzip", LIMIT) == bytes(size)
    else:
        with pytest.raises(RpcError, match="--http-max-input-size") as refused:
            decompress(message, b"gzip", LIMIT)
        assert refused.value.status is Status.RESOURCE_EXHAUSTED
    grown = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert grown < 4 * LIMIT


@pytest.mark.parametrize("encoding", [b"gzip", b"deflate"])
def test_a_compressed_message_that_is_cut_short_is_none(encoding: bytes) -> None:
    full = framed(b"some text " * 50, True, encoding)
    for cut in (1, 4, len(full) // 2):
        with pytest.raises(RpcError, match="cannot be decompressed"):
            decompress(full[5:-cut], encoding, LIMIT)


@pytest.mark.parametrize("size", [0, OFFLOAD_BYTES, OFFLOAD_BYTES + 1, 50 * OFFLOAD_BYTES])
@pytest.mark.parametrize("pack", [gzip.compress, lambda plain: gzip.compress(plain, 0)], ids=["tight", "loose"])
def test_a_thread_has_what_is_large_before_or_after(size: int, pack: Callable[[bytes], bytes]) -> None:
    message = pack(bytes(size))
    plain = decompress_at_once(message, b"gzip", 100 * OFFLOAD_BYTES)
    large = max(len(message), size) > OFFLOAD_BYTES
    assert plain == (None if large else bytes(size))


def test_a_message_beyond_tritons_limit_is_refused_by_its_length_alone() -> None:
    reader = MessageReader()
    reader.add(struct.pack(">BI", 0, 1 << 31))
    with pytest.raises(RpcError, match="larger than max") as refused:
        reader.next()
    assert refused.value.status is Status.RESOURCE_EXHAUSTED


def call_head(**fields: bytes) -> CallHead:
    pseudo = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/x")]
    return CallHead(request_head([*pseudo, *((name.replace("_", "-").encode(), v) for name, v in fields.items())]))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (b"2H", 7200),
        (b"3M", 180),
        (b"4S", 4),
        (b"5m", 0.005),
        (b"6u", 6e-6),
        (b"7n", 7e-9),
        (b"0S", 0),
        (None, math.inf),
    ],
)
def test_timeouts(text: bytes | None, seconds: float) -> None:
    head = call_head() if text is None else call_head(grpc_timeout=text)
    assert head.timeout == pytest.approx(seconds)


@pytest.mark.parametrize("text", [b"", b"1", b"S", b"123456789S", b"-1S", b"1 S", b"1s", "1²S".encode("latin-1")])
def test_what_is_no_timeout(text: bytes) -> None:
    with pytest.raises(RpcError) as raised:
        call_head(grpc_timeout=text)
    assert raised.value.status is Status.INTERNAL


def test_metadata_is_the_clients_own() -> None:
    binary = base64.b64encode(b"\x00\xff").rstrip(b"=")
    head = call_head(te=b"trailers", grpc_encoding=b"gzip", grpc_timeout=b"1S", mine=b"yes", raw_bin=binary)
    assert dict(head.metadata()) == {"mine": "yes", "raw-bin": "\x00\xff"}
    assert head.header("mine") == "yes"
    assert head.header("yours") is None


@pytest.mark.parametrize(("accepted", "is_read"), [(b"identity, gzip", True), (b"gzip", True), (b"deflate", False)])
def test_who_reads_gzip(accepted: bytes, is_read: bool) -> None:
    assert call_head(grpc_accept_encoding=accepted).accepts_gzip is is_read


def test_content_types() -> None:
    assert all(map(is_grpc, (b"application/grpc", b"application/grpc+proto", b"application/grpc; charset=utf-8")))
    assert not any(map(is_grpc, (b"", b"application/json", b"application/grpc-web")))


@given(st.text(max_size=200))
def test_messages_of_statuses_are_what_clients_decode(message: str) -> None:
    encoded = percent_encoded(message)
    assert all(0x20 <= byte < 0x7F for byte in encoded)
    desired = message.encode("utf-8", "replace").decode()
    assert urllib.parse.unquote(encoded.decode("ascii")) == desired
