"""HPACK against the reference decoder and encoder, and what no decoder may take."""

import hpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.properties import examples

from argosy_runtime.http2.errors import ErrorCode, PeerError
from argosy_runtime.http2.hpack.decoder import Decoder
from argosy_runtime.http2.hpack.encoder import encode
from argosy_runtime.http2.hpack.huffman import decode as huffman_decode

NAMES = st.one_of(
    st.sampled_from([b"x", b":path", b":method", b"content-type", b"te"]),
    st.binary(min_size=1, max_size=40).map(bytes.lower),
)
VALUES = st.one_of(st.sampled_from([b"", b"POST", b"GET", b"trailers", b"application/grpc"]), st.binary(max_size=300))
FIELDS = st.lists(st.tuples(NAMES, VALUES), max_size=12)
LARGE = 1 << 20


@given(st.lists(st.tuples(FIELDS, st.booleans(), st.sampled_from([None, 0, 60, 300, 4096])), max_size=12))
@examples(150)
def test_blocks_of_the_reference_encoder_are_decoded(blocks: list[tuple[list[tuple[bytes, bytes]], bool, int]]) -> None:
    encoder, decoder = hpack.Encoder(), Decoder(LARGE)
    for fields, huffman, size in blocks:
        if size is not None:
            encoder.header_table_size = size
        assert decoder.decode(encoder.encode(fields, huffman=huffman)) == fields


@given(FIELDS)
@examples(100)
def test_the_reference_decoder_reads_our_blocks(fields: list[tuple[bytes, bytes]]) -> None:
    decoder = hpack.Decoder(max_header_list_size=LARGE)
    block = encode(fields)
    for _ in range(2):
        assert [tuple(field) for field in decoder.decode(block, raw=True)] == fields


@given(st.binary(max_size=40))
@example(b"\xff\xff\xff\xff\xff\xff\x0f")
@example(b"\x80")
@examples(300)
def test_any_bytes_are_decoded_as_the_reference_does_or_refused(block: bytes) -> None:
    try:
        expected = [tuple(field) for field in hpack.Decoder().decode(block, raw=True)]
    except hpack.HPACKError:
        expected = None
    try:
        assert Decoder(LARGE).decode(block) == expected
    except PeerError:
        # Stricter in one point: integers of more than five bytes are refused, whatever they come to.
        assert expected is None or b"\x80\x80\x80" in block or b"\xff\x80" in block


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (b"\x80", "no header field of index 0"),
        (b"\xbe", "no header field of index 62"),
        (b"\x82\x20", "behind a field"),
        (b"\x3f\xe2\x1f", "larger than allowed"),
        (b"\x00\x05a", "cut short"),
        (b"\x7f\xff\xff\xff\xff\xff\x7f\x00", "integer too large"),
        (b"\x00\x81\xff\x00", "padding"),
        (b"\x00\x84\xff\xff\xff\xff\x00", "the end of a string inside it"),
    ],
)
def test_bad_blocks_end_the_connection(block: bytes, message: str) -> None:
    with pytest.raises(PeerError, match=message) as raised:
        Decoder(LARGE).decode(block)
    assert raised.value.code is ErrorCode.COMPRESSION_ERROR


def test_a_header_list_is_bounded_however_small_its_block_is() -> None:
    large = hpack.Encoder().encode([(b"x", b"y" * 4000)])
    decoder = Decoder(64 << 10)
    with pytest.raises(PeerError, match="header list larger"):
        decoder.decode(large + b"\xbe" * 100)


def test_the_examples_of_the_standard() -> None:
    """RFC 7541, appendix C.4: Huffman, and a table that grows."""
    decoder = Decoder(LARGE)
    first = bytes.fromhex("828684418cf1e3c2e5f23a6ba0ab90f4ff")
    assert decoder.decode(first)[-1] == (b":authority", b"www.example.com")
    assert decoder.decode(bytes.fromhex("828684be5886a8eb10649cbf"))[-2:] == [
        (b":authority", b"www.example.com"),
        (b"cache-control", b"no-cache"),
    ]
    assert huffman_decode(bytes.fromhex("9d29ad171863c78f0b97c8e9ae82ae43d3")) == b"https://www.example.com"
