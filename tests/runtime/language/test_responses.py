"""Responses: what a builder makes, a reader reads."""

import json
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.language.language_requests import generation

from argosy_runtime.errors import ServingError, unavailable
from argosy_runtime.language import Delta, GenerationRequest, LogprobEntry, ResponseBuilder, ResponseReader, reading
from argosy_runtime.language.tensors import OUTPUTS
from argosy_runtime.messages import InferResponse, ResponseTemplate, Tensor, TensorSpec
from argosy_runtime.tensors import string_array

_floats = st.floats(-100, 0, width=32)
_entries = st.builds(
    LogprobEntry,
    _floats,
    st.none() | st.integers(1, 100),
    st.none() | st.text(max_size=3),
    st.none() | st.lists(st.integers(0, 255), max_size=3),
)
_positions = st.dictionaries(st.integers(0, 1000), _entries, max_size=2)
_deltas = st.builds(
    Delta,
    st.integers(0, 127),
    st.text(max_size=5),
    st.lists(st.integers(0, 2**31 - 1), max_size=4),
    st.sampled_from([None, "stop", "length", "abort"]),
    st.none() | st.text(max_size=3) | st.integers(0, 1000),
    _floats,
    st.lists(_positions, max_size=2),
)


def built(deltas: list[Delta], outputs: tuple[str, ...] = tuple(OUTPUTS), **inputs: Any) -> InferResponse:
    """Return a response with these outputs."""
    request = GenerationRequest.read(generation(outputs, text_input="P", **inputs))
    return ResponseBuilder(request, "1", "P").response(deltas, final=True)


@given(st.lists(_deltas, min_size=1, max_size=3, unique_by=lambda delta: delta.index))
def test_what_is_built_is_read(deltas: list[Delta]) -> None:
    response = built(deltas, exclude_input_in_output=True)
    any_ends = any(delta.finish_reason is not None for delta in deltas)
    reader = ResponseReader()
    read = reader.read(response)
    for delta in deltas:
        if not any_ends:
            delta.stop_reason = None
    assert read == deltas
    assert reader.num_output_tokens == {delta.index: len(delta.token_ids) for delta in deltas}


_TEXT = tuple(name for name in reading.TEXT if name != "index")


@given(_deltas, st.booleans())
def test_one_choice_of_a_template_is_read_alike(delta: Delta, indexed: bool) -> None:
    delta.index = delta.index if indexed else 0
    response = built([delta], reading.TEXT if indexed else _TEXT, exclude_input_in_output=True)
    template = ResponseTemplate([tensor.spec() for tensor in response.outputs], {})
    alike = template.response([tensor.data for tensor in response.outputs])
    ordinary, quick = ResponseReader(), ResponseReader()
    assert quick.read(alike) == ordinary.read(response)
    assert alike.raw is not None  # not decoded
    assert quick.num_output_tokens == ordinary.num_output_tokens


def test_a_template_with_broken_text_is_an_error() -> None:
    template = ResponseTemplate([TensorSpec("text_output", "BYTES", (1,))], {})
    with pytest.raises(ServingError, match="cannot be read"):
        ResponseReader().read(template.response([b"\x01\x00\x00\x00\xff"]))


def test_a_probability_of_zero_passes() -> None:
    response = built([Delta(0, "a", [7], logprobs=[{7: LogprobEntry(float("-inf"), 3)}])])
    (delta,) = ResponseReader().read(response)
    assert delta.logprobs == [{7: LogprobEntry(None, 3)}]


def test_sums_grow_from_response_to_response() -> None:
    request = GenerationRequest.read(generation(tuple(OUTPUTS), text_input="P", stream=True))
    builder, reader = ResponseBuilder(request, "1"), ResponseReader()
    builder.num_input_tokens, builder.num_cached_tokens = 5, 3
    builder.prompt_logprobs = [None, {7: LogprobEntry(-0.5, 1, "x")}]
    first = builder.response([Delta(1, "a", [1, 2])], final=False)
    second = builder.response([Delta(1, "b", [3], "stop")], final=True)
    assert not first.final
    assert second.final
    reader.read(first)
    reader.read(second)
    assert (reader.num_input_tokens, reader.num_cached_tokens) == (5, 3)
    assert reader.num_output_tokens == {1: 3}
    assert reader.total_output_tokens == 3
    assert reader.prompt_logprobs == [None, {7: LogprobEntry(-0.5, 1, "x")}]
    assert "prompt_logprobs" not in {tensor.name for tensor in second.outputs}


