"""A stream read in any pieces gives the same answer."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.bench.answers import Answer
from argosy.bench.events import EventReader

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}


def stream(*events: object, end: str = "\n") -> bytes:
    lines = [event if isinstance(event, str) else f"data: {json.dumps(event)}" for event in events]
    return "".join(line + end + end for line in lines).encode()


def completion(text: str) -> dict:
    return {"id": "cmpl-1", "object": "text_completion", "choices": [{"index": 0, "text": text, "logprobs": None}]}


def chat(delta: dict) -> dict:
    return {"id": "chatcmpl-1", "choices": [{"index": 0, "delta": delta, "finish_reason": None}], "usage": None}


STREAM = stream(
    chat({"role": "assistant", "content": ""}), chat({"content": "né"}), ": a comment",
    chat({"content": " 🦜"}), {"choices": [], "usage": USAGE}, "data: [DONE]",
)  # fmt: skip


def read(*pieces: bytes) -> Answer:
    """Return the answer of pieces that arrive at 1, 2, 3 …, of a request of 0."""
    answer = Answer(0.0, 0.25)
    reader = EventReader(answer)
    for now, piece in enumerate(pieces, 1):
        reader.feed(piece, float(now))
    reader.finish(len(pieces) + 1.0)
    return answer


def test_a_chat_of_one_piece() -> None:
    answer = read(STREAM)
    assert answer.error == ""
    assert answer.arrivals == [1.0, 1.0]
    assert (answer.prompt_tokens, answer.output_tokens, answer.cached_tokens) == (7, 3, 4)
    assert answer.end == answer.latency == 1.0


def test_times_are_those_of_the_piece_that_completes_an_event() -> None:
    first, second = STREAM.index(b"n\\u00e9"), STREAM.index(b"\\ud83e")
    answer = read(STREAM[: first + 3], STREAM[first + 3 : second], STREAM[second:])
    assert answer.arrivals == [2.0, 3.0]
    assert answer.gaps() == [1.0]
    assert answer.time_to_first_token == 2.0
    assert answer.time_per_output_token == 0.5
    assert answer.end == 3.0


@given(st.lists(st.integers(0, len(STREAM)), max_size=12), st.sampled_from(["\n", "\r\n"]))
def test_pieces_do_not_matter(cuts: list[int], end: str) -> None:
    text = STREAM.replace(b"\n", end.encode())
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    answer = read(*(text[begin:until] for begin, until in pairwise(edges)))
    assert (answer.error, len(answer.arrivals), answer.output_tokens) == ("", 2, 3)


def test_tokens_without_text_count_where_there_is_no_text_at_all() -> None:
    events = stream(completion(""), completion(""), {"choices": [], "usage": USAGE}, "data: [DONE]")
    assert read(events).arrivals == [1.0, 1.0]


def test_reasoning_is_text() -> None:
    events = stream(chat({"reasoning_content": "hm"}), {"choices": [], "usage": USAGE}, "data: [DONE]")
    assert read(events, b"").arrivals == [1.0]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (stream(completion("a")), "ended before [DONE]"),
        (stream(completion("a"), "data: [DONE]"), "no usage"),
        (stream({"choices": [], "usage": USAGE}, "data: [DONE]"), "no tokens"),
        (stream(completion("a"), {"error": {"message": "the engine ended"}}, "data: [DONE]"), "the engine ended"),
        (stream(completion("a"), {"error": "gone", "choices": []}), "gone"),
        (stream('data: {"choices": 3}'), "not as OpenAI's API has it"),
        (stream("data: {"), "not as OpenAI's API has it"),
        (b"", "ended before [DONE]"),
    ],
)
def test_what_makes_an_answer_incomplete(text: bytes, error: str) -> None:
    assert error in read(text).error
