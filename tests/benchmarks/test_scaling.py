"""How the scaling benchmark compares, and that its halves have nothing in common."""

import json

import pytest
from benchmarks.scaling.__main__ import main
from benchmarks.scaling.baselines import baselines
from benchmarks.scaling.cases import JUDGE, TUNE, batch_curve, case_of, cases, constant, engine_curve
from benchmarks.scaling.comparing import OURS, Point, is_dominated, mean_of, summary

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


def test_any_csv_of_arrivals_is_compared(tmp_path, capsys) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("time\n" + "\n".join(str(second / 4) for second in range(2400)) + "\n")
    assert main(["--trace", str(file), "--model", "safety", "--json", "--workers", "1"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert set(result["traces"]["mine"]) == {OURS, "hpa", "keda", "kpa"}
    assert {"dominated_by", "mean_gpu_hours_ratio", "mean_late_ratio"} <= result.keys()