def test_the_first_response_repeats_the_prompt() -> None:
    request = GenerationRequest.read(generation(text_input="P"))
    builder = ResponseBuilder(request, "1", "P")
    texts = [tensor.array.tolist() for tensor in builder.response([Delta(text="a")], False).outputs]
    texts += [tensor.array.tolist() for tensor in builder.response([Delta(text="b")], True).outputs]
    assert texts == [[b"Pa"], [b"b"]]


def test_all_choices_are_elements_of_one_response() -> None:
    response = built([Delta(0, "a", [1]), Delta(1, "b", [2, 3])])
    tensors = {tensor.name: tensor.array.tolist() for tensor in response.outputs}
    assert tensors["text_output"] == [b"Pa", b"Pb"]
    assert tensors["output_ids"] == [1, 2, 3]
    assert tensors["sequence_length"] == [1, 2]
    assert tensors["num_output_tokens"] == [1, 2]


def test_tensors_have_their_declared_datatypes() -> None:
    entry = {1: LogprobEntry(-1.0)}
    response = built([Delta(0, "a", [1], "stop", None, -1.0, [entry])], exclude_input_in_output=True)
    assert {tensor.name: tensor.datatype for tensor in response.outputs} == {
        name: datatype for name, (datatype, _) in OUTPUTS.items() if name != "prompt_logprobs"
    }
    assert (response.model_name, response.model_version, response.id) == ("llm", "1", "r")


def test_a_choice_that_goes_on_has_no_reason_unless_flagged() -> None:
    assert [tensor.name for tensor in built([Delta()], ("finish_reason", "stop_reason")).outputs] == []
    request = GenerationRequest.read(generation(text_input="P", stream=True, return_finish_reason=True))
    response = ResponseBuilder(request, "1").response([Delta()], final=False)
    assert response.outputs[1].array.tolist() == [b"None"]
    assert ResponseReader().read(response)[0].finish_reason is None


def test_logprobs_are_json_by_token_id() -> None:
    entry = {5: LogprobEntry(-0.25, 1, "é", [195, 169])}
    response = built([Delta(logprobs=[entry])], ("logprobs",))
    assert json.loads(response.outputs[0].array.tolist()[0]) == [
        {"5": {"logprob": -0.25, "rank": 1, "decoded_token": "é", "bytes": [195, 169]}}
    ]


def test_a_lone_surrogate_does_not_fail_a_response() -> None:
    assert ResponseReader().read(built([Delta(text="\ud800")], ("text_output",)))[0].text == "P?"


def test_a_failure_is_the_last_response() -> None:
    request = GenerationRequest.read(generation(text_input="P"))
    response = ResponseBuilder(request, "1").failure(unavailable("asleep"))
    assert response.final
    assert response.error is not None


@given(
    st.lists(
        st.sampled_from(
            [
                Tensor("text_output", "BYTES", string_array([b"\xff"], (1,))),
                Tensor("text_output", "BYTES", string_array([b"a", b"b"], (2,))),
                Tensor("logprobs", "BYTES", string_array([b"{"], (1,))),
                Tensor("stop_reason", "BYTES", string_array([b"[]"], (1,))),
                Tensor("index", "INT32", np.array([1], np.int32)),
                Tensor("sequence_length", "INT32", np.array([1, 2, 3], np.int32)),
                Tensor("output_ids", "INT32", np.array([1, 2], np.int32)),
                Tensor("num_input_tokens", "UINT32", np.array([], np.uint32)),
            ]
        ),
        max_size=4,
    )
)
def test_outputs_that_do_not_fit_raise_no_other_error(tensors: list[Tensor]) -> None:
    with suppress(ServingError):
        ResponseReader().read(InferResponse("llm", "1", "", tensors))


@pytest.mark.parametrize("text", [b"{", b"[" * 50_000, b'[{"1": "\xff"}]'])
@pytest.mark.parametrize("name", ["prompt_logprobs", "logprobs"])
def test_probabilities_that_cannot_be_read_are_refused(name: str, text: bytes) -> None:
    tensor = Tensor(name, "BYTES", string_array([text], (1,)))
    with pytest.raises(ServingError, match="cannot be read"):
        ResponseReader().read(InferResponse("llm", "1", "", [tensor]))


def test_ids_alone_are_those_of_one_choice() -> None:
    response = InferResponse("llm", "1", "", [Tensor("output_ids", "INT32", np.array([1, 2], np.int32))])
    assert ResponseReader().read(response) == [Delta(0, token_ids=[1, 2])]


def test_lengths_that_do_not_fit_are_refused() -> None:
    tensors = [
        Tensor("text_output", "BYTES", string_array([b"a"], (1,))),
        Tensor("finish_reason", "BYTES", string_array([b"a", b"b"], (2,))),
    ]
    with pytest.raises(ServingError, match="cannot be read"):
        ResponseReader().read(InferResponse("llm", "1", "", tensors))
