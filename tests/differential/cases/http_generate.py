"""The generate endpoints, at once and as a stream of events."""

from typing import Any

from tests.differential.http_calls import Call, Case, post

RAMP = list(range(16))


def _at_once(body: Any, model: str = "text") -> Call:
    return post(f"/v2/models/{model}/generate", body)


def _stream(body: Any, model: str = "words") -> Call:
    return post(f"/v2/models/{model}/generate_stream", body)


CALLS = {
    "text": _at_once({"text_input": "hi"}),
    "parameter on top": _at_once({"text_input": "hi", "suffix": "!"}),
    "parameter nested": _at_once({"text_input": "hi", "parameters": {"suffix": "?"}}),
    "two inputs": _at_once({"text_input": "hi", "repetitions": 3}),
    "list of one": _at_once({"text_input": ["hi"]}),
    "batch": _at_once({"text_input": ["a", "b"]}),
    "nested batch": _at_once({"text_input": [["a"], ["b"]]}),
    "id": _at_once({"text_input": "hi", "id": "abc"}),
    "version": _at_once({"text_input": "hi"}, "text/versions/1"),
    "vector": _at_once({"INPUT0": [1, 2, 3]}, "identity"),
    "scalar": _at_once({"INPUT0": 1}, "identity"),
    "two vectors": _at_once({"INPUT0": RAMP, "INPUT1": RAMP}, "add_sub"),
    "ensemble": _at_once({"INPUT0": [1, 2, 3]}, "chain"),
    "one word": _at_once({"text_input": "one"}, "words"),
    "two words at once": _at_once({"text_input": "one two"}, "words"),
    "no word at once": _at_once({"text_input": ""}, "words"),
    "no input": _at_once({}),
    "no output": _at_once({}, "every_type"),
    "a response without outputs": _at_once({"text_input": "nothing"}, "words"),
    "unknown key": _at_once({"nope": 1}),
    "number for text": _at_once({"text_input": 5}),
    "text for number": _at_once({"text_input": "hi", "repetitions": "x"}),
    "fraction for integer": _at_once({"text_input": "hi", "repetitions": 1.5}),
    "parameter object": _at_once({"text_input": "hi", "x": {"y": 1}}),
    "parameter list": _at_once({"text_input": "hi", "x": [1]}),
    "parameter null": _at_once({"text_input": "hi", "x": None}),
    "parameters number": _at_once({"text_input": "hi", "parameters": 5}),
    "wrong length": _at_once({"INPUT0": RAMP[:15], "INPUT1": RAMP}, "add_sub"),
    "too nested": _at_once({"INPUT0": [[1, 2], [3, 4]]}, "identity"),
    "malformed": _at_once("{bad"),
    "empty": _at_once(""),
    "list": _at_once("[]"),
    "unknown model": _at_once({"text_input": "hi"}, "nope"),
    "unknown version": _at_once({"text_input": "hi"}, "text/versions/2"),
    "model raises": _at_once({"HOW": "raise"}, "failing"),
    "model not found": _at_once({"HOW": "NOT_FOUND"}, "failing"),
    "stream of a plain model": _stream({"text_input": "hi"}, "text"),
    "stream": _stream({"text_input": "one two three"}),
    "stream of none": _stream({"text_input": ""}),
    "stream of no outputs": _stream({}, "every_type"),
    "stream with a response without outputs": _stream({"text_input": "one nothing two"}),
    "stream that begins without outputs": _stream({"text_input": "nothing fail"}),
    "stream error within": _stream({"text_input": "one fail two"}),
    "stream error first": _stream({"text_input": "fail two"}),
    "stream no input": _stream({"nope": ""}),
    "stream malformed": _stream("{bad"),
    "stream unknown model": _stream({"text_input": "hi"}, "nope"),
    "stream numbers": _stream({"IN": [5, 6]}, "repeat"),
    "stream model raises": _stream({"HOW": "raise"}, "failing"),
    "stream model invalid": _stream({"HOW": "INVALID_ARG"}, "failing"),
}

CASES = [Case(f"generate {name}", (call,)) for name, call in CALLS.items()]
