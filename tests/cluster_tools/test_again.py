"""A test that failed in parallel with others runs again, alone; what fails twice, and too much at once, has failed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.again import MOST, Outcomes, Run, verdict

ROOT = Path(__file__).parents[2]
ONCE_BAD = """
def test_good():
    pass


def test_once_bad():
    seen = Path(__file__).with_name("seen")
    is_first = not seen.exists()
    seen.touch()
    assert not is_first
"""
BAD = """
def test_bad():
    assert False
"""


def again(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.again", "suite", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("tests", "code"), [(ONCE_BAD, 0), (ONCE_BAD + BAD, 1)])
def test_what_fails_once_is_named_and_passes_and_what_fails_twice_fails(tmp_path: Path, tests: str, code: int) -> None:
    (tmp_path / "test_some.py").write_text(f"from pathlib import Path\n{tests}")
    assert again(tmp_path).returncode == 1
    alone = again(tmp_path, "--alone")
    assert alone.returncode == code
    assert "suite: failed in parallel with others, passed alone: test_some.py::test_once_bad\n" in alone.stdout
    assert ("suite: failed, and did not pass alone: test_some.py::test_bad\n" in alone.stdout) is bool(code)
    assert "test_good" not in alone.stdout


def test_a_run_that_left_nothing_has_failed(tmp_path: Path) -> None:
    alone = again(tmp_path, "--alone")
    assert (alone.returncode, alone.stdout) == (1, "suite: did not come to its end: nothing runs again\n")


@pytest.mark.parametrize(
    ("code", "count", "says"),
    [
        (1, 1, ""),
        (1, MOST, ""),
        (1, MOST + 1, f"{MOST + 1} tests failed, more than {MOST}"),
        (1, 0, "pytest failed, but no test of it"),
        (2, 1, "pytest ended with code 2"),
        (3, 0, "pytest ended with code 3"),
    ],
)
def test_few_failures_run_again(code: int, count: int, says: str) -> None:
    assert Run(code, [f"test_{number}" for number in range(count)]).refusal() == says


def test_what_is_skipped_or_fails_at_its_end_has_not_passed() -> None:
    outcomes = Outcomes(failed={"end": None, "bad": None}, passed={"good": None, "end": None})
    assert verdict(["good", "end", "bad", "skipped"], outcomes) == (["good"], ["end", "bad", "skipped"])
