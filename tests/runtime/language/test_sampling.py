"""Sampling parameters: as JSON, as Triton's clients write them, and out of range."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.language import Sampling, StructuredOutputs
from argosy_runtime.language.sampling import NAMES, from_json, from_mapping

_floats = st.floats(0.01, 1.0)
_tokens = st.integers(0, 2**31 - 1)
_values: dict[str, st.SearchStrategy[Any]] = {
    "n": st.integers(1, 128),
    "temperature": st.floats(0, 100),
    "top_p": _floats,
    "top_k": st.integers(-1, 1000),
    "min_p": _floats,
    "seed": st.integers(-(2**63), 2**64 - 1),
    "max_tokens": st.none() | st.integers(1000, 2000),
    "min_tokens": st.integers(0, 16),
    "stop": st.text(min_size=1) | st.lists(st.text(min_size=1), max_size=3),
    "stop_token_ids": st.lists(_tokens, max_size=3),
    "ignore_eos": st.booleans(),
    "presence_penalty": st.floats(-2, 2),
    "frequency_penalty": st.floats(-2, 2),
    "repetition_penalty": _floats,
    "logit_bias": st.dictionaries(_tokens, st.floats(-100, 100), max_size=3),
    "bad_words": st.lists(st.text(min_size=1), max_size=3),
    "logprobs": st.integers(-1, 20),
    "prompt_logprobs": st.integers(-1, 20),
    "skip_special_tokens": st.booleans(),
    "spaces_between_special_tokens": st.booleans(),
    "include_stop_str_in_output": st.booleans(),
    "allowed_token_ids": st.lists(_tokens, min_size=1, max_size=3),
    "truncate_prompt_tokens": st.just(-1) | st.integers(1, 1000),
    "structured_outputs": st.sampled_from(
        [{"json": {"type": "object"}}, {"regex": "a+"}, {"choice": ["a", "b"]}, {"json_object": True}]
    ),
    "lora_name": st.text(min_size=1),
    "priority": st.integers(-(2**31), 2**31 - 1),
    "cache_salt": st.text(min_size=1),
    "detokenize": st.booleans(),
}
parameters = st.fixed_dictionaries({}, optional={**_values})
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def refusal(text: bytes) -> str | None:
    """Return why parameters are refused as invalid, None where they are not."""
    try:
        from_json(text)
    except ServingError as error:
        return error.message if error.kind is ErrorKind.INVALID_ARG else f"not as invalid: {error.message}"
    return None


def test_every_parameter_is_tried() -> None:
    assert set(_values) == set(NAMES)


@given(parameters)
def test_json_is_read_as_it_was_written(values: dict[str, Any]) -> None:
    read = from_json(json.dumps(values).encode())
    for name, value in values.items():
        field = getattr(read, name)
        if name == "structured_outputs":
            field = msgspec.to_builtins(field)
        assert field == value
    assert from_json(msgspec.json.encode(read)) == read
    assert from_mapping(values) == read


@given(parameters)
def test_numbers_and_booleans_may_be_strings(values: dict[str, Any]) -> None:
    written = {
        name: json.dumps(value) if isinstance(value, bool | int | float | dict) and name != "logit_bias" else value
        for name, value in values.items()
    }
    assert from_json(json.dumps(written).encode()) == from_json(json.dumps(values).encode())


@given(st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=5), _json, max_size=4))
def test_any_json_is_read_or_refused(values: dict[str, Any]) -> None:
    problem = refusal(json.dumps(values).encode())
    assert problem is None or problem.startswith("sampling_parameters: ")


@given(st.binary(max_size=20))
def test_other_bytes_are_refused(text: bytes) -> None:
    problem = refusal(text)
    assert problem is None or "sampling_parameters" in problem


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"temperature": -0.1}, "'temperature' is -0.1, expected 0 or more, and finite in float32"),
        ({"temperature": 1e40}, "'temperature' is 1e+40, expected 0 or more, and finite in float32"),
        ({"n": 1000}, "'n' is 1000, expected 1 to 128"),
        ({"n": "many"}, "'n': expected `int`, got `str`"),
        ({"top_p": 0}, "'top_p' is 0, expected more than 0 and at most 1"),
        ({"min_tokens": 20}, "'min_tokens' is 20, more than 'max_tokens', 16"),
        ({"stop": ["a", ""]}, '\'stop\' is ["a", ""], expected no empty string'),
        ({"best_of": 2}, "'best_of' is not supported, only n, temperature"),
        ({"structured_outputs": {}}, "'structured_outputs': one of json, regex, choice, grammar, json_object and"),
        ({"structured_outputs": {"regex": "a", "json": {}}}, "expected, not json and regex"),
        ({"structured_outputs": "{"}, "'structured_outputs' is not JSON"),
        ({"structured_outputs": {"schema": {}}}, "'structured_outputs': object contains unknown field `schema`"),
        ({"logit_bias": {"a": 1}}, "'logit_bias"),
    ],
)
def test_wrong_values_are_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ServingError) as refused:
        from_json(json.dumps(values).encode())
    assert refused.value.kind is ErrorKind.INVALID_ARG
    assert message in refused.value.message


def test_what_is_no_object_is_refused() -> None:
    for text, message in ((b"[1]", "must be a JSON object"), (b'{"n": 1', "is not JSON")):
        with pytest.raises(ServingError, match=message):
            from_json(text)


def test_the_former_name_of_structured_outputs_is_understood() -> None:
    read = from_json(json.dumps({"guided_decoding": json.dumps({"choice": ["a"]})}).encode())
    assert read.structured_outputs == StructuredOutputs(choice=["a"])
    assert read.structured_outputs.kind == "choice"


def test_stop_strings_are_a_tuple() -> None:
    assert (Sampling().stops, Sampling(stop="a").stops, Sampling(stop=["a", "b"]).stops) == ((), ("a",), ("a", "b"))


def test_null_is_no_limit() -> None:
    assert from_json(b'{"max_tokens": null}').max_tokens is None
    assert from_json(b"{}").most_tokens == 16
