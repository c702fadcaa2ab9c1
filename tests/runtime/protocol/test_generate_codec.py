"""generate: which keys are tensors, which shapes they get, and how responses look."""

# Messages stand whole on their line, so that they can be searched for.
# ruff: noqa: E501

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.errors import ServingError, internal
from argosy_runtime.messages import InferResponse, Tensor
from argosy_runtime.protocol import generate
from argosy_runtime.protocol.model_view import ModelView, TensorView

MODEL = ModelView(
    "m",
    {
        "text": TensorView("BYTES", (-1, 1)),
        "n": TensorView("INT32", (-1, 2, -1)),
        "one": TensorView("FP32", (1,)),
        "half": TensorView("FP16", (1,)),
    },
    8,
)


def decode(document: Any, limit: int = 1000) -> Any:
    return generate.decode(json.dumps(document).encode(), "m", "", MODEL, limit)


def test_keys_become_tensors_or_parameters() -> None:
    request = decode({"id": "i", "text": "é", "top_k": 5, "parameters": {"one": 1, "stream": True}})
    assert request.id == "i"
    assert request.parameters == {"id": "i", "top_k": 5, "stream": True}
    assert {name: tensor.array.tolist() for name, tensor in request.inputs.items()} == {
        "text": [["é".encode()]],
        "one": [1.0],
    }


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{"one": 1, "one": 1}', "[request id: <id_unknown>] input 'one' already exists in request"),
        ('{"id": "i", "text": "a", "text": "b"}', "[request id: i] input 'text' already exists in request"),
        (
            '{"parameters": {"one": 1, "one": 2}}',
            "Converting keyword: 'parameters': [request id: <id_unknown>] input 'one' already exists in request",
        ),
        (
            '{"one": 1, "parameters": {"one": 2}}',
            "Converting keyword: 'parameters': [request id: <id_unknown>] input 'one' already exists in request",
        ),
    ],
)
def test_an_input_that_is_there_twice_is_refused(body: str, message: str) -> None:
    with pytest.raises(ServingError) as caught:
        generate.decode(body.encode(), "m", "", MODEL)
    assert caught.value.message == message


def test_a_text_that_contains_a_key_is_not_that_key() -> None:
    body = b'{"text": "one", "one": 1, "name": "say \\"one\\"", "text2": "one"}'
    assert list(generate.decode(body, "m", "", MODEL).inputs) == ["text", "one"]


def test_null_is_as_good_as_left_out() -> None:
    nothing = {"id": None, "stop": None, "one": None, "outputs": None}
    request = decode({"text": "a", **nothing, "parameters": {"seed": None, "top_k": 1}})
    assert (request.id, request.parameters, list(request.inputs)) == ("", {"top_k": 1}, ["text"])
    assert decode({"text": "a", "parameters": None}).parameters == {}


def test_a_list_of_outputs_names_those_that_are_desired() -> None:
    request = decode({"text": "a", "outputs": ["y", "x", "y"]})
    assert (request.requested_outputs, request.parameters) == (("y", "x"), {})


def test_any_other_word_about_outputs_is_a_parameter_as_in_triton() -> None:
    assert decode({"outputs": "y", "parameters": {"outputs": 1}}).parameters == {"outputs": 1}
    model = ModelView("m", {"outputs": TensorView("INT32", (-1,))})
    request = generate.decode(b'{"outputs":[1,2]}', "m", "", model)
    assert request.inputs["outputs"].array.tolist() == [1, 2]
    assert request.requested_outputs == ()


@given(st.integers(0, 6))
def test_fixed_dimensions_first_then_the_innermost(half: int) -> None:
    assert decode({"n": list(range(2 * half))}).inputs["n"].shape == (1, 2, half)


