"""JSON that is nested too deeply to be parsed, of which the rest is still read, and numbers that are too long."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.protocol.json.nesting import shallow
from argosy_runtime.protocol.json.text import loads

DEEP = "[" * 250_000 + "true" + "]" * 250_000


def test_members_next_to_a_deep_one_are_read() -> None:
    document = loads(f'{{"ready":{DEEP},"name":"a]\\"[","list":[1,[2]]}}'.encode())
    assert (document["name"], document["list"]) == ('a]"[', [1, [2]])
    assert type(document["ready"]) is list


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 5000 + "}" * 5000, "]" + "[" * 3000, '{"a":' * 3000])
def test_brackets_that_do_not_match_are_malformed(text: str) -> None:
    with pytest.raises(ServingError, match="failed to parse the request JSON buffer") as caught:
        loads(text.encode())
    assert caught.value.kind is ErrorKind.INTERNAL


def test_a_number_of_thousands_of_digits_is_malformed_next_to_one_that_is_none() -> None:
    with pytest.raises(ServingError, match=r"Number too big to be stored in double\. at 0") as caught:
        loads(b"[NaN," + b"9" * 5000 + b"]")
    assert caught.value.kind is ErrorKind.INTERNAL


def test_a_long_text_is_not_looked_through() -> None:
    with pytest.raises(ServingError, match=r"JSON nesting depth exceeds maximum allowed limit \(100\)") as caught:
        loads(b"[" * 2_000_000 + b"]" * 2_000_000)
    assert caught.value.kind is ErrorKind.INVALID_ARG


trees = st.recursive(st.none() | st.text(max_size=5) | st.integers(), lambda inner: st.lists(inner, max_size=3))


@given(trees)
def test_what_is_not_deep_stays_as_it_is(tree: Any) -> None:
    text = json.dumps({"x": tree}).encode()
    assert shallow(text) == text


@given(st.binary(max_size=200))
def test_any_text_is_parsed_or_refused(text: bytes) -> None:
    with contextlib.suppress(ServingError):
        loads(text)
