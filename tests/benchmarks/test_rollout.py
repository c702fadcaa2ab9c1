"""How the benchmark of rollouts simulates versions, and what few of its rollouts say."""

import json
from typing import Any

import numpy as np
import pytest
from benchmarks.rollout.__main__ import main
from benchmarks.rollout.mirroring import LOADS as LOADS_OF_DEVICE
from benchmarks.rollout.mirroring import ROWS, Mirroring, cell
from benchmarks.rollout.proving import BAD, CANDIDATES, CURVE, LOADS, Trial, slower
from benchmarks.rollout.releasing import Answers, Release
from benchmarks.rollout.rollouts import fewest
from benchmarks.rollout.serving import Arrivals, Quality, Version

from argosy.autoscaling.metrics.version_counts import VersionSignals


def test_requests_are_divided_exactly() -> None:
    arrivals = Arrivals(50.0, seed=1)
    counts = np.array([[len(part) for part in arrivals.between(at, at + 1, 0.05)] for at in range(200)])
    assert counts[:, 1].sum() == pytest.approx(0.05 * counts.sum(), abs=1)


def test_readings_have_every_request_once_with_its_batch() -> None:
    version, arrivals = Version(Quality(CURVE), 0.0, 1), Arrivals(60.0, 2)
    total, offered = VersionSignals(), 0
    for at in range(60):
        own, _ = arrivals.between(at, at + 1, 0.0)
        offered += len(own)
        total += version.read(own, at, at + 1)
    total += version.read(np.zeros(0), 60, 120)
    assert total.answered == offered
    assert total.latency is not None
    assert total.latency.count == offered
    assert sum(size.rows for size in total.executions.values()) == offered
    per_row = sum(size.seconds for size in total.executions.values()) / offered
    assert 1 / CURVE.throughput() < per_row < CURVE.seconds[0]


def test_a_slower_curve_is_slower_everywhere() -> None:
    assert slower(3.0).seconds == pytest.approx([3 * seconds for seconds in CURVE.seconds])


def test_the_best_test_needs_247_requests() -> None:
    assert round(fewest(BAD)) == 247


@pytest.mark.parametrize("load", ["middle", "full"])
@pytest.mark.parametrize(("candidate", "phase"), [("same", "Promoted"), ("failing", "Held"), ("slow", "Held")])
def test_good_versions_are_promoted_and_bad_ones_held(candidate: str, phase: str, load: str) -> None:
    assert load in LOADS
    assert [Trial(candidate, load, seed).run().phase for seed in range(3)] == [phase] * 3


def test_the_share_of_a_version_is_exact_in_an_exact_division() -> None:
    answers = Answers(0.0, [(float(at), 2 if at % 10 == 3 else 1) for at in range(100)])
    answers.seen[13] = (13.0, -2)
    assert answers.share(2) == pytest.approx(0.1)
    assert (answers.last(2), answers.last(3), answers.share(3)) == (93.0, 0.0, 0.0)


async def test_a_phase_and_its_version_are_read_from_one_status(monkeypatch: pytest.MonkeyPatch) -> None:
    def rollout(phase: str, candidate: int) -> dict[str, Any]:
        return {"phase": phase, "stable": {"version": 20}, "candidate": {"version": candidate}}

    read = iter([rollout("Promoted", 20), rollout("Loading", 21), rollout("Loading", 21), rollout("Promoted", 21)])
    monkeypatch.setattr(Release, "rollout", property(lambda _: next(read)))
    assert await Release.__new__(Release).until(21, "Promoted", "Held") == "Promoted"
    assert next(read, None) is None


@pytest.mark.parametrize("rows", ROWS.values())
async def test_a_busy_model_is_mirrored_and_its_clients_hardly_wait(rows: int) -> None:
    """The same requests on the same device in virtual time: the figures depend on the code alone."""
    busy = await cell(rows, LOADS_OF_DEVICE["busy"], 60.0)
    assert busy["verdict_s"] < 120
    assert 1 <= busy["mean_ratio"] < 1.2
    overloaded = await cell(rows, 1.5, 20.0)
    assert overloaded["mirrored_share"] < 0.1
    assert overloaded["mean_ratio"] < 1.1


async def test_requests_that_are_not_mirrored_are_answered_alike() -> None:
    trials = [Mirroring(1, share, seed=3) for share in (0.0, 1e-6)]
    for trial in trials:
        await trial.run(80.0, 10.0)
    assert trials[0].latencies == trials[1].latencies
    assert len(trials[0].latencies) == 800
    assert trials[0].compared == 0


def test_the_figures_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--parts", "proving", "mirroring", "--runs", "1", "--seconds", "5", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["shadow_verdict_s"] == max(result["mirroring_cells"][f"{kind} busy"]["verdict_s"] for kind in ROWS)
    assert result["false_rollbacks_per_1000"] == result["missed_bad_per_1000"] == 0
    assert set(result["cells"]) == {f"{kind} {load}" for kind in CANDIDATES for load in LOADS}
