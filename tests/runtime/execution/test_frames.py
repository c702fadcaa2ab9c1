"""Frames between the server and its workers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.execution.process.frames import FrameReader, encode
from argosy_runtime.messages import InferRequest, Tensor
from argosy_runtime.modelconfig.datatypes import numpy_dtype

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
    array = np.arange(10_000, dtype=np.float32)
    strings = np.array([b"a", b"\xff"], dtype=np.object_)
    tensors = {"A": Tensor("A", "FP32", array), "S": Tensor("S", "BYTES", strings)}
    chunks = encode(("execute", 0, [InferRequest("m", tensors, id="9")]))
    assert any(chunk is not chunks[0] and chunk.nbytes == array.nbytes for chunk in chunks[1:])
    ((_, _, (request,)),) = FrameReader().feed(b"".join(chunks))
    got = request.inputs["A"].array
    np.testing.assert_array_equal(got, array)
    got[0] = 7
    assert request.id == "9"
    assert request.inputs["S"].array.tolist() == [b"a", b"\xff"]


@pytest.mark.parametrize("size", [(), (3,), (0, 2), (200, 300)], ids=str)
@pytest.mark.parametrize("datatype", ["BOOL", "UINT8", "INT64", "FP16", "BF16", "FP64"])
def test_every_datatype_and_shape_survives(datatype, size):
    array = np.asarray(np.arange(np.prod(size, dtype=int)).reshape(size)).astype(numpy_dtype(datatype))
    frame = b"".join(bytes(chunk) for chunk in encode((Tensor("T", datatype, array),)))
    ((tensor,),) = FrameReader().feed(frame)
    assert (tensor.array.dtype, tensor.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(tensor.array, array)
