"""`argosy replay` of a bundle: the same decision, another one, and files that are no bundles."""

import gzip
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.operator.planning.declared import gpu_node, model, pool
from tests.operator.planning.simulated_cluster import START, Cluster
from typer.testing import CliRunner

from argosy.cli.application import application
from argosy.reconcile import reconcile
from argosy.replay.folder import BundleFolder

DRAIN = timedelta(seconds=5)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Return the bundle of a round of a pool with one model that serves."""
    cluster = Cluster((gpu_node("n", 2),))
    cluster.settle([pool(), model("a")])
    outcome = reconcile(cluster.snapshot, START, DRAIN)
    BundleFolder(tmp_path, "0.0.9").record("default/p", cluster.snapshot, START, DRAIN, outcome)
    (path,) = tmp_path.iterdir()
    return path


def _replay(*arguments: str) -> Any:
    return CliRunner().invoke(application(["replay"]), ["replay", *arguments])


def test_the_same_decision(bundle: Path) -> None:
    result = _replay(str(bundle))
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "A round of default/p at 2026-01-01T00:00:00+00:00, argosy 0.0.9"
    assert "where the decision differs, the other release may be why" in lines[1]
    assert [line.split()[0] for line in lines if line.startswith(("NAME", "a ", "p "))] == ["NAME", "a", "NAME", "p"]
    assert lines[-1] == "The decision is the same."


def test_another_decision(bundle: Path) -> None:
    document = json.loads(gzip.decompress(bundle.read_bytes()))
    status = document["decisions"]["statuses"]["InferenceModel default/a"]
    del status["replicas"]
    status["former"] = "x"
    edited = bundle.with_name("edited.json")
    edited.write_text(json.dumps(document))
    result = _replay(str(edited))
    assert result.exit_code == 2
    assert result.stdout.splitlines()[-3:] == [
        "The decision differs in 2 fields:",
        '  decisions.statuses.InferenceModel default/a.former: "x" -> absent',
        "  decisions.statuses.InferenceModel default/a.replicas: absent -> 1",
    ]
    result = _replay(str(edited), "-o", "json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["differences"] == [
        {"path": "decisions.statuses.InferenceModel default/a.former", "recorded": "x"},
        {"path": "decisions.statuses.InferenceModel default/a.replicas", "replayed": 1},
    ]


def test_a_round_that_failed(tmp_path: Path) -> None:
    snapshot = Cluster((gpu_node("n", 2),)).snapshot
    BundleFolder(tmp_path, "0.1.0").record("up", snapshot, START, DRAIN, KeyError("gpu-7"))
    (path,) = tmp_path.iterdir()
    result = _replay(str(path))
    assert result.exit_code == 2
    assert "The round ended with KeyError: 'gpu-7'" in result.stdout
    assert 'error: "KeyError: \'gpu-7\'" -> ""' in result.stdout


@pytest.mark.parametrize("text", ["", "kind: Pod", '{"argosyBundle": "2"}', "[1]"])
def test_a_file_that_is_no_bundle(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    result = _replay(str(path))
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{path}: this is no ")
