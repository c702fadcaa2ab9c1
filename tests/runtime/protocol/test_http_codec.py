"""V2 JSON and the binary extension: round trips, exact bytes, exact messages."""

# Messages stand whole on their line, so that they can be searched for.
# ruff: noqa: E501

import json
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.runtime.protocol.http_codec import decode

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.messages import InferResponse, Tensor
from argosy_runtime.protocol.http import request as http_request
from argosy_runtime.protocol.http import response as http_response
from argosy_runtime.protocol.http.response import OutputEncoding
from argosy_runtime.protocol.model_view import ModelView, TensorView, no_labels
from argosy_runtime.protocol.tensors import DTYPES

INTEGERS = ("UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64")


def no_model() -> ModelView:
    raise AssertionError("the model was asked for")


@st.composite
def tensors(draw: st.DrawFn, datatypes: tuple[str, ...] = tuple(DTYPES)) -> Tensor:
    datatype = draw(st.sampled_from(datatypes))
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3))
    count = int(np.prod(shape))
    if datatype == "BYTES":
        flat = np.empty(count, np.object_)
        flat[:] = draw(st.lists(st.binary(max_size=5), min_size=count, max_size=count))
        return Tensor("T", datatype, flat.reshape(shape))
    raw = draw(st.binary(min_size=count * DTYPES[datatype].itemsize, max_size=count * DTYPES[datatype].itemsize))
    if datatype == "BOOL":
        raw = bytes(byte & 1 for byte in raw)
    array = np.frombuffer(raw, DTYPES[datatype]) if count else np.empty(0, DTYPES[datatype])
    return Tensor("T", datatype, array.reshape(shape))


def same(left: Tensor, right: Tensor) -> bool:
    return (left.datatype, left.shape, bytes(left.data)) == (right.datatype, right.shape, bytes(right.data))


def request_of(response: http_response.EncodedResponse) -> tuple[bytes, int]:
    """Return a response read as a request: outputs and inputs have one form."""
    document = json.loads(response.chunks[0])
    header = json.dumps({"inputs": document["outputs"]}).encode("utf-8", "surrogateescape")
    return b"".join([header, *response.chunks[1:]]), len(header)


@given(st.lists(tensors(), max_size=4))
def test_binary_round_trip(parts: list[Tensor]) -> None:
    outputs = [tensor.renamed(f"T{index}") for index, tensor in enumerate(parts)]
    encoded = http_response.encode(InferResponse("m", "1", outputs=outputs), OutputEncoding(True), no_model)
    request, _ = decode(*request_of(encoded))
    assert list(request.inputs) == [tensor.name for tensor in outputs]
    assert all(same(request.inputs[tensor.name], tensor) for tensor in outputs)


@given(tensors(("BOOL", *INTEGERS, "FP32", "FP64")))
def test_json_round_trip(tensor: Tensor) -> None:
    encoded = http_response.encode(InferResponse("m", "1", outputs=[tensor]), OutputEncoding(), no_model)
    body, length = request_of(encoded)
    got = decode(body, length)[0].inputs["T"]
    assert (got.datatype, got.shape) == (tensor.datatype, tensor.shape)
    np.testing.assert_array_equal(got.array, tensor.array)


@pytest.mark.parametrize("data", [[], [1, 2], [[], []]])
@pytest.mark.parametrize("shape", [[0], [2, 0], [2**40, 0]])
def test_a_shape_with_an_empty_dimension_has_no_elements_whatever_its_data(shape: list[int], data: list[Any]) -> None:
    tensor = {"name": "T", "datatype": "FP32", "shape": shape, "data": data}
    body = json.dumps({"inputs": [tensor]}).encode()
    assert decode(body, len(body))[0].inputs["T"].array.shape == tuple(shape)


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=5), min_size=1, max_size=4))
def test_text_round_trip(texts: list[str]) -> None:
    array = np.array([text.encode() for text in texts], np.object_)
    response = InferResponse("m", "1", outputs=[Tensor("T", "BYTES", array)])
    encoded = http_response.encode(response, OutputEncoding(), no_model)
    assert json.loads(encoded.chunks[0])["outputs"][0]["data"] == texts
    got = decode(*request_of(encoded))[0].inputs["T"]
    assert got.array.tolist() == array.tolist()


