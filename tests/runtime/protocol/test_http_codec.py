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

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.messages import InferRequest, InferResponse, Tensor
from argosy_runtime.protocol.http import request as http_request
from argosy_runtime.protocol.http import response as http_response
from argosy_runtime.protocol.model_view import ModelView, TensorView, no_labels
from argosy_runtime.protocol.output_encoding import OutputEncoding
from argosy_runtime.protocol.tensors import DTYPES

INTEGERS = ("UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64")
LIMIT = 1000


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


def decode(body: bytes, header_length: int | None = None) -> tuple[InferRequest, OutputEncoding]:
    return http_request.decode(body, len(body) if header_length is None else header_length, "m", "", LIMIT)


def request_of(response: http_response.EncodedResponse) -> tuple[bytes, int]:
    """A response read as a request: outputs and inputs have one form."""
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


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=5), min_size=1, max_size=4))
def test_text_round_trip(texts: list[str]) -> None:
    array = np.array([text.encode() for text in texts], np.object_)
    response = InferResponse("m", "1", outputs=[Tensor("T", "BYTES", array)])
    encoded = http_response.encode(response, OutputEncoding(), no_model)
    assert json.loads(encoded.chunks[0])["outputs"][0]["data"] == texts
    got = decode(*request_of(encoded))[0].inputs["T"]
    assert got.array.tolist() == array.tolist()


def refused_or_decoded(body: bytes, length: int) -> None:
    """Anything but a ServingError of these kinds fails the test."""
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


def test_a_number_that_no_double_holds_is_told() -> None:
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


def one_input(**fields: Any) -> bytes:
    item = {"name": "T", "datatype": "INT32", "shape": [2], "data": [1, 2], **fields}
    return orjson.dumps({"inputs": [{key: value for key, value in item.items() if value != "drop"}]})


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


