"""Whole manifests with many mistakes, and every message about them, word for word."""

from pathlib import Path

import pytest

from argosy.api import parse_documents

CASES = Path(__file__).parent / "data"


@pytest.mark.parametrize("case", sorted(path.name for path in CASES.iterdir()))
def test_messages_are_as_written(case: str) -> None:
    text = (CASES / case / "input.yaml").read_text(encoding="utf-8")
    _, problems = parse_documents(text, "input.yaml")
    expected = (CASES / case / "expected.txt").read_text(encoding="utf-8")
    assert "\n".join(map(str, problems)) + "\n" == expected
