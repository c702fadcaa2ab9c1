"""One word has one meaning: what docs/glossary.md retired stands in no name, docstring, comment or page."""

import pytest
from tests.house.words import ROOT, files, uses

# Where retired words still stand. Nothing is added here.
PENDING = (
    "e2e/asking",
    "e2e/cluster",
    "e2e/conftest.py",
    "e2e/declared",
    "e2e/deployed",
    "e2e/parts",
    "e2e/storage",
    "e2e/test_admission.py",
    "e2e/test_assistant.py",
    "e2e/test_autoscaling.py",
    "e2e/test_engines.py",
    "e2e/test_failures.py",
    "e2e/test_fleet.py",
    "e2e/test_measuring.py",
    "e2e/test_refusals.py",
    "e2e/test_rollout.py",
    "e2e/test_scaling.py",
    "e2e/test_storage_troubles.py",
    "e2e/test_zero.py",
    "tests/docs",
    "tests/examples",
    "tests/operator/simulation",
)
CHECKED = [
    path
    for folder in ("benchmarks", "docs", "e2e", "examples", "operator", "runtime", "tests", "README.md")
    for path in files(ROOT / folder)
    if not any(path.is_relative_to(ROOT / pending) for pending in PENDING)
]


@pytest.mark.parametrize("path", CHECKED, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_retired_word(path):
    assert not uses(path), "\n".join(map(str, uses(path)))
