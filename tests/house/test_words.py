"""One word has one meaning: no name, docstring, comment or page has a word that tests/house/words.py retires."""

import pytest
from tests.house.words import ROOT, files, uses

CHECKED = [
    path
    for folder in ("benchmarks", "docs", "e2e", "examples", "operator", "runtime", "tests", "README.md")
    for path in files(ROOT / folder)
]


@pytest.mark.parametrize("path", CHECKED, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_retired_word(path):
    assert not uses(path), "\n".join(map(str, uses(path)))
