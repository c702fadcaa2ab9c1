"""Any text for a configuration is one, or an error that says what is wrong: no other exception, and no long wait."""

# An error is one of two outcomes, and not expected.
# ruff: noqa: PT017

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.mutations import mutated, texts
from tests.properties import examples

from argosy_runtime.modelconfig import ConfigError, check, check_structure, normalize, parse_json, parse_text, to_json

MODELS = Path(__file__).resolve().parents[2] / "models"
TEXTS = [path.read_text() for path in sorted(MODELS.glob("*/config.pbtxt"))]
CONFIGS = [to_json(parse_text(text)) for text in TEXTS]
WORDS = [
    "max_batch_size: ",
    "-1",
    "{",
    "}",
    "[",
    "]",
    ",",
    '"',
    "input ",
    "dims: ",
    "99999999999999999999",
    "1e999",
    "\0",
    "é",
    "#",
]


@st.composite
def spoiled(draw: st.DrawFn) -> str:
    """Draw a configuration's text with up to four pieces left out, doubled or put in."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(0, 4))):
        begin = draw(st.integers(0, len(text)))
        end = min(len(text), begin + draw(st.integers(0, 20)))
        piece = draw(st.sampled_from(["", text[begin:end] * 2, *WORDS]))
        text = text[:begin] + piece + text[end:]
    return text


def check_all(config: Any) -> None:
    """Run all that reads a configuration before a model is loaded."""
    check_structure(config, "m")
    try:
        complete = normalize(config, "m", ("model.py",), (0,))
    except ConfigError as error:
        assert str(error)
    else:
        check(complete, "m")
        json.dumps(to_json(complete))


@examples(300)
@given(spoiled())
def test_text(text: str) -> None:
    try:
        config = parse_text(text)
    except ConfigError as error:
        assert "failed to read text proto from config.pbtxt" in str(error)
    else:
        check_all(config)


@examples(300)
@given(texts(mutated(st.sampled_from(CONFIGS))))
def test_json(text: bytes) -> None:
    try:
        config = parse_json(text.decode("utf-8", "replace"))
    except ConfigError as error:
        assert str(error)
    else:
        check_all(config)


@pytest.mark.parametrize(
    "text", ["input {" * 10_000, "[" * 10_000, "parameters { key: 'a' value {" * 5_000, "\0" * 1000]
)
def test_deep_and_long_texts(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_text(text)


@pytest.mark.parametrize("text", ["[" * 10_000, '{"a":' * 10_000, '{"input":[' + "[" * 10_000, "1" * 100_000])
def test_deep_and_long_json(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_json(text)
