"""One word has one meaning: what docs/glossary.md retired stands in no name, docstring, comment or page."""

import pytest
from tests.house.words import ROOT, files, uses

# Where retired words still stand. Nothing is added here.
PENDING = (
    "benchmarks",
    "docs/architecture.md",
    "docs/glossary.md",
    "e2e",
    "operator/argosy/autoscaling",
    "operator/argosy/cluster",
    "operator/argosy/controller",
    "operator/argosy/handlers",
    "operator/argosy/planning/amounts.py",
    "operator/argosy/planning/builds",
    "operator/argosy/planning/demand",
    "operator/argosy/planning/facts.py",
    "operator/argosy/planning/history.py",
    "operator/argosy/planning/migration",
    "operator/argosy/planning/nodes",
    "operator/argosy/planning/packing",
    "operator/argosy/planning/plan.py",
    "operator/argosy/planning/topology",
    "operator/argosy/planning/validation",
    "operator/argosy/reconcile.py",
    "operator/argosy/render",
    "operator/argosy/scaling.py",
    "operator/argosy/signals",
    "operator/argosy/simulation",
    "operator/argosy/snapshot.py",
    "operator/argosy/status",
    "runtime/argosy_runtime/backends",
    "runtime/argosy_runtime/execution",
    "runtime/argosy_runtime/modelconfig",
    "runtime/argosy_runtime/repository",
    "runtime/argosy_runtime/scheduling",
    "tests",
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
