"""Whatever a client sends, a codec returns a request that means something, or an error for the client: never anything
else, and never slowly.
"""

# Messages stand whole on their line.
# ruff: noqa: E501

import json
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.oracles import check_tensors, outcome
from tests.mutations import mutated, texts
from tests.properties import examples
from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.protocol import generate
from argosy_runtime.protocol.grpc import request as grpc_request
from argosy_runtime.protocol.grpc.templates import RequestDecoder
from argosy_runtime.protocol.http import request as http_request
from argosy_runtime.protocol.model_view import ModelView, TensorView

LIMIT = 1000
NUMBERS = {"name": "A", "datatype": "INT32", "shape": [2], "data": [1, 2]}
DOCUMENTS = st.sampled_from(
    [
        {"id": "i", "inputs": [NUMBERS], "parameters": {"sequence_id": 1, "priority": 2, "mine": "x"}},
        {"inputs": [{**NUMBERS, "data": [[1], [2]]}], "outputs": [{"name": "O", "parameters": {"classification": 2}}]},
        {"inputs": [{"name": "B", "datatype": "BYTES", "shape": [2], "data": ["a", "bc"]}]},
        {"inputs": [{"name": "B", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": 5}}]},
        {"inputs": [{"name": "A", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}}]},
        {
            "inputs": [
                {
                    "name": "A",
                    "datatype": "FP32",
                    "shape": [2],
                    "parameters": {
                        "shared_memory_region": "r",
                        "shared_memory_offset": 8,
                        "shared_memory_byte_size": 8,
                    },
                }
            ],
            "outputs": [{"name": "O", "parameters": {"shared_memory_region": "r", "shared_memory_byte_size": 8}}],
        },
        {"inputs": [NUMBERS], "outputs": [{"name": "O", "parameters": {"binary_data": True}}]},
    ]
)


def decode_http(body: bytes, header_length: int) -> None:
    def decode() -> Any:
        length = http_request.parse_header_length(str(header_length), len(body))
        return http_request.decode(body, length, "m", "", LIMIT) if length else None

    decoded = outcome(decode)
    if decoded is not None:
        request, encoding = decoded
        check_tensors(request, frozenset(encoding.locations.inputs) if encoding.locations else frozenset())


@examples(400)
@given(texts(mutated(DOCUMENTS)), st.binary(max_size=12), st.integers(-1, 2))
def test_documents_and_binary_tensors_over_http(text: bytes, binary: bytes, lie: int) -> None:
    decode_http(text + binary, len(text) + lie)


@given(st.binary(max_size=60), st.integers(-5, 70))
def test_any_bytes_over_http(body: bytes, header_length: int) -> None:
    decode_http(body, header_length)


@given(
    st.binary(max_size=20),
    st.sampled_from(["INT32", "BYTES", "FP16", "FP64"]),
    st.lists(st.sampled_from([-1, 1, 2, 3]), max_size=3),
)
def test_raw_bodies(body: bytes, datatype: str, shape: list[int]) -> None:
    view = ModelView("m", {"A": TensorView(datatype, tuple(shape))}, 0)
    decoded = outcome(lambda: http_request.decode_raw(body, "m", "", lambda: view, LIMIT))
    if decoded is not None:
        check_tensors(decoded[0])


GENERATE = ModelView("m", {"text": TensorView("BYTES", (-1, 1)), "n": TensorView("INT32", (-1, 2, -1))}, 8)
GENERATES = st.sampled_from(
    [
        {"id": "i", "text": "a", "n": [1, 2], "top_k": 5},
        {"text": ["a", "b"], "parameters": {"n": [1, 2, 3, 4], "stream": True}},
        {"text": "a", "outputs": ["text"], "stop": None},
    ]
)


@given(texts(mutated(GENERATES)))
def test_generate(body: bytes) -> None:
    request = outcome(lambda: generate.decode(body, "m", "", GENERATE, LIMIT))
    if request is not None:
        check_tensors(request)


def _location(region: str = "r") -> dict[str, Any]:
    sizes = {"shared_memory_offset": {"int64_param": "8"}, "shared_memory_byte_size": {"int64_param": "8"}}
    return {"shared_memory_region": {"string_param": region}, **sizes}


MESSAGES = st.sampled_from(
    [
        {"model_name": "m", "id": "i", "inputs": [{"name": "A", "datatype": "FP32", "shape": ["2"]}], "raw_input_contents": ["AAAAAAAAAAA="]},
        {"model_name": "m", "model_version": "1", "inputs": [{"name": "A", "datatype": "INT8", "shape": ["2"], "contents": {"int_contents": [1, 2]}}]},
        {"model_name": "m", "inputs": [{"name": "B", "datatype": "BYTES", "shape": ["1"]}], "raw_input_contents": ["AQAAAGE="]},
        {"model_name": "m", "inputs": [{"name": "A", "datatype": "FP32", "shape": ["2"], "parameters": _location()}], "outputs": [{"name": "O", "parameters": _location()}]},
        {"model_name": "m", "parameters": {"sequence_id": {"int64_param": "-1"}, "priority": {"uint64_param": "1"}}, "outputs": [{"name": "O", "parameters": {"classification": {"int64_param": "2"}}}]},
    ]
)  # fmt: skip


@st.composite
def grpc_messages(draw: st.DrawFn) -> bytes:
    """Draw the bytes of a ModelInferRequest that is almost right; at times cut off or with bytes changed."""
    message = pb.ModelInferRequest()
    try:
        json_format.ParseDict(draw(mutated(MESSAGES)), message)
    except (json_format.ParseError, TypeError, AttributeError, OverflowError, UnicodeError, SystemError):
        message = json_format.ParseDict(draw(MESSAGES), pb.ModelInferRequest())
    encoded = message.SerializeToString()
    match draw(st.sampled_from(["as it is", "as it is", "cut", "changed", "appended"])):
        case "cut":
            return encoded[: draw(st.integers(0, len(encoded)))]
        case "changed" if encoded:
            at = draw(st.integers(0, len(encoded) - 1))
            return encoded[:at] + draw(st.binary(min_size=1, max_size=2)) + encoded[at + 1 :]
        case "appended":
            return encoded + draw(st.binary(max_size=8))
    return encoded


def decode_grpc(decoder: RequestDecoder, data: bytes) -> Any:
    """Decode as the front end does: from a template where there is one."""
    decoded = decoder.from_template(data)
    if decoded is None:
        decoded = outcome(lambda: decoder.decode(decoder.parse(data), data))
    return decoded


@examples(400)
@given(grpc_messages())
def test_messages_over_grpc_mean_the_same_every_time(data: bytes) -> None:
    decoder = RequestDecoder()
    first, *others = [decode_grpc(decoder, data) for _ in range(4)]
    for other in others:
        assert (other is None) == (first is None)
    if first is None:
        return
    locations = first.options.locations
    check_tensors(first.request, frozenset(locations.inputs) if locations else frozenset())
    for other in others:
        assert other.options == first.options
        assert other.request.id == first.request.id
        assert other.request.parameters == first.request.parameters
        if locations and other.request.template is not None:
            # The caller gives it its data.
            continue
        assert {name: bytes(tensor.data) for name, tensor in other.request.inputs.items()} == {
            name: bytes(tensor.data) for name, tensor in first.request.inputs.items()
        }


@given(st.binary(max_size=80))
def test_any_bytes_over_grpc(data: bytes) -> None:
    try:
        message = pb.ModelInferRequest.FromString(data)
    except DecodeError:
        message = None
    decoded = decode_grpc(RequestDecoder(), data)
    if message is None:
        assert decoded is None
    else:
        plain = outcome(lambda: grpc_request.decode(message))
        assert decoded is None or plain is not None


def test_depth_and_length_cost_no_more_than_they_are() -> None:
    for body in (b"[" * 10_000, b'{"inputs":' + b"[" * 10_000 + b"]" * 10_000 + b"}", b'{"a":' * 10_000):
        assert outcome(lambda body=body: http_request.decode(body, len(body), "m", "", 1 << 20)) is None
        assert outcome(lambda body=body: generate.decode(body, "m", "", GENERATE, 1 << 20)) is None
    deep = b"[" * 10_000 + b"1" + b"]" * 10_000
    body = b'{"inputs":[{"name":"A","datatype":"INT32","shape":[1],"data":' + deep + b"}]}"
    assert outcome(lambda: http_request.decode(body, len(body), "m", "", 1 << 20)) is None
    many = json.dumps({"inputs": [{**NUMBERS, "name": str(number)} for number in range(1000)]}).encode()
    assert len(outcome(lambda: http_request.decode(many, len(many), "m", "", 1 << 20))[0].inputs) == 1000
