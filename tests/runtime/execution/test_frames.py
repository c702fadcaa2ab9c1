"""Frames between the server and its workers."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from argosy_runtime.errors import ErrorKind, FailureReason, ServingError
from argosy_runtime.execution.process.wire.frames import EXECUTE, RESPONSES, Frame, FrameCutter, FrameError, FrameWriter
from argosy_runtime.execution.process.wire.requests import RequestReader, RequestWriter
from argosy_runtime.execution.process.wire.responses import ResponseReader, ResponseWriter
from argosy_runtime.execution.process.wire.templates import CAPACITY
from argosy_runtime.messages import InferRequest, InferResponse, RequestTemplate, Tensor
from argosy_runtime.modelconfig.datatypes import numpy_dtype

# The first text that is drawn takes seconds.
slow_start = settings(suppress_health_check=[HealthCheck.too_slow])
DATATYPES = ["BOOL", "UINT8", "INT64", "FP16", "BF16", "FP64"]
PARAMETERS = st.dictionaries(
    st.text(max_size=5),
    st.one_of(st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False), st.text(max_size=9)),
    max_size=2,
)


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    """Draw tensors of any type and shape, BYTES too."""
    shape = draw(arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=9))
    datatype = draw(st.sampled_from([*DATATYPES, "BYTES"]))
    if datatype == "BYTES":
        array = np.empty(shape, np.object_)
        array[...] = draw(st.binary(max_size=30))
    else:
        array = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape)).astype(numpy_dtype(datatype))
    return Tensor(draw(st.sampled_from("AB")), datatype, array)


@st.composite
def requests(draw: st.DrawFn) -> InferRequest:
    """Draw requests, some of which are alike."""
    inputs = {tensor.name: tensor for tensor in draw(st.lists(tensors(), max_size=2))}
    names = tuple(draw(st.lists(st.sampled_from("XY"), max_size=2)))
    request = InferRequest("m", inputs, draw(st.sampled_from(["", "3"])), draw(st.text(max_size=9)), names)
    request.parameters = draw(PARAMETERS)
    request.sequence_id = draw(st.one_of(st.integers(0, 2**64 - 1), st.text(max_size=3)))
    request.sequence_start, request.sequence_end = draw(st.booleans()), draw(st.booleans())
    request.priority, request.timeout_us = draw(st.integers(0, 2**64 - 1)), draw(st.integers(0, 2**64 - 1))
    return request


@st.composite
def responses(draw: st.DrawFn) -> InferResponse:
    """Draw responses, errors and final flags alone."""
    if draw(st.integers(0, 3)) == 0:
        return InferResponse()
    if draw(st.integers(0, 3)) == 0:
        reason = draw(st.sampled_from([None, *FailureReason]))
        error = ServingError(draw(st.sampled_from(ErrorKind)), draw(st.text(max_size=20)), reason)
        return InferResponse("", "", error=error)
    return InferResponse("", "", outputs=draw(st.lists(tensors(), max_size=2)), parameters=draw(PARAMETERS))


def fields(request: InferRequest) -> tuple[object, ...]:
    """Return all of it; parameters with their types."""
    sequence = (request.sequence_id, request.sequence_start, request.sequence_end)
    about = (request.model_name, request.model_version, request.id, request.requested_outputs, repr(request.parameters))
    return (*about, *sequence, request.priority, request.timeout_us, list(request.inputs.values()))


def received(stream: bytes, size: int, writable: bool = True) -> list[Frame]:
    """Return every frame of a stream that comes in pieces of `size` bytes."""
    cutter = FrameCutter(writable)
    frames = []
    while stream:
        window = cutter.buffer()
        count = min(size, len(window), len(stream))
        window[:count] = stream[:count]
        stream = stream[count:]
        frames += cutter.came(count)
    return frames


@slow_start
@given(batches=st.lists(st.lists(requests(), max_size=3), max_size=4), size=st.integers(1, 4000))
def test_requests_come_out_as_they_went_in_however_the_bytes_are_cut(batches, size):
    writer, reader = RequestWriter(), RequestReader()
    stream = b""
    for number, batch in enumerate(batches):
        outgoing = FrameWriter()
        for request in batch:
            writer.add(outgoing, request)
        stream += b"".join(outgoing.chunks(EXECUTE, number))
    frames = received(stream, size)
    assert [(frame.kind, frame.subject) for frame in frames] == [(EXECUTE, number) for number in range(len(batches))]
    for frame, batch in zip(frames, batches, strict=True):
        got = [reader.read(frame) for _ in batch]
        assert list(map(fields, got)) == list(map(fields, batch))
        assert not frame.has_more()


@slow_start
@given(batches=st.lists(st.lists(responses(), max_size=3), max_size=4), size=st.integers(1, 4000))
def test_responses_come_out_as_they_went_in(batches, size):
    writer, reader = ResponseWriter(), ResponseReader()
    stream = b""
    for number, batch in enumerate(batches):
        frame = FrameWriter()
        for response in batch:
            writer.add(frame, response)
        stream += b"".join(frame.chunks(RESPONSES, number))
    for frame, batch in zip(received(stream, size, writable=False), batches, strict=True):
        for sent in batch:
            got = reader.read(frame, True)
            assert (got.outputs, repr(got.parameters)) == (sent.outputs, repr(sent.parameters))
            assert repr(got.error) == repr(sent.error)
            assert got.is_empty is sent.is_empty
            assert got.error is None or (got.error.kind, got.error.reason) == (sent.error.kind, sent.error.reason)


def frame_of(*batch: InferRequest, writer: RequestWriter | None = None) -> bytes:
    """Return one frame of requests."""
    frame, writer = FrameWriter(), writer or RequestWriter()
    for request in batch:
        writer.add(frame, request)
    return b"".join(frame.chunks(EXECUTE, 0))


def ask(array: np.ndarray, name: str = "m", **more: object) -> InferRequest:
    """Return a request of one input."""
    return InferRequest(name, {"A": Tensor("A", "FP32", array)}, **more)


@pytest.mark.parametrize("count", [1, 16, 100_000])
def test_arrays_lie_aligned_in_their_frame_and_may_be_written_to(count):
    array = np.arange(count, dtype=np.float32)
    (frame,) = received(frame_of(ask(array, id="123"), ask(array + 1)), 70_000)
    reader = RequestReader()
    for plus in (0, 1):
        got = reader.read(frame).inputs["A"].array
        assert got.ctypes.data % 16 == 0
        got[0] += 7
        np.testing.assert_array_equal(got[1:], array[1:] + plus)
        assert got[0] == 7 + plus


def test_large_arrays_are_not_copied_on_their_way_out():
    array = np.arange(10_000, dtype=np.float32)
    frame = FrameWriter()
    RequestWriter().add(frame, ask(array))
    assert any(np.shares_memory(np.frombuffer(chunk, np.uint8), array) for chunk in frame.chunks(EXECUTE, 0) if chunk)


def test_what_requests_have_in_common_is_sent_once():
    writer, array = RequestWriter(), np.ones(4, np.float32)
    first, second = (len(frame_of(ask(array, id=name), writer=writer)) for name in "ab")
    assert second == 32 + 3 * 8 + 1 + 7 + 16 < first
    template = RequestTemplate(ask(array))
    templated = [len(frame_of(template.request("c", [array.tobytes()]), writer=writer)) for _ in range(2)]
    assert templated == [first, second], "another template, though it says the same"


def test_requests_of_all_sequences_have_one_template():
    writer, reader, array = RequestWriter(), RequestReader(), np.ones(4, np.float32)
    template = RequestTemplate(ask(array))
    got = []
    for identifier in (7, 8, "nine", -1, 2**64 - 1):
        request = template.request("c", [array.tobytes()])
        request.join(identifier, identifier == 7, identifier == 8)
        for one in (request, ask(array, sequence_id=identifier, sequence_start=identifier == 7)):
            (frame,) = received(frame_of(one, writer=writer), 9999)
            got.append(reader.read(frame))
    assert [request.sequence_id for request in got] == [7, 7, 8, 8, "nine", "nine", -1, -1, 2**64 - 1, 2**64 - 1]
    assert [request.sequence_start for request in got] == [True] * 2 + [False] * 8
    assert [request.sequence_end for request in got[:4]] == [False, False, True, False]
    assert len(reader._templates) == 2


def test_the_oldest_plan_is_forgotten_on_both_sides():
    writer, reader, array = RequestWriter(), RequestReader(), np.ones(1, np.float32)
    names = [f"m{number}" for number in range(CAPACITY + 10)]
    for name in [*names, *names[:20], *names[-1:]]:
        (frame,) = received(frame_of(ask(array, name), writer=writer), 9999)
        assert reader.read(frame).model_name == name
    (frame,) = received(frame_of(*[ask(array, name) for name in names], writer=writer), 9999)
    assert [reader.read(frame).model_name for _ in names] == names
    assert len(reader._templates) == CAPACITY


def test_a_response_that_cannot_be_written_is_an_error_and_harms_no_other():
    writer, reader = ResponseWriter(), ResponseReader()
    bad = np.empty(1, np.object_)
    bad[0] = "\ud800"
    good = Tensor("A", "FP32", np.ones(1, np.float32))
    frame = FrameWriter()
    for tensor in (good, Tensor("B", "BYTES", bad), good):
        writer.add(frame, InferResponse("", "", outputs=[tensor]))
    (got,) = received(b"".join(frame.chunks(RESPONSES, 0)), 9999)
    first, second, third = (reader.read(got, True) for _ in range(3))
    assert first.outputs == third.outputs == [good]
    assert "cannot be sent" in second.error.message


def read_everything(data: bytes) -> None:
    """Read a stream as both ends do."""
    for frame in received(data, 9999, writable=False):
        requests_, responses_ = RequestReader(), ResponseReader()
        while frame.has_more():
            requests_.read(frame)
        frame = Frame(frame._data)
        while frame.has_more():
            responses_.read(frame, True)


@given(st.data())
def test_whatever_comes_is_read_or_refused(data):
    """One byte changed, or anything at all: never an exception but FrameError, never memory that is not there."""
    response = InferResponse("", "", outputs=[Tensor("A", "FP32", np.ones(3, np.float32))], parameters={"p": 1})
    strings = InferResponse("", "", outputs=[Tensor("S", "BYTES", np.array([b"abc", b""], np.object_))])
    frame, writer = FrameWriter(), ResponseWriter()
    for item in (response, strings, InferResponse("", "", error=ServingError(ErrorKind.INTERNAL, "x"))):
        writer.add(frame, item)
    good = bytearray(b"".join(frame.chunks(RESPONSES, 1)))
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    for stream in (bytes(good), data.draw(st.binary(max_size=300))):
        with suppress(FrameError):
            read_everything(stream)


@pytest.mark.parametrize("datatype", DATATYPES)
def test_every_datatype_survives(datatype):
    array = np.arange(600).reshape(200, 3).astype(numpy_dtype(datatype))
    (frame,) = received(frame_of(InferRequest("m", {"T": Tensor("T", datatype, array)})), 100)
    (tensor,) = RequestReader().read(frame).inputs.values()
    assert (tensor.array.dtype, tensor.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(tensor.array, array)
