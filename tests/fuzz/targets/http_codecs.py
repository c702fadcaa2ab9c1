"""What clients send over HTTP: heads, bodies of inference, compressed ones, and whole connections."""

import gzip
import zlib
from collections.abc import Iterator

from tests.fuzz.oracles import check_tensors, outcome
from tests.fuzz.seeds import http_bytes, http_calls
from tests.fuzz.target import Target

from argosy_runtime.errors import ServingError
from argosy_runtime.frontends.http import compression
from argosy_runtime.frontends.http.wire.heads import read_head
from argosy_runtime.messages import InferRequest
from argosy_runtime.protocol import generate
from argosy_runtime.protocol.http import request as http_request
from argosy_runtime.protocol.http.response import OutputEncoding
from argosy_runtime.protocol.model_view import ModelView, TensorView

LIMIT = 1 << 16
_HEADER_LENGTH = "inference-header-content-length"
_ONE = ModelView("m", {"A": TensorView("FP32", (-1,))}, 0)
_GENERATE = ModelView("m", {"text": TensorView("BYTES", (-1, 1)), "n": TensorView("INT32", (-1, 2, -1))}, 8)


def infer(data: bytes) -> None:
    """Decode an inference request. The first line is the header with the length of its JSON, "-" for none."""
    line, _, body = data.partition(b"\n")
    header = None if line == b"-" else line.decode("latin-1")

    def decode() -> tuple[InferRequest, OutputEncoding]:
        length = http_request.parse_header_length(header, len(body))
        if length:
            return http_request.decode(body, length, "m", "", LIMIT)
        return http_request.decode_raw(body, "m", "", lambda: _ONE, LIMIT)

    decoded = outcome(decode)
    if decoded is not None:
        request, encoding = decoded
        check_tensors(request, frozenset(encoding.locations.inputs) if encoding.locations else frozenset())


def _infer_seeds() -> Iterator[bytes]:
    for call in http_calls("/infer"):
        headers = {name.lower(): value for name, value in call.headers}
        yield headers.get(_HEADER_LENGTH, "-").encode() + b"\n" + call.body


def generated(data: bytes) -> None:
    """Decode a body of generate."""
    request = outcome(lambda: generate.decode(data, "m", "", _GENERATE, LIMIT))
    if request is not None:
        check_tensors(request)


def _generate_seeds() -> Iterator[bytes]:
    for call in http_calls("/generate", "/generate_stream"):
        yield call.body.replace(b"text_input", b"text")
    yield b'{"text":["a","b"],"parameters":{"n":[1,2,3,4],"stream":true},"id":"i","outputs":["text"]}'


def head(data: bytes) -> None:
    """Parse a request's head."""
    read = read_head(data.partition(b"\r\n\r\n")[0] + b"\r\n\r\n")
    if read is not None:
        assert read.length >= 0
        assert "?" not in read.path
        compression.preferred(read.header("accept-encoding"))
        for name, value in read.fields():
            assert read.header(name.lower()) is not None
            assert "\r" not in value


def _head_seeds() -> Iterator[bytes]:
    for call in http_calls():
        yield http_bytes(call).partition(b"\r\n\r\n")[0]
    yield b"POST http://a/v2?x=1 HTTP/1.0\r\nTransfer-Encoding: gzip, chunked\r\nExpect: 100-continue"
    yield b"GET /v2 HTTP/1.1\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nAccept-Encoding: gzip;q=0.5, deflate"


def packed(data: bytes) -> None:
    """Decompress a body. The first line is its encoding."""
    encoding, _, body = data.partition(b"\n")
    name = encoding.decode("latin-1")
    try:
        plain = compression.decompress(body, name, LIMIT)
    except ServingError as error:
        assert error.message
        return
    assert len(plain) <= LIMIT
    assert compression.decompress_at_once(body, name, LIMIT) == plain


def _packed_seeds() -> Iterator[bytes]:
    for body in (b"", b'{"inputs":[]}', bytes(2 * LIMIT)):
        yield b"gzip\n" + gzip.compress(body, mtime=0)
        yield b"deflate\n" + zlib.compress(body)
    yield b"br\nabc"


TARGETS = [
    Target("http-heads", head, _head_seeds),
    Target("http-infer", infer, _infer_seeds),
    Target("http-generate", generated, _generate_seeds),
    Target("http-compressed", packed, _packed_seeds),
]
