"""Generated answers: however they come in responses, their texts or tokens are compared."""

import json
from itertools import pairwise

import numpy as np
import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.comparison.answers import AnswerFormat, AnswerRecord
from argosy_runtime.comparison.differences import DifferenceKind, are_equal
from argosy_runtime.comparison.sampled import is_sampled
from argosy_runtime.language import tensors as language
from argosy_runtime.messages import InferRequest, InferResponse, Tensor
from argosy_runtime.tensors import string_array

LANGUAGE = AnswerFormat(language.completed(ModelConfig(name="llm")))
PIPELINE = AnswerFormat(
    text_format.Parse(
        """name: "chat" parameters { key: "chat" value { string_value:
        '{"prompt": "question", "text": "answer", "sampling_parameters": "how"}' } }""",
        ModelConfig(),
    )
)


def _text(name: str, *texts: str) -> Tensor:
    return Tensor(name, "BYTES", string_array([text.encode() for text in texts], (len(texts),)))


def _answer(pieces: list[str], of: AnswerFormat = LANGUAGE, name: str = "text_output") -> AnswerRecord:
    answer = of.begin()
    for piece in pieces:
        answer.add(InferResponse(outputs=[_text(name, piece)], final=False))
    answer.add(InferResponse())
    return answer


def _pieces(text: str, cuts: list[int]) -> list[str]:
    ends = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[begin:end] for begin, end in pairwise(ends)]


@pytest.mark.parametrize(("of", "name"), [(LANGUAGE, "text_output"), (PIPELINE, "answer")])
@given(text=st.text(max_size=30), cuts=st.tuples(*(st.lists(st.integers(0, 30), max_size=4),) * 2))
def test_how_a_text_is_divided_into_responses_makes_no_difference(
    of: AnswerFormat, name: str, text: str, cuts: tuple[list[int], list[int]]
) -> None:
    stable, candidate = (_answer(_pieces(text, some), of, name) for some in cuts)
    assert are_equal(stable.compare(candidate, {}))


@given(st.text(max_size=20), st.text(max_size=20))
def test_two_texts_are_compared_up_to_the_first_difference(stable: str, candidate: str) -> None:
    (comparison,) = _answer([stable]).compare(_answer([candidate]), {})
    if stable == candidate:
        assert comparison.difference is None
        return
    difference = comparison.difference
    assert difference is not None
    assert difference.position is not None
    assert stable[: difference.position] == candidate[: difference.position]
    assert stable[difference.position : difference.position + 1] != candidate[difference.position :][:1]
    assert 0 < difference.size <= 1


def test_tokens_are_compared_where_both_have_them() -> None:
    sides = []
    for tokens in ([1, 2, 3, 4], [1, 2, 9, 4]):
        answer = LANGUAGE.begin()
        answer.add(InferResponse(outputs=[Tensor("output_ids", "INT32", np.array(tokens, np.int32))]))
        sides.append(answer)
    (comparison,) = sides[0].compare(sides[1], {})
    assert comparison.output == "output_ids"
    assert comparison.difference is not None
    assert (comparison.difference.position, comparison.difference.size) == (2, 0.5)


def test_choices_are_compared_by_their_indices() -> None:
    sides = []
    for order in ((0, 1), (1, 0)):
        answer = LANGUAGE.begin()
        for index in order:
            outputs = [_text("text_output", f"choice {index}"), Tensor("index", "INT32", np.array([index], np.int32))]
            answer.add(InferResponse(outputs=outputs, final=False))
        sides.append(answer)
    assert are_equal(sides[0].compare(sides[1], {}))


def test_an_answer_that_ends_for_another_reason_differs() -> None:
    sides = []
    for reason in ("stop", "length"):
        answer = LANGUAGE.begin()
        answer.add(InferResponse(outputs=[_text("text_output", "a"), _text("finish_reason", reason)]))
        sides.append(answer)
    comparisons = sides[0].compare(sides[1], {})
    assert {one.output: one.difference is not None for one in comparisons} == {
        "text_output": False,
        "finish_reason": True,
    }


def test_a_candidate_whose_responses_cannot_be_read_differs() -> None:
    broken = LANGUAGE.begin()
    broken.add(InferResponse(outputs=[_text("text_output", "a", "b"), Tensor("index", "INT32", np.zeros(1, np.int32))]))
    (comparison,) = _answer(["a"]).compare(broken, {})
    assert comparison.difference is not None
    assert comparison.difference.kind is DifferenceKind.MISSING


def _request(parameters: dict[str, object] | None, name: str = "sampling_parameters") -> InferRequest:
    inputs = {} if parameters is None else {name: _text(name, json.dumps(parameters))}
    return InferRequest("llm", inputs)


@pytest.mark.parametrize(
    ("parameters", "sampled"),
    [
        (None, True),
        ({}, True),
        ({"temperature": 0.7}, True),
        ({"temperature": 0.7, "seed": 1}, False),
        ({"temperature": 0}, False),
        ({"top_k": 1}, False),
        ({"temperature": "hot"}, True),
    ],
)
def test_an_answer_is_drawn_at_random_unless_the_request_says_otherwise(
    parameters: dict[str, object] | None, sampled: bool
) -> None:
    assert is_sampled(_request(parameters), LANGUAGE) is sampled
    assert is_sampled(_request(parameters, "how"), PIPELINE) is sampled
    assert not is_sampled(_request(parameters), AnswerFormat(ModelConfig(name="plain")))


@pytest.mark.parametrize(
    "tensor",
    [
        _text("temperature", "abc"),
        _text("end_id", "abc"),
        Tensor("end_id", "FP32", np.array([np.nan], np.float32)),
        Tensor("top_k", "FP32", np.array([np.inf], np.float32)),
    ],
    ids=lambda tensor: f"{tensor.name} {tensor.datatype}",
)
def test_parameters_that_are_no_numbers_say_nothing_of_an_answer(tensor: Tensor) -> None:
    assert is_sampled(InferRequest("llm", {tensor.name: tensor}), LANGUAGE)
