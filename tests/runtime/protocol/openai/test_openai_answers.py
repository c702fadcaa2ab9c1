"""Answers: whole ones and streams, of the same deltas."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.language import Delta, LogprobEntry, ResponseReader
from argosy_runtime.protocol.openai.errors import ApiError
from argosy_runtime.protocol.openai.responses.chat import ChatAnswer, ChatStream
from argosy_runtime.protocol.openai.responses.completion import CompletionAnswer, CompletionOptions, CompletionStream
from argosy_runtime.protocol.openai.responses.head import AnswerHead

HEAD = AnswerHead("id-1", 1700000000, 'a "model" %d', "fp_1")


def events(data: bytes) -> list[Any]:
    """Return the JSON of the events, which end with [DONE]."""
    assert data.endswith(b"data: [DONE]\n\n")
    parts = data.removesuffix(b"data: [DONE]\n\n").split(b"\n\n")
    assert parts.pop() == b""
    return [json.loads(part.removeprefix(b"data: ")) for part in parts]


def entry(token: bytes, logprob: float = -1.0, rank: int = 1) -> LogprobEntry:
    return LogprobEntry(logprob, rank, token.decode(errors="replace"), list(token))


def position(token: bytes) -> dict[int, LogprobEntry]:
    """Return a token that is the second likeliest, after another."""
    return {1: entry(token, -2.0, 2), 2: entry(b"\xe2", -0.5, 1)}


_texts = st.text(max_size=6)


@st.composite
def choices(draw: st.DrawFn) -> list[Delta]:
    """Return the deltas of one to three choices, interleaved; each ends."""
    indexes = range(draw(st.integers(1, 3)))
    deltas = []
    for index in indexes:
        pieces = draw(st.lists(_texts, max_size=4))
        deltas.append([Delta(index, piece, logprobs=[position(piece.encode())]) for piece in pieces])
        deltas[-1].append(Delta(index, draw(_texts), finish_reason=draw(st.sampled_from(["stop", "length"]))))
    merged = []
    while any(deltas):
        queue = draw(st.sampled_from([queue for queue in deltas if queue]))
        merged.append(queue.pop(0))
    return merged


@given(choices(), st.sampled_from([None, 0, 1, 5]), st.booleans(), st.booleans())
def test_a_chat_is_the_same_streamed_or_not(
    deltas: list[Delta], logprobs: int | None, include_usage: bool, obfuscates: bool
) -> None:
    reader = ResponseReader()
    reader.num_input_tokens = 3
    answer = ChatAnswer(HEAD, reader, logprobs)
    stream = ChatStream(HEAD, reader, logprobs, include_usage, obfuscates)
    data = b""
    for delta in deltas:
        answer.take(0, delta)
        data += stream.take(0, delta)
    document = json.loads(answer.body())
    chunks = events(data + stream.end())
    for choice in document["choices"]:
        parts = [part for chunk in chunks for part in chunk["choices"] if part["index"] == choice["index"]]
        assert parts[0]["delta"]["role"] == "assistant"
        assert "".join(part["delta"].get("content", "") for part in parts) == choice["message"]["content"]
        assert [part["finish_reason"] for part in parts if part["finish_reason"]] == [choice["finish_reason"]]
        assert parts[-1]["finish_reason"]
        tokens = [token for part in parts if part["logprobs"] for token in part["logprobs"]["content"]]
        assert tokens == ([] if choice["logprobs"] is None else choice["logprobs"]["content"])
    assert {chunk["model"] for chunk in chunks} == {document["model"]} == {HEAD.model}
    assert all(chunk["object"] == "chat.completion.chunk" for chunk in chunks)
    assert [chunk["usage"] is None for chunk in chunks if "usage" in chunk] == (
        [True] * (len(chunks) - 1) + [False] if include_usage else []
    )


@given(choices(), st.sampled_from([None, 0, 2]), st.sampled_from(["", "Prompt "]), st.booleans())
def test_a_completion_is_the_same_streamed_or_not(
    deltas: list[Delta], logprobs: int | None, echo: str, obfuscates: bool
) -> None:
    reader = ResponseReader()
    reader.prompt_logprobs = [None, position(b"mpt ")]
    options = CompletionOptions([echo, echo], 3, logprobs, bool(echo))
    answer = CompletionAnswer(HEAD, [reader, reader], options)
    stream = CompletionStream(HEAD, [reader, reader], options, obfuscates=obfuscates)
    data = b""
    for prompt in (0, 1):
        for delta in deltas:
            answer.take(prompt, delta)
            data += stream.take(prompt, delta)
    document = json.loads(answer.body())
    chunks = events(data + stream.end())
    assert sorted(choice["index"] for choice in document["choices"]) == [
        prompt * 3 + index for prompt in (0, 1) for index in sorted({delta.index for delta in deltas})
    ]
    for choice in document["choices"]:
        parts = [part for chunk in chunks for part in chunk["choices"] if part["index"] == choice["index"]]
        assert "".join(part["text"] for part in parts) == choice["text"]
        assert choice["text"].startswith(echo)
        assert [part["finish_reason"] for part in parts if part["finish_reason"]] == [choice["finish_reason"]]
        for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset"):
            values = [value for part in parts if part["logprobs"] for value in part["logprobs"][name]]
            assert values == ([] if choice["logprobs"] is None else choice["logprobs"][name])


def test_tokens_that_are_no_characters_differ() -> None:
    answer = ChatAnswer(HEAD, ResponseReader(), 2)
    answer.take(0, Delta(0, "€", finish_reason="stop", logprobs=[position(b"\xe2\x82"), position(b"\xac")]))
    first, second = json.loads(answer.body())["choices"][0]["logprobs"]["content"]
    assert (first["token"], first["bytes"]) == ("bytes:\\xe2\\x82", [0xE2, 0x82])
    assert (second["token"], second["bytes"]) == ("bytes:\\xac", [0xAC])
    assert [top["token"] for top in first["top_logprobs"]] == ["bytes:\\xe2", "bytes:\\xe2\\x82"]
    assert [top["logprob"] for top in first["top_logprobs"]] == [-0.5, -2.0]


def test_no_more_alternatives_than_requested() -> None:
    answer = ChatAnswer(HEAD, ResponseReader(), 1)
    answer.take(0, Delta(0, "a", finish_reason="stop", logprobs=[position(b"a")]))
    (token,) = json.loads(answer.body())["choices"][0]["logprobs"]["content"]
    assert [top["bytes"] for top in token["top_logprobs"]] == [[0xE2]]


def test_a_probability_of_zero_is_a_number() -> None:
    answer = ChatAnswer(HEAD, ResponseReader(), 0)
    answer.take(0, Delta(0, "a", finish_reason="stop", logprobs=[{1: entry(b"a", float("-inf"))}]))
    assert json.loads(answer.body())["choices"][0]["logprobs"]["content"][0]["logprob"] == -9999.0


def test_an_echo_with_all_its_tokens() -> None:
    reader = ResponseReader()
    reader.prompt_logprobs = [None, position("ü".encode()[:1]), position("ü".encode()[1:])]
    answer = CompletionAnswer(HEAD, [reader], CompletionOptions(["Hü"], 1, 1, echo=True))
    answer.take(0, Delta(0, "!", finish_reason="length", logprobs=[position(b"!")]))
    (choice,) = json.loads(answer.body())["choices"]
    assert choice["text"] == "Hü!"
    assert choice["logprobs"]["tokens"] == ["H", "bytes:\\xc3", "bytes:\\xbc", "!"]
    assert choice["logprobs"]["text_offset"] == [0, 1, 1, 2]
    assert choice["logprobs"]["token_logprobs"] == [None, -2.0, -2.0, -2.0]
    assert choice["logprobs"]["top_logprobs"] == [
        None,
        {"bytes:\\xe2": -0.5, "bytes:\\xc3": -2.0},
        {"bytes:\\xe2": -0.5, "bytes:\\xbc": -2.0},
        {"bytes:\\xe2": -0.5, "!": -2.0},
    ]


def test_tokens_that_the_model_repeats() -> None:
    reader = ResponseReader()
    reader.prompt_logprobs = [None, position(b"b")]
    answer = CompletionAnswer(HEAD, [reader], CompletionOptions([""], 1, 0, echo=True))
    answer.take(0, Delta(0, "abc", finish_reason="length", logprobs=[position(b"c")]))
    (choice,) = json.loads(answer.body())["choices"]
    assert choice["logprobs"]["tokens"] == ["a", "b", "c"]
    assert choice["logprobs"]["text_offset"] == [0, 1, 2]


@pytest.mark.parametrize("reason", ["abort", "error"])
def test_what_an_engine_gives_up_is_an_error(reason: str) -> None:
    with pytest.raises(ApiError) as caught:
        ChatStream(HEAD, ResponseReader()).take(0, Delta(0, "", finish_reason=reason))
    assert caught.value.status == 503


def test_padded_events_have_few_sizes() -> None:
    stream = ChatStream(HEAD, ResponseReader(), obfuscates=True)
    stream.take(0, Delta(0, "x"))
    sizes = {len(stream.take(0, Delta(0, "y" * length))) for length in range(1, 30)}
    assert len(sizes) <= 2


def test_the_best_choices_are_the_likeliest_by_the_token() -> None:
    reader = ResponseReader()
    reader.num_output_tokens = {0: 1, 1: 4, 2: 2}
    answer = CompletionAnswer(HEAD, [reader], CompletionOptions([""], 3, best=2))
    for index, cumulative in ((0, -3.0), (1, -4.0), (2, -8.0)):
        answer.take(0, Delta(index, str(index), finish_reason="stop", cumulative_logprob=cumulative))
    document = json.loads(answer.body())
    assert [(choice["index"], choice["text"]) for choice in document["choices"]] == [(0, "1"), (1, "0")]
    assert document["usage"]["completion_tokens"] == 7