KINDS = {500: ErrorKind.INTERNAL, 400: ErrorKind.INVALID_ARG, 501: ErrorKind.UNSUPPORTED}
ONLY_ONE = (
    "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', "
    "'shared_memory_region' in 'parameters'. But"
)
MISMATCHES = [
    (b"", 500, "failed to parse the request JSON buffer: The document is empty. at 0"),
    (b'{"a" 1}', 500, "failed to parse the request JSON buffer: Missing a colon after a name of object member. at 5"),
    (b"{}x", 500, "failed to parse the request JSON buffer: The document root must not be followed by other values. at 2"),
    (b"[1]", 500, "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'"),
    (b'{"inputs":{}}', 500, "Unable to parse 'inputs': attempt to access JSON non-array as array"),
    (b'{"id":1,"inputs":[]}', 500, "Unable to parse 'id': attempt to access JSON non-string as string"),
    (b'{"inputs":[],"outputs":1}', 500, "Unable to parse 'outputs': attempt to access JSON non-array as array"),
    (b'{"inputs":[],"parameters":[]}', 500, "failed to get request params.: attempt to get members for non-object"),
    (b'{"inputs":[],"parameters":{"triton_x":1}}', 400, "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified."),
    (b'{"inputs":[],"parameters":{"x":null}}', 400, "parameter 'x' has invalid type. It should be either 'int', 'bool', or 'string'."),
    (b'{"inputs":[],"parameters":{"priority":-1}}', 500, "Unable to parse 'priority': attempt to access JSON non-unsigned-integer as unsigned-integer"),
    (one_input(name="drop"), 500, "Unable to parse 'name': attempt to access non-existing object member 'name'"),
    (one_input(shape="drop"), 500, "Unable to parse 'shape': attempt to access non-existing object member 'shape'"),
    (one_input(data="drop"), 400, f"{ONLY_ONE} no field is set"),
    (one_input(parameters={"binary_data_size": 8}), 400, f"{ONLY_ONE} set 'data' 'binary_data_size'"),
    (one_input(data="drop", parameters={"shared_memory_region": "r"}), 501, "shared memory regions are not supported by this server"),
    (one_input(data="drop", parameters={"binary_data_size": 8}), 400, "unexpected size for input 'T', expecting 8 additional bytes for model 'm'"),
    (one_input(shape=[-1]), 500, "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer"),
    (one_input(shape=[2**63]), 400, "invalid shape for input 'T': shape [9223372036854775808] contains one or more invalid dimensions"),
    (one_input(shape=[2**40, 2**40]), 400, "invalid shape for input 'T': shape [1099511627776,1099511627776] causes total element count to exceed maximum size of 9223372036854775807"),
    (one_input(shape=[1, 0, 2**41], data=[]), 400, "invalid shape for input 'T': shape [1,0,2199023255552] causes total element count to exceed maximum size of 1099511627776"),
    (one_input(shape=[1, 0, 2**41], data="drop", parameters={"binary_data_size": 0}), 400, "invalid shape for input 'T': shape [1,0,2199023255552] causes total element count to exceed maximum size of 1099511627776"),
    (one_input(shape=[1] * 33), 400, f"invalid shape for input 'T': shape [{','.join('1' * 33)}] has 33 dimensions, more than 32"),
    (one_input(data=3), 500, "Unable to parse 'data': attempt to access JSON non-array as array"),
    (one_input(data=[1]), 500, "Unable to parse 'data': Shape does not match true shape of 'data' field"),
    (one_input(data=[1, 2, 3]), 500, "Unable to parse 'data': Shape does not match true shape of 'data' field"),
    (one_input(data=[1, 1.5]), 500, "Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer"),
    (one_input(data=[1, True]), 500, "Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer"),
    (one_input(datatype="UINT8", data=[1, -1]), 500, "Unable to parse 'data': attempt to access JSON non-unsigned-integer as unsigned-integer"),
    (one_input(datatype="FP32", data=[1, "2"]), 500, "Unable to parse 'data': attempt to access JSON non-number as double"),
    (one_input(datatype="BOOL"), 500, "Unable to parse 'data': attempt to access JSON non-boolean as boolean"),
    (one_input(datatype="BYTES"), 500, "Unable to parse JSON bytes array: attempt to access JSON non-string as string"),
    (one_input(datatype="BYTES", data=["a"]), 400, "[request id: <id_unknown>] expected 2 string elements for inference input 'T' for model 'm', got 1"),
    (one_input(datatype="BYTES", data=["a"] * 3), 400, "[request id: <id_unknown>] unexpected number of string elements 3 for inference input 'T' for model 'm', expecting 2"),
    (one_input(datatype="FP16"), 400, "receiving FP16 data via JSON is not supported. Please use the binary data format for input T"),
    (one_input(datatype="BF16"), 400, "receiving BF16 data via JSON is not supported. Please use the binary data format for input T"),
    (one_input(datatype="FP99"), 400, "invalid datatype for input T"),
    (one_input(data=nested(100)), 400, "Unable to parse 'data': JSON nesting depth exceeds maximum allowed limit (100)"),
    (one_input(datatype="FP64", shape=[126]), 400, "JSON input 'T' has a byte_size (1008 bytes) that exceeds the maximum allowed value of 1000 bytes. Use --http-max-input-size to increase the limit."),
    (b" " * (LIMIT + 1), 400, "request JSON size of 1001 bytes exceeds the maximum allowed input size of 1000 bytes. Use --http-max-input-size to increase the limit."),
]  # fmt: skip


@pytest.mark.parametrize(("body", "status", "told"), MISMATCHES)
def test_refusals(body: bytes, status: int, told: str) -> None:
    with pytest.raises(ServingError) as raised:
        decode(body)
    assert (raised.value.kind, raised.value.message) == (KINDS[status], told)


def test_narrow_integers_wrap_and_wide_floats_overflow() -> None:
    assert decode(one_input(datatype="INT8", data=[300, 1]))[0].inputs["T"].array.tolist() == [44, 1]
    assert decode(one_input(datatype="FP32", data=[1e300, 1]))[0].inputs["T"].array.tolist() == [np.inf, 1]


def test_nesting_below_the_limit_is_flattened() -> None:
    ragged = one_input(data=[[[1]], 2])
    assert decode(ragged)[0].inputs["T"].array.tolist() == [1, 2]
    assert decode(one_input(shape=[1], data=nested(99)))[0].inputs["T"].array.tolist() == [1]


def binary(datatype: str, shape: list[int], data: bytes, size: int | None = None) -> tuple[bytes, int]:
    parameters = {"binary_data_size": len(data) if size is None else size}
    item = {"name": "T", "datatype": datatype, "shape": shape, "parameters": parameters}
    header = orjson.dumps({"id": "i", "inputs": [item]})
    return header + data, len(header)


