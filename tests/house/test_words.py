"""No name has a word of `IN_NAMES` in tests/house/words.py, and no docstring, comment or page one of `IN_PROSE`."""

import pytest
from tests.house.words import ROOT, files, uses

CHECKED = [
    path
    for part in (
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
    for path in files(ROOT / part)
]


@pytest.mark.parametrize("path", CHECKED, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_retired_word(path):
    assert not uses(path), "\n".join(map(str, uses(path)))
