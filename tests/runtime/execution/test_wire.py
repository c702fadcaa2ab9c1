"""Frames between the server and its workers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.execution.wire import FrameReader, encode
from argosy_runtime.messages import InferRequest, Tensor

MESSAGES = st.lists(
    st.tuples(st.sampled_from(["execute", "done"]), st.integers(), st.lists(st.binary(max_size=40), max_size=3)),
    max_size=5,
)


@given(messages=MESSAGES, size=st.integers(1, 64))
def test_messages_come_out_as_they_went_in_however_the_bytes_are_cut(messages, size):
    stream = b"".join(bytes(chunk) for message in messages for chunk in encode(message))
    reader = FrameReader()
    received = []
    for start in range(0, len(stream), size):
        received += reader.feed(stream[start : start + size])
    assert received == messages


def test_arrays_travel_beside_the_pickle_and_arrive_writable():
    array = np.arange(1000, dtype=np.float32)
    strings = np.array([b"a", b"\xff"], dtype=np.object_)
    tensors = {"A": Tensor("A", "FP32", array), "S": Tensor("S", "BYTES", strings)}
    chunks = encode(("execute", 0, [InferRequest("m", tensors)]))
    assert any(chunk is not chunks[0] and chunk.nbytes == array.nbytes for chunk in chunks[1:])
    ((_, _, (request,)),) = FrameReader().feed(b"".join(chunks))
    got = request.inputs["A"].array
    np.testing.assert_array_equal(got, array)
    got[0] = 7
    assert request.inputs["S"].array.tolist() == [b"a", b"\xff"]