def refused_or_decoded(body: bytes, length: int) -> None:
    """Decode a body; anything but a ServingError of these kinds fails the test."""
    try:
        decode(body, length)
    except ServingError as error:
        kind = error.kind
    else:
        return
    assert kind in (ErrorKind.INTERNAL, ErrorKind.INVALID_ARG, ErrorKind.UNSUPPORTED)


@given(st.binary(max_size=200), st.integers(0, 200))
def test_noise_is_refused_or_decoded(body: bytes, length: int) -> None:
    refused_or_decoded(body, max(1, min(length, len(body))))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(("name", "datatype", "shape", "data", "parameters"), json_values),
    ),
    st.sampled_from(("FP32", "INT8", "UINT64", "BYTES", "BOOL", "FP16")),
    json_values,
)
def test_odd_inputs_are_refused_or_decoded(odd: dict[str, Any], datatype: str, parameters: Any) -> None:
    item = {"name": "T", "datatype": datatype, "shape": [1], **odd}
    document = {"inputs": [item], "outputs": [item], "parameters": parameters}
    body = json.dumps(document).encode()
    refused_or_decoded(body, len(body))


def test_response_bytes() -> None:
    outputs = [
        Tensor("A", "FP32", np.array([[0.1, 1.0]], np.float32)),
        Tensor("B", "BYTES", np.array([b"\xff", "é".encode()], np.object_)),
        Tensor("C", "INT32", np.array([7], np.int32)),
    ]
    response = InferResponse("m", "3", "id", outputs, {"p": 1, "q": True, "r": "s", "t": 0.5})
    encoded = http_response.encode(response, OutputEncoding(listed=frozenset("ABC"), binary=frozenset("C")), no_model)
    assert encoded.chunks[0] == (
        b'{"id":"id","model_name":"m","model_version":"3","parameters":{"p":1,"q":true,"r":"s","t":0.5},'
        b'"outputs":[{"name":"A","datatype":"FP32","shape":[1,2],"data":[0.10000000149011612,1.0]},'
        b'{"name":"B","datatype":"BYTES","shape":[2],"data":["\xff","\xc3\xa9"]},'
        b'{"name":"C","datatype":"INT32","shape":[1],"parameters":{"binary_data_size":4}}]}'
    )
    assert encoded.chunks[1:] == [b"\x07\0\0\0"]
    assert encoded.is_binary
    assert encoded.json_length == len(encoded.chunks[0])


def test_nan_is_bare_both_ways() -> None:
    body = b'{"inputs":[{"name":"T","datatype":"FP64","shape":[3],"data":[NaN,Infinity,-Infinity]}]}'
    tensor = decode(body)[0].inputs["T"]
    response = InferResponse("m", "1", outputs=[tensor], parameters={"p": float("nan")})
    encoded = http_response.encode(response, OutputEncoding(), no_model).chunks[0]
    assert b'"parameters":{"p":NaN}' in encoded
    assert encoded.endswith(b'"data":[NaN,Infinity,-Infinity]}]}')


def test_binary_inputs_are_views_of_the_body() -> None:
    inputs = [{"name": name, "datatype": "INT8", "shape": [2], "parameters": {"binary_data_size": 2}} for name in "AB"]
    header = orjson.dumps({"inputs": inputs})
    body = header + b"\x01\x02\x03\x04"
    request, _ = decode(body, len(header))
    assert request.inputs["B"].array.tolist() == [3, 4]
    assert np.shares_memory(request.inputs["A"].array, np.frombuffer(body, np.uint8))


def test_misaligned_inputs_are_aligned() -> None:
    header = b'{"inputs":[{"name":"T","datatype":"INT32","shape":[1],"parameters":{"binary_data_size":4}}]}'
    for pad in range(4):
        padded = header + b" " * pad
        array = decode(padded + b"\x05\0\0\0", len(padded))[0].inputs["T"].array
        assert array.flags.aligned
        assert array.tolist() == [5]