OF = "for inference input 'T' for model 'm'"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (binary("INT32", [2], b"\0" * 4), "[request id: i] input byte size mismatch for input 'T' for model 'm'. Expected 8, got 4"),
        (binary("INT32", [1], b"\0" * 5, 4), "unexpected additional input data for model 'm'"),
        (binary("INT32", [1], b"\0" * 3, 4), "unexpected size for input 'T', expecting 1 additional bytes for model 'm'"),
        (binary("BYTES", [1], b"\1\0\0"), f"[request id: i] incomplete string length indicator {OF}, expecting 4 bytes but only 3 bytes available. Please make sure the string length indicator is in one buffer."),
        (binary("BYTES", [1], b"\2\0\0\0a"), "incomplete string data for inference input 'T', expecting string of length 2 but only 1 bytes available"),
        (binary("BYTES", [1], b"\0" * 8), f"[request id: i] unexpected number of string elements 2 {OF}, expecting 1"),
        (binary("BYTES", [2], b"\0" * 4), f"[request id: i] expected 2 string elements {OF}, got 1"),
        (binary("FP99", [2], b"\0" * 4), "invalid datatype for input T"),
    ],
)  # fmt: skip
def test_binary_refusals(body: tuple[bytes, int], told: str) -> None:
    with pytest.raises(ServingError) as raised:
        decode(*body)
    assert (raised.value.kind, raised.value.message) == (ErrorKind.INVALID_ARG, told)


def test_an_input_given_twice_is_refused() -> None:
    item = {"name": "T", "datatype": "INT32", "shape": [1], "data": [1]}
    with pytest.raises(ServingError, match="input 'T' already exists in request"):
        decode(orjson.dumps({"inputs": [item, item]}))


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"shared_memory_region": "r", "classification": 1}, "Output can't set both 'shared_memory_region' and 'classification'"),
        ({"shared_memory_region": "r", "binary_data": True}, "Output can't set both 'shared_memory_region' and 'binary_data'"),
        ({"shared_memory_region": "r"}, "shared memory regions are not supported by this server"),
        ({"classification": -1}, "Unable to set 'classification': attempt to access JSON non-unsigned-integer as unsigned-integer"),
        ({"binary_data": 1}, "Unable to parse 'binary_data': attempt to access JSON non-boolean as boolean"),
    ],
)  # fmt: skip
def test_output_refusals(parameters: dict[str, Any], told: str) -> None:
    with pytest.raises(ServingError) as raised:
        decode(orjson.dumps({"inputs": [], "outputs": [{"name": "O", "parameters": parameters}]}))
    assert raised.value.message == told


def test_header_length() -> None:
    assert http_request.parse_header_length(None, 5) == 5
    assert http_request.parse_header_length("0", 5) == 0
    for header, told in (
        ("x", "Unable to parse Inference-Header-Content-Length, got: x"),
        ("6", "inference header size should be in range (0, 5), got: 6"),
        ("99999999999", "Unable to parse Inference-Header-Content-Length, value is out of range [ -2147483648, 2147483647 ], got: 99999999999"),
    ):  # fmt: skip
        with pytest.raises(ServingError) as raised:
            http_request.parse_header_length(header, 5)
        assert raised.value.message == told


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
    ("model", "told"),
    [
        (view("FP32", (1,), extra=True), "Raw request must only have 1 input (found 1) to be deduced but got 2 inputs in 'm' model configuration"),
        (view("FP32", (-1, -1)), "The shape of the raw input 'T' can not be deduced because there are more than one variable-sized dimension"),
        (view("BYTES", (-1,)), "For BYTE datatype raw input 'T', the model must have input shape [1]"),
        (view("FP32", (2,)), "input byte size mismatch for input 'raw_input' for model 'm'. Expected 8, got 5"),
    ],
)  # fmt: skip
def test_raw_refusals(model: ModelView, told: str) -> None:
    with pytest.raises(ServingError) as raised:
        http_request.decode_raw(b"12345", "m", "", lambda: model)
    assert raised.value.message == f"[request id: <id_unknown>] {told}"


@pytest.mark.parametrize("datatype", ["FP16", "BF16"])
def test_half_precision_cannot_be_json(datatype: str) -> None:
    tensor = Tensor("T", datatype, np.zeros(1, DTYPES[datatype]))
    with pytest.raises(ServingError, match=f"sending {datatype} data via JSON is not supported"):
        http_response.encode(InferResponse("m", "1", outputs=[tensor]), OutputEncoding(), no_model)
