"""examples/rollout: a good version is promoted, a bad one is taken back, and its rounds are decided again offline."""

import json
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.running import ROOT, Starter, Up, Workspace, environment, free_ports
from typer.testing import CliRunner

from argosy.cli.application import application
from argosy.replay.decisions import replayed
from argosy.replay.folder import read_bundle

pytestmark = pytest.mark.timeout(240)

EXAMPLE = ROOT / "examples" / "rollout"
LAST_STEP = 0.5


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Yield `argosy up` on a copy of the example, once version 1 serves."""
    workspace = Workspace(tmp_path_factory.mktemp("rollout"))
    shutil.copytree(EXAMPLE, workspace.manifests)
    starter = Starter(workspace, free_ports())
    try:
        up = starter("--bundles", str(workspace.root / "bundles"))
        up.until_ready("polarity")
        yield up
    finally:
        starter.end()


@pytest.fixture(scope="module")
def record(up: Up) -> dict[str, Any]:
    """Return what drive.py records of the two releases; a picture is next to it."""
    folder = up.workspace.root
    flags = [
        *("--url", up.url, "--state", up.workspace.state, "--manifest", up.workspace.manifests / "models.yaml"),
        *("--rest", "0.5", "--record", folder / "record.json", "--picture", folder / "rollout.svg"),
    ]
    command = [sys.executable, up.workspace.manifests / "drive.py", *flags]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, env=environment(), timeout=200)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{up.output}"
    recorded: dict[str, Any] = json.loads((folder / "record.json").read_text())
    return recorded | {"output": done.stdout.splitlines()}


@pytest.mark.xdist_group("rollout example")
def test_the_good_version_is_promoted_and_the_bad_one_taken_back(record: dict[str, Any]) -> None:
    good, bad, *_ = record["output"]
    assert good.startswith("version 2: Promoted: ")
    assert bad.startswith("version 3: Held: ")
    assert "requests failed" in bad


@pytest.mark.xdist_group("rollout example")
def test_no_more_than_the_steps_share_met_the_bad_version(record: dict[str, Any]) -> None:
    answers = [version for _, version in record["answers"]]
    assert {0, 1, 2, 3} == set(answers)
    first = answers.index(3)
    during = answers[first - 1 : len(answers) - answers[::-1].index(3)]
    assert sum(version in (0, 3) for version in during) <= LAST_STEP * len(during) + 1
    assert not [version for version in answers[: answers.index(2)] if version != 1]


@pytest.mark.xdist_group("rollout example")
def test_the_picture_has_every_version(up: Up, record: dict[str, Any]) -> None:
    picture = (up.workspace.root / "rollout.svg").read_text()
    assert [name for name in ("version 1", "version 2", "version 3", "failed") if name not in picture] == []


@pytest.mark.xdist_group("rollout example")
def test_history_and_the_way_back_by_hand(up: Up, record: dict[str, Any]) -> None:
    state = f"--state={up.workspace.state}"
    run, commands = CliRunner(), application(["rollout"])
    history = json.loads(run.invoke(commands, ["rollout", "history", "polarity", "-o", "json", state]).stdout)
    assert [(entry["version"], entry["outcome"]) for entry in history[:2]] == [(3, "RolledBack"), (2, "Promoted")]
    held = run.invoke(commands, ["rollout", "status", "polarity", state])
    assert held.exit_code == 1
    assert "Held" in held.stdout
    assert run.invoke(commands, ["rollout", "retry", "polarity", state]).exit_code == 0
    assert run.invoke(commands, ["rollout", "promote", "polarity", state]).exit_code == 0
    promoted = run.invoke(commands, ["rollout", "status", "polarity", "--timeout", "60", state])
    assert promoted.exit_code == 0, promoted.stdout
    assert "(version 3) serves" in promoted.stdout.splitlines()[-1]
    assert run.invoke(commands, ["rollout", "undo", "polarity", state]).exit_code == 0
    undone = run.invoke(commands, ["rollout", "status", "polarity", "--timeout", "60", state])
    assert undone.exit_code == 1, undone.stdout
    assert up.statuses()["polarity"]["rollout"]["stable"]["version"] == 2


@pytest.mark.xdist_group("rollout example")
def test_every_round_is_decided_the_same_from_its_bundle(up: Up, record: dict[str, Any]) -> None:
    bundles = sorted((up.workspace.root / "bundles").iterdir())
    assert len(bundles) > 10
    for path in bundles:
        assert [str(one) for one in replayed(read_bundle(path)).differences] == [], path.name


def test_a_version_is_declared_in_the_manifest(tmp_path: Path) -> None:
    drive = runpy.run_path(str(EXAMPLE / "drive.py"))
    manifest = Path(shutil.copy(EXAMPLE / "models.yaml", tmp_path))
    drive["declare"](manifest, 3)
    assert "version: 3\n  storageUri: file:models/3" in manifest.read_text()
    assert manifest.read_text().count("version: 3") == 1
