"""How the scaling benchmark compares, and that its halves have nothing in common."""

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.scaling.__main__ import main
from benchmarks.scaling.baselines import baselines
from benchmarks.scaling.cases import JUDGE, TUNE, batch_curve, case_of, cases, constant, engine_curve
from benchmarks.scaling.comparing import OURS, Point, is_dominated, mean_of, summary

from argosy.simulation.traces import Trace
from argosy.simulation.traces import constant as steady


def point(violations: float, gpu_hours: float, changes: int = 0) -> Point:
    return Point(violations, gpu_hours, changes)


@pytest.mark.parametrize(
    ("ours", "dominated"),
    [
        (point(0.03, 9.0), True),
        (point(0.03, 7.0), False),
        (point(0.01, 9.0), False),
        (point(0.02005, 9.0), False),  # too little to tell apart
    ],
)
def test_ours_is_dominated_where_it_is_worse_in_both(ours: Point, dominated: bool) -> None:
    assert is_dominated(ours, point(0.02, 8.0)) is dominated


def test_the_summary_has_both_numbers_of_every_pair_and_their_mean_ratios() -> None:
    result = summary({"t": {OURS: point(0.0199, 4.0), "hpa": point(0.0099, 8.0), "kpa": point(0.0399, 2.0)}})
    assert result["traces"]["t"]["hpa"] == {"late": 0.0099, "gpu_hours": 8.0, "changes": 0}
    assert result["dominated_by"] == []
    assert result["mean_gpu_hours_ratio"] == pytest.approx(1.0)
    assert result["mean_late_ratio"] == pytest.approx(1.0)
    assert summary({"t": {OURS: point(0.5, 9.0), "hpa": point(0.1, 8.0)}})["dominated_by"] == ["t: hpa"]


def test_several_runs_are_their_mean() -> None:
    assert mean_of([point(0.1, 4.0, 3), point(0.3, 6.0, 6)]) == point(0.2, 5.0, 4)


def test_the_halves_have_no_trace_in_common() -> None:
    assert not cases(TUNE).keys() & cases(JUDGE).keys()


def test_curves_keep_their_shape_and_take_the_rate() -> None:
    curve = batch_curve("embed", 10.0)
    assert curve.throughput() == pytest.approx(10.0)
    assert list(curve.seconds) == sorted(curve.seconds)
    trace = steady(5.0, 600)
    trace = type(trace)("t", trace.seconds, trace.arrivals, trace.arrivals * 0 + 500, trace.arrivals * 0 + 40)
    assert engine_curve(trace, 2.0).throughput(500, 40) == pytest.approx(2.0)


def test_every_model_serves_any_trace() -> None:
    for model in ("embed", "safety", "llm"):
        assert case_of(steady(5.0, 600), model).workload.budget_s > 0
    assert len(constant()) == 48


def test_the_baselines_are_named() -> None:
    assert list(baselines(8)) == ["hpa", "keda", "kpa"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"time\nnan\n", "t.csv: line 2: time must be a number of at least 0; found 'nan'"),
        (b"", "t.csv: line 1: the columns need a time"),
        (b"time\n\xff\n", "t.csv: is no text in UTF-8"),
        (b"time\n" + b"1" * 131073, "t.csv: line 2: is no line of a CSV: field larger than field limit"),
        (b"HashFunction,1\nf,0\n", "t.csv: holds no request"),
        (b"time\n1\n9e14\n", "t.csv: line 3: time is 899,999,999,999,999 s after"),
        (b"HashFunction,1\nf,9e14\n", "t.csv: line 2: with it there are 900,000,000,000,000 requests"),
        (None, "t.csv: there is no such file"),
    ],
)
def test_a_file_that_is_no_trace_is_refused_in_words(tmp_path, capsys, content: bytes | None, says: str) -> None:
    file = tmp_path / "t.csv"
    if content is not None:
        file.write_bytes(content)
    assert says in refusal(capsys, "--trace", file)


def test_traces_of_one_name_are_refused(tmp_path, capsys) -> None:
    files = [tmp_path / "a" / "t.csv", tmp_path / "b" / "t.csv"]
    for file in files:
        file.parent.mkdir()
        file.write_text("time\n1\n")
    says = f"{files[1]}: has requests for t, as {files[0]} has"
    assert says in refusal(capsys, "--trace", files[0], "--trace", files[1])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ramp", "rampp"], "there is no trace rampp; there are flash_crowd, ramp"),
        (["ramp", "--workers", "0"], "--workers: must be a whole number above 0; found '0'"),
    ],
)
def test_wrong_arguments_are_refused_in_words(capsys, arguments: list[str], says: str) -> None:
    assert says in refusal(capsys, *arguments)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """Return what the benchmark writes as it refuses its arguments."""
    with pytest.raises(SystemExit, match="2"):
        main([str(argument) for argument in arguments])
    return capsys.readouterr().err


def test_a_trace_that_is_mostly_idle_is_a_case() -> None:
    assert case_of(Trace("idle", 86400.0, np.array([0.0, 86400.0])), "embed").workload.budget_s > 0


def test_any_csv_of_arrivals_is_compared(tmp_path, capsys) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("\ufefftime\n" + "\n".join(str(second / 4) for second in range(2400)) + "\n")
    assert main(["--trace", str(file), "--model", "safety", "--json", "--workers", "1"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert set(result["traces"]["mine"]) == {OURS, "hpa", "keda", "kpa"}
    assert {"dominated_by", "mean_gpu_hours_ratio", "mean_late_ratio"} <= result.keys()