@pytest.mark.parametrize(
    ("document", "reported"),
    [
        ([], "attempt to get members for non-object"),
        ({"n": [1, 2, 3]}, "The schema can not convert input 'n' to tensor with proper shape"),
        ({"one": [1, 2]}, "The schema can not convert input 'one' to tensor with proper shape"),
        ({"one": [[1, 2]]}, "Unable to parse 'data': Shape does not match true shape of 'data' field"),
        ({"one": "x"}, "Unable to parse 'data': attempt to access JSON non-number as double"),
        ({"text": 1}, "Unable to parse JSON bytes array: attempt to access JSON non-string as string"),
        ({"half": 1}, "receiving FP16 data via JSON is not supported. Please use the binary data format for input half"),
        ({"parameters": 1}, "Expected JSON object for keyword: 'parameters': attempt to access JSON non-object as object"),
        ({"parameters": {"x": []}}, "Converting keyword: 'parameters': parameter 'x' has invalid type. It should be either 'int', 'bool', or 'string'."),
        ({"outputs": []}, "'outputs' names none; name outputs of the model, or leave it out for all of them"),
        ({"outputs": ["y", 1]}, "'outputs' is a list of names, and 1 is none"),
        ({"parameters": {"outputs": ["y"]}}, "Converting keyword: 'parameters': parameter 'outputs' has invalid type. It should be either 'int', 'bool', or 'string'."),
        ({"id": 1}, "Unable to parse 'id': attempt to access JSON non-string as string"),
    ],
)  # fmt: skip
def test_refusals(document: Any, reported: str) -> None:
    with pytest.raises(ServingError) as raised:
        decode(document)
    assert raised.value.message == reported


def test_a_model_with_an_input_called_parameters() -> None:
    model = ModelView("m", {"parameters": TensorView("INT32", (1,))})
    with pytest.raises(ServingError, match="Keyword 'parameters' for nested schema also given as input"):
        generate.decode(b'{"parameters":{}}', "m", "", model)


def test_inputs_together_are_limited() -> None:
    body = b'{"n":[1,2,3,4,5,6,7,8,9,1,2,3],"text":"0123456789"}'
    with pytest.raises(ServingError, match="request size of 48 bytes with input 'text' of size 14 bytes exceeds"):
        generate.decode(body, "m", "", MODEL, 61)
    assert len(generate.decode(body, "m", "", MODEL, 62).inputs) == 2


def test_response_bytes() -> None:
    outputs = [
        Tensor("z", "INT32", np.array([[1, 2]], np.int32)),
        Tensor("a", "BYTES", np.array([b"hi"], np.object_)),
        Tensor("nan", "FP32", np.array([np.nan], np.float32)),
        Tensor("none", "FP32", np.array([], np.float32)),
    ]
    response = InferResponse("m", "1", "i", outputs, {"p": True})
    body = b'{"a":"hi","id":"i","model_name":"m","model_version":"1","nan":NaN,"none":[],"p":true,"z":[1,2]}'
    assert generate.encode(response) == body
    assert generate.encode_event(response) == b"data: " + body + b"\n\n"


def test_an_event_leaves_out_what_stood_in_one_before() -> None:
    outputs = [
        Tensor("text", "BYTES", np.array([b"a"], np.object_)),
        Tensor("score", "FP32", np.array([0.5], np.float32)),
    ]
    response = InferResponse("m", "1", outputs=outputs, repeated=frozenset({"score"}))
    assert generate.encode_event(response) == b'data: {"model_name":"m","model_version":"1","text":"a"}\n\n'
    assert b'"score":0.5' in generate.encode(response)


def test_an_event_that_would_say_nothing_new_is_none() -> None:
    outputs = [Tensor("score", "FP32", np.array([0.5], np.float32))]
    assert generate.encode_event(InferResponse("m", "1", outputs=outputs, repeated=frozenset({"score"}))) == b""


def test_error_event() -> None:
    response = InferResponse("m", "1", error=internal('a "b"'))
    assert generate.encode_event(response) == b'data: {"error":"a \\"b\\""}\n\n'


def test_sizes_of_inputs_are_added_up_nested_ones_too() -> None:
    model = ModelView("m", {"a": TensorView("INT64", (-1,)), "b": TensorView("INT64", (-1,))})
    body = b'{"a":[1,1,1,1,1,1],"parameters":{"b":[1,1,1,1,1,1,1]}}'
    assert generate.decode(body, "m", "", model, 104).inputs["b"].array.size == 7
    with pytest.raises(ServingError) as caught:
        generate.decode(body, "m", "", model, 103)
    assert caught.value.message == (
        "Converting keyword: 'parameters': request size of 48 bytes with input 'b' of size 56 bytes exceeds the maximum "
        "allowed input size of 103. Use --http-max-input-size to increase the limit."
    )
    with pytest.raises(ServingError, match="request size of 0 bytes with input 'a' of size 48 bytes exceeds"):
        generate.decode(body[:18] + b"}", "m", "", model, 47)
