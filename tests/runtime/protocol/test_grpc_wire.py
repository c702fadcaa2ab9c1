"""The quick way through gRPC messages says what the ordinary one says, or nothing."""

import contextlib

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from tests.properties import examples
from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.errors import ServingError, internal
from argosy_runtime.messages import InferRequest, InferResponse, ResponseTemplate
from argosy_runtime.protocol.grpc import response as grpc_response
from argosy_runtime.protocol.grpc.response import ResponseEncoder
from argosy_runtime.protocol.grpc.templates import RequestDecoder
from argosy_runtime.protocol.grpc.wire import Cut, cut, varint
from argosy_runtime.tensors import Tensor, TensorSpec

SIZES = {"FP32": 4, "INT64": 8, "UINT8": 1, "BOOL": 1, "FP16": 2}
NAMES = st.text(max_size=8)


@st.composite
def parameters(draw: st.DrawFn) -> dict[str, pb.InferParameter]:
    made = {}
    for name in draw(
        st.lists(st.sampled_from(["a", "b", "sequence_id", "priority", "triton_x", "timeout"]), max_size=2)
    ):
        kind = draw(st.sampled_from(["int64_param", "bool_param", "string_param", "double_param"]))
        value = {"int64_param": 3, "bool_param": True, "string_param": "s", "double_param": 0.5}[kind]
        made[name] = pb.InferParameter(**{kind: value})
    return made


@st.composite
def requests(draw: st.DrawFn) -> pb.ModelInferRequest:
    request = pb.ModelInferRequest(model_name=draw(NAMES), model_version=draw(st.sampled_from(["", "1", "01", "x"])))
    for name, value in draw(parameters()).items():
        request.parameters[name].CopyFrom(value)
    for number in range(draw(st.integers(0, 3))):
        datatype = draw(st.sampled_from([*SIZES, "BYTES", "NONE"]))
        shape = draw(st.lists(st.integers(-1, 3), max_size=2))
        item = request.inputs.add(name=draw(st.sampled_from(["x", f"t{number}"])), datatype=datatype, shape=shape)
        if draw(st.integers(0, 9)) == 0:
            item.contents.fp32_contents.append(1.0)
    for name in draw(st.lists(NAMES, max_size=2)):
        output = request.outputs.add(name=name)
        if draw(st.booleans()):
            output.parameters["classification"].int64_param = draw(st.integers(0, 2))
    return request


@st.composite
def contents(draw: st.DrawFn, request: pb.ModelInferRequest) -> list[bytes]:
    raw = []
    for item in request.inputs:
        size = SIZES.get(item.datatype, 4)
        for dimension in item.shape:
            size *= max(dimension, 0)
        raw.append(
            draw(st.binary(min_size=size, max_size=size)) if draw(st.integers(0, 9)) else draw(st.binary(max_size=9))
        )
    return raw[: draw(st.sampled_from([None, None, None, 1]))] + draw(st.sampled_from([[], [], [], [b"more"]]))


SEQUENCE = ("sequence_id", "sequence_start", "sequence_end")


@st.composite
def sequence(draw: st.DrawFn) -> dict[str, pb.InferParameter]:
    """Draw the parameters of a sequence, now and then of a wrong type."""
    made = {}
    for name in draw(st.lists(st.sampled_from(SEQUENCE), unique=True)):
        made[name] = draw(
            st.sampled_from([pb.InferParameter(bool_param=value) for value in (False, True)])
            if name != "sequence_id"
            else st.builds(pb.InferParameter, int64_param=st.integers(-(2**63), 2**63 - 1))
            | st.builds(pb.InferParameter, string_param=NAMES)
            | st.just(pb.InferParameter(double_param=0.5))
        )
    return made


def ordinary(message: bytes) -> object:
    """Return what the ordinary decoder makes of a message: the full request, or its error."""
    decoder = RequestDecoder()
    try:
        decoded = decoder.decode(decoder.parse(message), message)
    except ServingError as error:
        return error.kind, error.message
    return fields(decoded.request), decoded.options


