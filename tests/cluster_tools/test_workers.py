"""Tests that share something go to one worker, and those that take longest begin first."""

from pathlib import Path

import pytest
from tests.workers import EARLY, FIRST, TOGETHER, rank, share

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("nodeid", "expected"),
    [
        ("e2e/test_rollout.py::test_a", "node"),
        ("e2e/test_admission.py::test_a", "fleet"),
        ("e2e/test_fleet.py::test_a", "fleet"),
        ("tests/cluster_tools/test_node.py::test_b", "node"),
        ("tests/cluster_tools/test_network.py::test_c", "tests/cluster_tools/test_network.py"),
        ("tests/examples/test_make_run.py::test_d[a::b]", "make run"),
        ("tests/examples/test_assistant_models.py::test_e", "examples"),
        ("tests/docs/test_documents.py::test_every_command_works[README.md]", "ports"),
        ("tests/runtime/test_flags.py::test_f[/::x]", "tests/runtime/test_flags.py"),
    ],
)
def test_what_a_test_shares(nodeid: str, expected: str) -> None:
    assert share(nodeid) == expected


@pytest.mark.parametrize(("start", "name"), TOGETHER)
def test_what_shares_something_is_there(start: str, name: str) -> None:
    assert (ROOT / start).exists()


def test_the_longest_begin_first() -> None:
    assert set(FIRST) <= {name for _, name in TOGETHER}
    ids = ["tests/a.py::test", "tests/chart/test_lint.py::test", "tests/b.py::test", "e2e/test_zero.py::test"]
    assert sorted(ids, key=rank) == [ids[3], ids[1], ids[0], ids[2]]
    served = "tests/serve/releases/test_up_killed.py::test"
    assert sorted([ids[0], served, ids[1]], key=rank) == [ids[1], served, ids[0]]
    assert [start for start in EARLY if not (ROOT / start).is_dir()] == []
