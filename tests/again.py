"""`python -m tests.again NAME ARGUMENT…`: runs pytest, and keeps which tests failed, in build/tests/NAME.json.

`python -m tests.again NAME --alone ARGUMENT…` runs those tests again, on one worker and with nothing next to them: one
that fails only on a busy machine is named and counts as passed, one that fails twice has failed. More than 10 failures,
or a run that did not come to its end, have failed at once.
"""

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

MOST = 10
FOLDER = Path("build/tests")


@dataclass(frozen=True)
class Run:
    """How a run ended: pytest's exit code, and the ids of tests that failed."""

    code: int
    failed: list[str]

    def refusal(self) -> str:
        """Return why none of it runs again, or nothing."""
        if self.code != pytest.ExitCode.TESTS_FAILED:
            return f"pytest ended with code {self.code}"
        if not self.failed:
            return "pytest failed, but no test of it"
        return f"{len(self.failed)} tests failed, more than {MOST}" if len(self.failed) > MOST else ""


@dataclass
class Outcomes:
    """A plugin that keeps which tests failed, and which passed in each phase."""

    failed: dict[str, None] = field(default_factory=dict)
    passed: dict[str, None] = field(default_factory=dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep one phase of one test; a worker that died reports its test as failed."""
        if report.failed:
            self.failed[report.nodeid] = None
        elif report.passed and report.when == "call":
            self.passed[report.nodeid] = None

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep a file that cannot be imported."""
        if report.failed:
            self.failed[report.nodeid] = None


def verdict(first: Iterable[str], again: Outcomes) -> tuple[list[str], list[str]]:
    """Return which of the tests that failed passed the second time, and which did not; one that was skipped did not."""
    passed = [test for test in first if test in again.passed and test not in again.failed]
    return passed, [test for test in first if test not in passed]


def run(name: str, arguments: list[str]) -> int:
    """Run pytest, write how it ended, and return its exit code."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = FOLDER / f"{name}.json"
    file.unlink(missing_ok=True)
    outcomes = Outcomes()
    code = int(pytest.main(arguments, plugins=[outcomes]))
    file.write_text(json.dumps(asdict(Run(code, list(outcomes.failed)))))
    return code


def run_alone(name: str, arguments: list[str]) -> int:
    """Run again what failed in the run of this name, say how it ended, and return 0 where all of it passed."""
    file = FOLDER / f"{name}.json"
    if not file.is_file():
        print(f"{name}: did not come to its end: nothing runs again")
        return 1
    first = Run(**json.loads(file.read_text()))
    if first.code == pytest.ExitCode.OK:
        return 0
    if refusal := first.refusal():
        print(f"{name}: {refusal}: nothing runs again")
        return 1
    print(f"{name}: {len(first.failed)} failed and run again, alone", flush=True)
    outcomes = Outcomes()
    code = pytest.main([*arguments, "--numprocesses=1", *first.failed], plugins=[outcomes])
    passed, failed = verdict(first.failed, outcomes)
    print(*(f"{name}: failed in parallel with others, passed alone: {test}" for test in passed), sep="\n")
    print(*(f"{name}: failed, and did not pass alone: {test}" for test in failed), sep="\n", flush=True)
    return int(bool(failed) or code != pytest.ExitCode.OK)


def main() -> None:
    """Run what the command line says."""
    name, *arguments = sys.argv[1:]
    sys.exit(run_alone(name, arguments[1:]) if arguments[:1] == ["--alone"] else run(name, arguments))


if __name__ == "__main__":
    main()