def fields(request: InferRequest) -> object:
    tensors = [(t.name, t.datatype, t.shape, bytes(t.data)) for t in request.inputs.values()]
    sequence = (request.sequence_id, request.sequence_start, request.sequence_end)
    rest = (request.model_name, request.model_version, request.id, request.requested_outputs, request.parameters)
    return tensors, sequence, rest, request.priority, request.timeout_us


@given(st.data())
@examples(150)
def test_a_request_like_earlier_ones_is_what_the_ordinary_way_says(data: st.DataObject) -> None:
    """Requests alike, with ids, sequences and data of their own; whatever earlier ones taught, the others are right."""
    request = data.draw(requests())
    in_sequences = data.draw(st.booleans())
    decoder = RequestDecoder()
    for _ in range(4 if in_sequences else 3):
        alike = pb.ModelInferRequest()
        alike.CopyFrom(request)
        alike.id = data.draw(NAMES)
        for name, value in (data.draw(sequence()) if in_sequences else {}).items():
            alike.parameters[name].CopyFrom(value)
        alike.raw_input_contents.extend(data.draw(contents(request)))
        message = alike.SerializeToString(deterministic=True)
        templated = decoder.from_template(b"12345" + message, 5)
        if templated is not None:
            assert (fields(templated.request), templated.options) == ordinary(message)
            continue
        with contextlib.suppress(ServingError):
            decoder.decode(decoder.parse(message), message)


def is_sound(parts: Cut) -> bool:
    """Return whether key and sequence are messages and the id is text."""
    try:
        parts.id.decode()
        pb.ModelInferRequest.FromString(parts.key)
        pb.ModelInferRequest.FromString(parts.sequence)
    except (DecodeError, UnicodeDecodeError):
        return False
    return True


@given(st.binary(max_size=60) | requests().map(lambda request: request.SerializeToString()), st.binary(max_size=30))
@examples(150)
def test_what_is_cut_is_what_protobuf_reads(message: bytes, more: bytes) -> None:
    message += more
    parts = cut(message)
    if parts is None:
        return
    try:
        full = pb.ModelInferRequest.FromString(message)
    except DecodeError:
        # The key is decoded before it is trusted; the id and the contents need nothing but their lengths.
        assert not is_sound(parts)
        return
    assert list(full.raw_input_contents) == [bytes(raw) for raw in parts.raw]
    assert full.id.encode() == parts.id
    del full.raw_input_contents[:]
    full.id = ""
    assert pb.ModelInferRequest.FromString(parts.key + parts.sequence) == full


def request_of(size: int, request_id: str = "", **parameters: pb.InferParameter) -> bytes:
    request = pb.ModelInferRequest(model_name="m", id=request_id, parameters=parameters)
    request.inputs.add(name="x", datatype="UINT8", shape=[size])
    request.raw_input_contents.append(bytes(size))
    return bytes(request.SerializeToString())


def test_the_third_of_a_kind_is_looked_up() -> None:
    decoder = RequestDecoder()
    for _ in range(2):
        message = request_of(100, "a")
        assert decoder.from_template(message) is None
        decoder.decode(decoder.parse(message), message)
    third, fourth = decoder.from_template(request_of(100, "b")), decoder.from_template(request_of(100))
    assert third is not None
    assert fourth is not None
    assert (third.request.id, fourth.request.id) == ("b", "")
    assert third.request.template is not None
    assert third.request.template is fourth.request.template


def step(identifier: int | str, start: bool = False, end: bool = False) -> bytes:
    kind = "string_param" if isinstance(identifier, str) else "int64_param"
    flags = {"sequence_start": pb.InferParameter(bool_param=start), "sequence_end": pb.InferParameter(bool_param=end)}
    return request_of(100, sequence_id=pb.InferParameter(**{kind: identifier}), **flags)


def test_requests_of_all_sequences_have_one_template() -> None:
    decoder = RequestDecoder()
    for identifier in (1, "one"):
        message = step(identifier, start=True)
        assert decoder.from_template(message) is None
        decoder.decode(decoder.parse(message), message)
    looked_up = [decoder.from_template(message) for message in (step(2, end=True), step("two"), request_of(100))]
    assert [(one.request.sequence_id, one.request.sequence_end) for one in looked_up if one] == [
        (2, True),
        ("two", False),
        (0, False),
    ]
    assert len({one.request.template for one in looked_up if one}) == 1


