"""Calls of tools in the text of models, however it is divided into pieces."""

import itertools
import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.properties import examples

from argosy_runtime.protocol.openai.tools.calls import Calls, NamedCalls, TextCalls
from argosy_runtime.protocol.openai.tools.scanning import Arguments, CallStart, Piece

NAMES = ("weather", "add", "add_all")
ARGUMENTS = {"city": 'a "b" {c} \\ é', "days": [1, {"x": None}], "name": "n"}
A = json.dumps(ARGUMENTS)

HERMES = f'<tool_call>\n{{"name": "weather", "arguments": {A}}}\n</tool_call>'
TEXTS: dict[str, tuple[str, str, list[tuple[str, object]]]] = {
    "hermes": (HERMES, "", [("weather", ARGUMENTS)]),
    "hermes after content": (f"I look.\n{HERMES}", "I look.\n", [("weather", ARGUMENTS)]),
    "hermes, two": (f"\n{HERMES}\n{HERMES}\n", "", [("weather", ARGUMENTS)] * 2),
    "hermes, unknown function": ('<tool_call>{"name": "f", "arguments": {}}</tool_call>', "", [("f", {})]),
    "hermes, arguments first": (
        f'<tool_call>{{"arguments": {A}, "name": "add"}}</tool_call>',
        "",
        [("add", ARGUMENTS)],
    ),
    "hermes, no arguments": ('<tool_call>{"name": "add"}</tool_call>', "", [("add", {})]),
    "hermes, arguments as text": (
        '<tool_call>{"name": "add", "arguments": ' + json.dumps(A) + "}</tool_call>",
        "",
        [("add", ARGUMENTS)],
    ),
    "hermes, content after": (f"{HERMES}\nDone.", "Done.", [("weather", ARGUMENTS)]),
    "llama": (f'{{"name": "weather", "parameters": {A}}}', "", [("weather", ARGUMENTS)]),
    "llama, two": (
        f'{{"name": "weather", "parameters": {A}}}; {{"name": "add", "parameters": {{}}}}',
        "",
        [("weather", ARGUMENTS), ("add", {})],
    ),
    "llama, tag": (f'<|python_tag|>{{"type": "function", "name": "x", "parameters": {A}}}', "", [("x", ARGUMENTS)]),
    "llama, id": (f'{{"id": 3, "name": "weather", "parameters": {A}}}', "", [("weather", ARGUMENTS)]),
    "mistral": (f'[TOOL_CALLS][{{"name": "x", "arguments": {A}}}]', "", [("x", ARGUMENTS)]),
    "mistral, two": (
        f'[TOOL_CALLS] [{{"name": "x", "arguments": {A}}}, {{"name": "y", "arguments": {{}}}}]',
        "",
        [("x", ARGUMENTS), ("y", {})],
    ),
    "mistral without a marker": (f' [{{"name": "add", "arguments": {A}}}]', "", [("add", ARGUMENTS)]),
    "mistral, name first": (f"[TOOL_CALLS]x[ARGS]{A}", "", [("x", ARGUMENTS)]),
    "mistral, names first": (f"[TOOL_CALLS]x{A}[TOOL_CALLS]y[CALL_ID]1[ARGS]{{}}", "", [("x", ARGUMENTS), ("y", {})]),
    "mistral, name first without a marker": (f"add_all{A}", "", [("add_all", ARGUMENTS)]),
    "a name that begins another": ("add{}", "", [("add", {})]),
    "content": ("Hello, {world} [1] <b>", "Hello, {world} [1] <b>", []),
    "content like a name": ("add more", "add more", []),
    "content that is a name": ("add", "add", []),
    "JSON of another kind": ('{"answer": 42} and more', '{"answer": 42} and more', []),
    "JSON of an unknown function": ('{"name": "Bob", "age": 3}', '{"name": "Bob", "age": 3}', []),
    "a list": ('[1, {"name": "weather"}]', '[1, {"name": "weather"}]', []),
    "broken JSON": ('<tool_call>{name: "x"}</tool_call>', '<tool_call>{name: "x"}</tool_call>', []),
    "a marker alone": ("<tool_call>", "<tool_call>", []),
    "the begin of a marker": ("a <tool_c", "a <tool_c", []),
    "no text": ("", "", []),
    "an array's begin": ("[", "[", []),
}


def read(calls: Calls, pieces: Sequence[str]) -> tuple[str, list[tuple[str, str]]]:
    """Return the content and the calls of a text in pieces."""
    result: list[Piece] = [piece for text in pieces for piece in calls.feed(text)]
    result += calls.end()
    content, matches = "", []
    for piece in result:
        if isinstance(piece, str):
            assert piece
            content += piece
        elif isinstance(piece, CallStart):
            matches.append((piece.name, ""))
        else:
            name, arguments = matches[-1]
            matches[-1] = (name, arguments + piece.text)
    return content, matches


def parsed(calls: list[tuple[str, str]]) -> list[tuple[str, object]]:
    return [(name, json.loads(arguments)) for name, arguments in calls]


@pytest.mark.parametrize(("text", "content", "calls"), TEXTS.values(), ids=TEXTS)
def test_calls_are_read(text: str, content: str, calls: list[tuple[str, object]]) -> None:
    for pieces in ([text], list(text)):
        result = read(TextCalls(NAMES), pieces)
        assert (result[0], parsed(result[1])) == (content, calls)


@given(st.sampled_from(list(TEXTS.values())), st.lists(st.integers(0, 200), max_size=12))
@examples(200)
def test_the_division_into_pieces_changes_nothing(
    example: tuple[str, str, list[tuple[str, object]]], cuts: list[int]
) -> None:
    text = example[0]
    bounds = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[begin:end] for begin, end in itertools.pairwise(bounds)]
    assert read(TextCalls(NAMES), pieces) == read(TextCalls(NAMES), [text])


@given(st.text(max_size=80), st.lists(st.sampled_from(['{"name": "', "<tool_call>", "add", "{", "}", "[", '"'])))
@examples(200)
def test_no_text_breaks_the_reader(text: str, parts: list[str]) -> None:
    joined = text.join(parts) if parts else text
    content, _ = read(TextCalls(NAMES), list(joined))
    assert len(content) <= len(joined)


def test_arguments_come_as_they_are_written() -> None:
    calls = TextCalls(NAMES)
    assert calls.feed('<tool_call>{"name": "we') == []
    assert calls.feed('ather", "arguments": {"ci') == [CallStart("weather"), Arguments('{"ci')]
    assert calls.feed('ty": "P') == [Arguments('ty": "P')]
    assert calls.feed('aris"}}</tool_call>') == [Arguments('aris"}')]


def test_a_call_that_breaks_off_has_what_there_is() -> None:
    content, calls = read(TextCalls(NAMES), ['<tool_call>{"name": "add", "arguments": {"a": 1'])
    assert (content, calls) == ("", [("add", '{"a": 1')])


def test_all_text_of_a_named_function_is_its_arguments() -> None:
    calls = NamedCalls("add")
    assert calls.feed("") == []
    assert calls.feed('{"a"') == [CallStart("add"), Arguments('{"a"')]
    assert calls.feed(": 1}") == [Arguments(": 1}")]
    assert calls.end() == []
