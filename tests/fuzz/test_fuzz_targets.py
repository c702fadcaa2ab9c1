"""Every target takes its seeds, and what once failed; the command reports what a process of its own printed."""

import pytest
from tests.fuzz.__main__ import Report, main
from tests.fuzz.registry import TARGETS
from tests.fuzz.target import FINDINGS

CRASHED = """
#2\tINITED cov: 70 ft: 80 corp: 1/1b
 === Uncaught Python exception: ===
ValueError: Invalid IPv6 URL
Traceback (most recent call last):
==1== ERROR: libFuzzer: fuzz target exited
stat::number_of_executed_units: 7660
"""
HUNG = "ALARM: working on the last Unit for 11 seconds\n==1== ERROR: libFuzzer: timeout after 11 seconds\n"


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_takes_its_seeds_and_its_findings(name: str) -> None:
    inputs = TARGETS[name].inputs()
    assert inputs
    for data in inputs.values():
        TARGETS[name].run(data)


def test_findings_are_of_targets() -> None:
    assert {path.name for path in FINDINGS.glob("*") if path.is_dir()} <= TARGETS.keys()


@pytest.mark.parametrize(
    ("output", "failed", "report"),
    [
        (CRASHED, True, Report(7660, 70, "ValueError: Invalid IPv6 URL")),
        (HUNG, True, Report(0, 0, "ALARM: working on the last Unit for 11 seconds")),
        ("#9 DONE cov: 79 ft: 1\nstat::number_of_executed_units: 12\n", False, Report(12, 79, "")),
        ("ends\nKilled\n", True, Report(0, 0, "Killed")),
    ],
)
def test_a_report_has_the_runs_the_branches_and_the_error(output: str, failed: bool, report: Report) -> None:
    assert Report.of(output, failed) == report


def test_one_input_runs_again_without_atheris(tmp_path) -> None:
    (tmp_path / "bad").write_bytes(b"\xff")
    assert main(["strings", "--repeat", str(tmp_path / "bad")]) == 0
    with pytest.raises(SystemExit):
        main(["no-such-target"])