@pytest.mark.parametrize("more", [b"\x0a\x08priority\x12\x02\x10\x01", b"\xff"])
def test_what_is_more_than_a_sequence_is_decoded(more: bytes) -> None:
    """A parameter with a second name, or a broken one."""
    decoder = RequestDecoder()
    for message in (step(1), step(2)):
        decoder.decode(decoder.parse(message), message)
    entry = b"\x0a\x0bsequence_id\x12\x02\x10\x03" + more
    assert decoder.from_template(b"\x22" + bytes([len(entry)]) + entry + request_of(100)) is None
    assert decoder.from_template(step(3)) is not None


def test_a_part_of_a_sequence_that_is_written_in_another_way_leaves_no_template() -> None:
    decoder = RequestDecoder()
    value_first = b"\x12\x02\x08\x01\x0a\x0esequence_start"
    for identifier in (1, 2, 3):
        message = b"\x22" + bytes([len(value_first)]) + value_first + step(identifier)
        assert decoder.from_template(message) is None
        decoder.decode(decoder.parse(message), message)


def test_what_is_recorded_of_requests_is_bounded() -> None:
    decoder = RequestDecoder()
    for size in range(3000):
        for _ in range(2):
            message = request_of(size)
            decoder.decode(decoder.parse(message), message)
    assert len(decoder._templates) <= 1024
    assert len(decoder._seen) <= 1024


def test_large_contents_are_not_copied() -> None:
    parts = cut(request_of(1 << 16))
    assert parts is not None
    assert isinstance(parts.raw[0], memoryview)


@given(st.integers(0, 1 << 40))
def test_varint(value: int) -> None:
    parameter = pb.InferParameter(uint64_param=value)
    assert parameter.SerializeToString()[1:] == varint(value)


SPECS = st.lists(
    st.builds(TensorSpec, NAMES, st.just("UINT8"), st.lists(st.integers(0, 3), max_size=2).map(tuple)), max_size=3
)
ANSWERS = st.dictionaries(st.sampled_from(["p", "q"]), st.sampled_from([1, True, "s", 0.5]))


@given(SPECS, ANSWERS, NAMES, st.booleans(), st.booleans())
@examples(100)
def test_responses_put_together_are_what_protobuf_makes(
    specs: list[TensorSpec], answers: dict[str, object], request_id: str, final: bool, templated: bool
) -> None:
    raw = [bytes(range(spec.size)) for spec in specs]
    if templated:
        response = ResponseTemplate(specs, answers).response(raw, final)
        response.model_name, response.model_version, response.id = "m", "1", request_id
    else:
        arrays = [np.frombuffer(data, np.uint8).reshape(spec.shape) for spec, data in zip(specs, raw, strict=True)]
        outputs = [Tensor(spec.name, spec.datatype, array) for spec, array in zip(specs, arrays, strict=True)]
        response = InferResponse("m", "1", request_id, outputs, answers, None, final)
    request, encoder = InferRequest("m", {}, "", request_id), ResponseEncoder()
    for _ in range(2):
        one = pb.ModelInferResponse.FromString(b"".join(encoder.infer(response, {}, _unasked)))
        assert one == grpc_response.encode(response, {}, _unasked)
        streamed = pb.ModelStreamInferResponse.FromString(b"".join(encoder.stream(request, response, {}, _unasked)))
        assert streamed == grpc_response.encode_stream(request, response, {}, _unasked)


def test_errors_in_a_stream_are_encoded_the_ordinary_way() -> None:
    request = InferRequest("m", {}, "", "r")
    response = InferResponse("m", "1", "r", error=internal("broken"))
    parts = ResponseEncoder().stream(request, response, {}, _unasked)
    assert pb.ModelStreamInferResponse.FromString(b"".join(parts)).error_message == "broken"


def _unasked() -> object:
    raise AssertionError("the model was asked for")
