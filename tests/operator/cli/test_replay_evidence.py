"""`argosy replay` of the round that took a bad version back: its readings become the same verdict."""

import gzip
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.operator.analysis.versions import answered
from tests.operator.controller.test_rollout_analysis import AnalyzedRollout
from tests.operator.planning import simulated_cluster
from typer.testing import CliRunner

from argosy.api.values.reuse import RoundCache
from argosy.cli.application import application
from argosy.planning.migration.pool_migration import DRAIN_PERIOD
from argosy.reconcile import RoundOutcome, reconcile
from argosy.replay.folder import BundleFolder
from argosy.rollout.state import Phase
from argosy.snapshot import FleetSnapshot

MEMBER = "InferenceModel default/m"
PASSWORD = "hunter2hunter2"


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the bundles, in order, of a rollout whose candidate has no request for a while and fails then."""
    root = tmp_path_factory.mktemp("bundles")
    folder = BundleFolder(root, "0.0.9")

    def recorded(snapshot: FleetSnapshot, now: datetime, cache: RoundCache) -> RoundOutcome:
        outcome = reconcile(snapshot, now, cache=cache)
        folder.record("default/p", snapshot, now, DRAIN_PERIOD, outcome)
        return outcome

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulated_cluster, "reconcile", recorded)
        analyzed = AnalyzedRollout()
        analyzed.until(Phase.STEPPING, answered(0))
        for _ in range(9):
            analyzed.second(answered(10), error=f"http://me:{PASSWORD}@prometheus:9090 is slow")
        analyzed.second(answered(20, 3))
        analyzed.until(Phase.HELD, answered(0))
    return sorted(root.iterdir())


def _recordings(path: Path) -> dict[str, Any]:
    recordings: dict[str, Any] = _document(path)["snapshot"].get("recordings", {})
    return recordings


def _document(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return document


def _verdict_round(bundles: list[Path]) -> Path:
    """Return the bundle of the round that acted upon the verdict."""
    failed = ("Failed", "ErrorRate")
    for path in bundles:
        verdict = _document(path)["snapshot"].get("evidence", {}).get(MEMBER, {}).get("verdict") or {}
        if (verdict.get("outcome"), verdict.get("reason")) == failed:
            return path
    raise AssertionError("no round has the verdict")


def _replay(*arguments: str) -> Any:
    return CliRunner().invoke(application(["replay"]), ["replay", *arguments])


def test_every_bundle_is_decided_the_same(bundles: list[Path]) -> None:
    assert len([path for path in bundles if _recordings(path)]) > 3
    for path in bundles:
        result = _replay(str(path))
        assert result.exit_code == 0, (path.name, result.output)


def test_the_report_says_at_which_reading_a_measurement_turned(bundles: list[Path]) -> None:
    lines = _replay(str(_verdict_round(bundles))).stdout.splitlines()
    begin, end = (next(index for index, line in enumerate(lines) if word in line) for word in ("next to", "P passes"))
    assert max(map(len, lines[begin:end])) <= 80
    table = [line for line in lines if " s " in line]
    turned = [line.split() for line in table if " Failed " in line]
    assert [line[3] for line in turned] == ["errorRate", "verdict"]
    first = next(line.split() for line in table if "Inconclusive" in line and "errorRate" in line)
    assert int(turned[0][0]) - int(first[0]) >= 9
    assert turned[0][0] == turned[1][0], "the verdict follows at once"
    assert float(turned[0][-1]) >= 1, "the evidence is past its limit"
    (timeline,) = [line for line in lines if line.startswith("errorRate ") and "|" in line]
    assert timeline.rstrip("|").endswith("-F")
    assert any(line.startswith("Verdict: Failed (ErrorRate): errorRate: 3 of 110 requests failed") for line in lines)
    assert lines[-1] == "The decision is the same."


def test_the_readings_as_json(bundles: list[Path]) -> None:
    result = _replay(str(_verdict_round(bundles)), "-o", "json")
    (evidence,) = json.loads(result.stdout)["evidence"]
    assert evidence["member"] == MEMBER
    assert evidence["verdict"]["outcome"] == "Failed"
    assert [turn["after"] for turn in evidence["turns"] if turn["name"] == "errorRate"] == ["Inconclusive", "Failed"]


def test_other_readings_make_another_verdict(bundles: list[Path], tmp_path: Path) -> None:
    document = _document(_verdict_round(bundles))
    readings = document["snapshot"]["recordings"][MEMBER]["stretches"][-1]["readings"]
    del readings[-1]["versions"]["2"]["errors"]
    edited = tmp_path / "edited.json"
    edited.write_text(json.dumps(document))
    result = _replay(str(edited))
    assert result.exit_code == 2
    assert f'evidence.{MEMBER}.verdict.outcome: "Failed" -> "Inconclusive"' in result.stdout


def test_a_password_is_in_no_bundle(bundles: list[Path]) -> None:
    texts = [gzip.decompress(path.read_bytes()).decode() for path in bundles]
    assert any("http://me:REDACTED@prometheus" in text for text in texts)
    assert not any(PASSWORD in text for text in texts)


@pytest.mark.parametrize("name", ["evidence.svg", "evidence.png"])
def test_a_picture(bundles: list[Path], tmp_path: Path, name: str) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib draws it: pip install 'argosy[pictures]'")
    assert _replay(str(_verdict_round(bundles)), "--plot", str(tmp_path / name)).exit_code == 0
    assert (tmp_path / name).stat().st_size > 5000
    if name.endswith(".svg"):
        text = (tmp_path / name).read_text()
        assert "errorRate" in text


def test_a_picture_of_a_round_without_a_candidate_is_refused(bundles: list[Path], tmp_path: Path) -> None:
    result = _replay(str(bundles[-1]), "--plot", str(tmp_path / "evidence.svg"))
    assert result.exit_code == 1
    assert "no candidate was being proven then" in result.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"argosyBundle": 1, "release": "0.0.3"}', "format 1, and this release reads format 2: replay it by"),
        ('{"argosyBundle": 3, "release": "0.9.0"}', "by the release that wrote it, argosy 0.9.0"),
    ],
)
def test_a_bundle_of_another_format(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "old.json"
    path.write_text(text)
    result = _replay(str(path))
    assert result.exit_code == 1
    assert says in result.stderr
