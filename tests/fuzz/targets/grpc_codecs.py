"""What clients send over gRPC: messages, the quick way through them, their framing, HPACK."""

from collections.abc import Iterator
from typing import Any

import hpack
from google.protobuf.message import DecodeError
from tests.fuzz.oracles import check_tensors, outcome, pieces
from tests.fuzz.seeds import grpc_messages
from tests.fuzz.target import Target
from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.frontends.grpc.rpc import framing
from argosy_runtime.frontends.grpc.rpc.status import RpcError
from argosy_runtime.http2 import encode
from argosy_runtime.http2.errors import PeerError
from argosy_runtime.http2.hpack.decoder import Decoder
from argosy_runtime.protocol.grpc.templates import Decoded, RequestDecoder
from argosy_runtime.protocol.grpc.wire import cut

_LARGE = 1 << 20


def infer(data: bytes) -> None:
    """Decode the same ModelInferRequest four times: from the third on it may be made of a template."""
    decoder = RequestDecoder()
    first, *others = [_meaning(_decode(decoder, data)) for _ in range(4)]
    assert all(other == first for other in others)


def _decode(decoder: RequestDecoder, data: bytes) -> Decoded | None:
    return decoder.from_template(data) or outcome(lambda: decoder.decode(decoder.parse(data), data))


def _meaning(decoded: Decoded | None) -> Any:
    if decoded is None:
        return None
    request, options = decoded.request, decoded.options
    placed = frozenset(options.locations.inputs) if options.locations else frozenset[str]()
    if not placed or request.template is None:
        check_tensors(request, placed)
    tensors = [] if placed else [(name, bytes(tensor.data)) for name, tensor in request.inputs.items()]
    sequence = (repr(request.sequence_id), request.sequence_start, request.sequence_end)
    return tensors, sequence, request.id, repr(request.parameters), request.priority, repr(options)


def parts(data: bytes) -> None:
    """Cut a ModelInferRequest by its fields, as protobuf reads it."""
    made = cut(data)
    if made is None:
        return
    try:
        full = pb.ModelInferRequest.FromString(data)
    except DecodeError:
        return
    assert list(full.raw_input_contents) == [bytes(raw) for raw in made.raw]
    assert full.id.encode() == made.id
    del full.raw_input_contents[:]
    full.id = ""
    rest = pb.ModelInferRequest.FromString(made.key + made.sequence)
    # Neither is equal to itself where it has a NaN.
    assert rest.SerializeToString(deterministic=True) == full.SerializeToString(deterministic=True)


def _infer_seeds() -> Iterator[bytes]:
    for _, message in grpc_messages("ModelInfer"):
        yield message.SerializeToString()


def framed(data: bytes) -> None:
    """Read messages of a stream, which come at once and in pieces. The first byte is the size of the pieces."""
    size, data = (data or b"\1")[0] or 1, data[1:]
    assert _messages([data]) == _messages(pieces(data, size))


def _messages(received: list[bytes]) -> list[tuple[bytes, bool]]:
    reader = framing.MessageReader()
    messages: list[tuple[bytes, bool]] = []
    try:
        for piece in received:
            reader.add(piece)
            reader.check()
            while (message := reader.next()) is not None:
                messages.append((message, reader.compressed))
                if reader.compressed:
                    _decompress(message)
    except RpcError as error:
        messages.append((error.message.encode(), False))
    return messages


def _decompress(message: bytes) -> None:
    for encoding in (b"gzip", b"deflate", b"identity"):
        try:
            assert len(framing.decompress(message, encoding, _LARGE)) <= _LARGE
        except RpcError as error:
            assert error.message


def _framed_seeds() -> Iterator[bytes]:
    message = framing.prefix(3) + b"abc"
    yield b"\x05" + message * 3
    yield b"\x01" + framing.gzipped([b"abc"], 6) + message
    yield b"\x07" + framing.prefix((1 << 32) - 1) + b"a"


def blocks(data: bytes) -> None:
    """Decode header blocks of one connection, each behind a byte with its size, as the reference decoder does."""
    ours, reference = Decoder(_LARGE), hpack.Decoder(max_header_list_size=_LARGE)
    at = 0
    while at < len(data):
        block = data[at + 1 : at + 1 + data[at]]
        at += 1 + data[at]
        try:
            expected = [tuple(field) for field in reference.decode(block, raw=True)]
        except hpack.HPACKError:
            expected = None
        try:
            assert ours.decode(block) == expected
        except PeerError:
            # Stricter in one point: integers of more than five bytes are refused, whatever they come to.
            assert expected is None or b"\x80\x80\x80" in block or b"\xff\x80" in block
            return


def _block_seeds() -> Iterator[bytes]:
    fields = [(b":method", b"POST"), (b":path", b"/v2"), (b"x", b"y" * 30), (b"te", b"trailers")]
    encoder = hpack.Encoder()
    coded = [encode(fields), *[encoder.encode(fields, huffman=huffman) for huffman in (True, False, True)]]
    encoder.header_table_size = 60
    coded.append(encoder.encode(fields))
    yield b"".join(bytes([len(block)]) + block for block in coded)


TARGETS = [
    Target("grpc-infer", infer, _infer_seeds),
    Target("grpc-parts", parts, _infer_seeds),
    Target("grpc-framing", framed, _framed_seeds),
    Target("hpack", blocks, _block_seeds),
]
