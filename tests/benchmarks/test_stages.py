"""The benchmark of stages: every stage of a request's way is passed and measured, over both protocols."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.page import TABLES
from benchmarks.stages.trace import EXECUTE, FRONT_IN, OWN, STAGES, Trace

ROOT = Path(__file__).parents[2]


def test_the_clock_runs_for_the_stage_that_was_entered_last() -> None:
    trace = Trace()
    assert trace.enter(EXECUTE) == OWN
    assert trace.enter(FRONT_IN) == EXECUTE
    trace.enter(OWN)
    spent = dict(zip(STAGES[FRONT_IN:], trace.microseconds(1, 0.0), strict=True))
    assert [name for name, us in spent.items() if us > 0] == [STAGES[FRONT_IN], STAGES[EXECUTE]]


def test_the_cost_of_entering_a_stage_is_subtracted() -> None:
    trace = Trace()
    trace.enter(EXECUTE)
    trace.enter(OWN)
    assert trace.microseconds(1, 1e12) == [0.0] * (len(STAGES) - 1)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Return what the benchmark writes, of few requests."""
    folder = tmp_path_factory.mktemp("stages")
    rows = [
        {"model": "identity", "protocol": "http", "concurrency": 1, "bytes": 64, "argosy_cpu_us": 77.0},
        {"model": "identity", "protocol": "grpc", "concurrency": 1, "bytes": 64, "argosy_cpu_us": 0.0},
    ]
    (folder / "triton.json").write_text(json.dumps({"rows": rows}))
    command = [sys.executable, "-m", "benchmarks.stages", "--here", "--requests=16", "--repeats=2"]
    files = [f"--json={folder / 'stages.json'}", f"--whole={folder / 'triton.json'}"]
    subprocess.run([*command, *files], check=True, cwd=ROOT, stdout=subprocess.DEVNULL, timeout=120)
    return json.loads((folder / "stages.json").read_text())


def test_every_stage_of_a_request_is_passed(measured: dict[str, list[dict[str, object]]]) -> None:
    rows = measured["rows"]
    assert [(row["protocol"], row["batch"]) for row in rows] == [("http", 1), ("http", 8), ("grpc", 1), ("grpc", 8)]
    for row in rows:
        stages = row["stages"]
        assert isinstance(stages, dict)
        assert list(stages) == list(STAGES[FRONT_IN:])
        assert all(us > 0 for us in stages.values()), row


def test_the_table_has_the_sum_and_the_total(measured: dict[str, list[dict[str, object]]]) -> None:
    build = measured["rows"][0]["form"]
    table = TABLES["stages"]["stages"](measured)
    assert f"| stage | http, 1 a batch, {build} |" in table
    assert "| sum |" in table
    assert ("| 77 |" in table) == (build == "compiled")
    assert "| 0 |" not in table
