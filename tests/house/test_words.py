"""No name has a word of `IN_NAMES` in tests/house/words.py, and no docstring, comment or page one of `IN_PROSE`."""

import pytest
from tests.house.words import ROOT, files, uses

PARTS = (
    "benchmarks",
    "charts",
    "docs",
    "e2e",
    "examples",
    "operator",
    "runtime",
    "tests",
    "hatch_build.py",
    "pyproject.toml",
    "Makefile",
    *(path.name for path in ROOT.glob("*.md")),
)


@pytest.mark.parametrize("part", PARTS)
def test_no_retired_word(part):
    matches = [str(use) for path in files(ROOT / part) for use in uses(path)]
    assert not matches, "\n".join(matches)