def test_parameters() -> None:
    parameters = {
        "sequence_id": 2**64 - 1,
        "sequence_start": True,
        "sequence_end": True,
        "priority": 2**64 - 1,
        "timeout": 5,
        "binary_data_output": True,
        "headers": "x",
        "mine": 1.5,
    }
    request, encoding = decode(orjson.dumps({"id": "i", "inputs": [], "parameters": parameters}))
    assert (request.id, request.sequence_id, request.sequence_start) == ("i", 2**64 - 1, True)
    assert (request.sequence_end, request.priority, request.timeout_us) == (True, 2**64 - 1, 5)
    assert request.parameters == {"headers": "x", "mine": 1.5}
    assert encoding.is_binary("anything")
    assert decode(b'{"inputs":[],"parameters":{"sequence_id":"a"}}')[0].sequence_id == "a"


def test_null_is_as_good_as_left_out() -> None:
    request, encoding = decode(b'{"id":null,"inputs":[],"parameters":null,"outputs":null}')
    assert (request.id, request.parameters, request.requested_outputs) == ("", {}, ())
    assert not encoding.is_binary("anything")


def test_a_number_that_no_double_holds_is_reported() -> None:
    with pytest.raises(ServingError, match=r"Number too big to be stored in double\. at 31"):
        decode(b'{"inputs":[],"parameters":{"a":1e400}}')


def test_binary_data_output_is_for_unlisted_outputs_only() -> None:
    document = {
        "inputs": [],
        "outputs": [{"name": "A"}, {"name": "B", "parameters": {"binary_data": True, "classification": 3}}],
        "parameters": {"binary_data_output": True},
    }
    request, encoding = decode(orjson.dumps(document))
    assert request.requested_outputs == ("A", "B")
    assert [encoding.is_binary(name) for name in "ABC"] == [False, True, True]
    assert encoding.classes == {"B": 3}


def view(datatype: str, shape: tuple[int, ...], max_batch_size: int = 0, extra: bool = False) -> ModelView:
    inputs = {"T": TensorView(datatype, shape)} | ({"U": TensorView("FP32", (1,))} if extra else {})
    return ModelView("m", inputs, max_batch_size, no_labels)


@pytest.mark.parametrize(
    ("model", "body", "shape"),
    [
        (view("FP32", (-1, 2)), b"\0" * 24, (3, 2)),
        (view("FP32", (-1, -1, 2), 8), b"\0" * 24, (1, 3, 2)),
        (view("FP32", (2,)), b"\0" * 8, (2,)),
        (view("INT8", (-1,)), b"", (0,)),
        (view("BYTES", (1,)), b"text", (1,)),
        (view("BYTES", (-1, 1), 8), b"", (1, 1)),
    ],
)
def test_raw(model: ModelView, body: bytes, shape: tuple[int, ...]) -> None:
    request, encoding = http_request.decode_raw(body, "m", "", lambda: model)
    tensor = request.inputs["T"]
    assert tensor.shape == shape
    assert encoding.is_binary("any")
    if tensor.datatype == "BYTES":
        assert tensor.array.ravel().tolist() == [body]


@pytest.mark.parametrize(
    ("model", "reported"),
    [
        (view("FP32", (1,), extra=True), "Raw request must only have 1 input (found 1) to be deduced but got 2 inputs in 'm' model configuration"),
        (view("FP32", (-1, -1)), "The shape of the raw input 'T' can not be deduced because there are more than one variable-sized dimension"),
        (view("BYTES", (-1,)), "For BYTE datatype raw input 'T', the model must have input shape [1]"),
        (view("FP32", (2,)), "input byte size mismatch for input 'raw_input' for model 'm'. Expected 8, got 5"),
    ],
)  # fmt: skip
def test_raw_refusals(model: ModelView, reported: str) -> None:
    with pytest.raises(ServingError) as raised:
        http_request.decode_raw(b"12345", "m", "", lambda: model)
    assert raised.value.message == f"[request id: <id_unknown>] {reported}"


@pytest.mark.parametrize("datatype", ["FP16", "BF16"])
def test_half_precision_cannot_be_json(datatype: str) -> None:
    tensor = Tensor("T", datatype, np.zeros(1, DTYPES[datatype]))
    with pytest.raises(ServingError, match=f"sending {datatype} data via JSON is not supported"):
        http_response.encode(InferResponse("m", "1", outputs=[tensor]), OutputEncoding(), no_model)
