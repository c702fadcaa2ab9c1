"""Requests that the codec refuses, in Triton's words."""

# Messages stand whole on their line, so that they can be searched for.
# ruff: noqa: E501

from typing import Any

import numpy as np
import orjson
import pytest
from tests.runtime.protocol.http_codec import LIMIT, decode

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.protocol.http import request as http_request


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
    (b"\xef\xbb\xbf", 500, "failed to parse the request JSON buffer: The document is empty. at 3"),
    (b"\xef\xbb\xbf\xef\xbb\xbf{}", 500, "failed to parse the request JSON buffer: Invalid value. at 3"),
    (b'\xef\xbb\xbf{"a" 1}', 500, "failed to parse the request JSON buffer: Missing a colon after a name of object member. at 8"),
    (b'{"\xed\xa0\x80":NaN', 500, "failed to parse the request JSON buffer: Invalid value. at 10"),
    ('{"é":1,}'.encode(), 500, "failed to parse the request JSON buffer: Missing a name for object member. at 8"),
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
    (one_input(data="drop", parameters={"shared_memory_region": 1}), 500, "Unable to parse 'shared_memory_region': attempt to access JSON non-string as string"),
    (one_input(data="drop", parameters={"shared_memory_region": "r", "shared_memory_offset": -1}), 500, "Unable to parse 'shared_memory_offset': attempt to access JSON non-unsigned-integer as unsigned-integer"),
    (one_input(data="drop", parameters={"shared_memory_region": "r", "shared_memory_byte_size": "8"}), 500, "Unable to parse 'shared_memory_byte_size': attempt to access JSON non-unsigned-integer as unsigned-integer"),
    (one_input(parameters={"shared_memory_region": "r"}), 400, f"{ONLY_ONE} set 'data' 'shared_memory_region'"),
    (one_input(data="drop", parameters={"binary_data_size": 8}), 400, "unexpected size for input 'T', expecting 8 additional bytes for model 'm'"),
    (one_input(shape=[-1]), 500, "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer"),
    (one_input(shape=[2**63]), 400, "invalid shape for input 'T': shape [9223372036854775808] contains one or more invalid dimensions"),
    (one_input(shape=[2**40, 2**40]), 400, "invalid shape for input 'T': shape [1099511627776,1099511627776] causes total element count to exceed maximum size of 9223372036854775807"),
    (one_input(shape=[1, 0, 2**41], data=[]), 400, "invalid shape for input 'T': shape [1,0,2199023255552] causes total element count to exceed maximum size of 1099511627776"),
    (one_input(shape=[1, 0, 2**41], data="drop", parameters={"binary_data_size": 0}), 400, "invalid shape for input 'T': shape [1,0,2199023255552] causes total element count to exceed maximum size of 1099511627776"),
    (one_input(shape=[1] * 33), 400, f"invalid shape for input 'T': shape [{','.join('1' * 33)}] has 33 dimensions, more than 32"),
    (one_input(data=3), 500, "Unable to parse 'data': attempt to access JSON non-array as array"),
    (one_input(data=[1]), 500, "Failed to parse 'data' field: shape does not match true shape"),
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


@pytest.mark.parametrize(("body", "status", "reported"), MISMATCHES)
def test_refusals(body: bytes, status: int, reported: str) -> None:
    with pytest.raises(ServingError) as raised:
        decode(body)
    assert (raised.value.kind, raised.value.message) == (KINDS[status], reported)


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
    ("body", "reported"),
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
def test_binary_refusals(body: tuple[bytes, int], reported: str) -> None:
    with pytest.raises(ServingError) as raised:
        decode(*body)
    assert (raised.value.kind, raised.value.message) == (ErrorKind.INVALID_ARG, reported)


def test_an_input_set_twice_is_refused() -> None:
    item = {"name": "T", "datatype": "INT32", "shape": [1], "data": [1]}
    with pytest.raises(ServingError, match="input 'T' already exists in request"):
        decode(orjson.dumps({"inputs": [item, item]}))


@pytest.mark.parametrize(
    ("parameters", "reported"),
    [
        ({"shared_memory_region": "r", "classification": 1}, "Output can't set both 'shared_memory_region' and 'classification'"),
        ({"shared_memory_region": "r", "binary_data": True}, "Output can't set both 'shared_memory_region' and 'binary_data'"),
        ({"shared_memory_region": "r", "binary_data": 1}, "Unable to set 'binary_data': attempt to access JSON non-boolean as boolean"),
        ({"shared_memory_region": None}, "Unable to parse 'shared_memory_region': attempt to access JSON non-string as string"),
        ({"classification": -1}, "Unable to set 'classification': attempt to access JSON non-unsigned-integer as unsigned-integer"),
        ({"binary_data": 1}, "Unable to parse 'binary_data': attempt to access JSON non-boolean as boolean"),
    ],
)  # fmt: skip
def test_output_refusals(parameters: dict[str, Any], reported: str) -> None:
    with pytest.raises(ServingError) as raised:
        decode(orjson.dumps({"inputs": [], "outputs": [{"name": "O", "parameters": parameters}]}))
    assert raised.value.message == reported


def test_header_length() -> None:
    assert http_request.parse_header_length(None, 5) == 5
    assert http_request.parse_header_length("0", 5) == 0
    for header, reported in (
        ("x", "Unable to parse Inference-Header-Content-Length, got: x"),
        ("6", "inference header size should be in range (0, 5), got: 6"),
        ("99999999999", "Unable to parse Inference-Header-Content-Length, value is out of range [ -2147483648, 2147483647 ], got: 99999999999"),
    ):  # fmt: skip
        with pytest.raises(ServingError) as raised:
            http_request.parse_header_length(header, 5)
        assert raised.value.message == reported
