"""Golden model repositories: tests/data/render/<case>/{input,expected}."""

import os
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import pytest

from argosy.api.documents import parse_documents
from argosy.cli.planning.fleet.nodes import read_nodes
from argosy.planning.builds.build import ObservedBuild, ScheduledBuild
from argosy.reconcile import reconcile
from argosy.snapshot import FleetSnapshot, PoolSnapshot
from argosy_agent.contract.builds import BuildReport, BuildState
from argosy_runtime.modelconfig import check_structure, normalize, parse_text

CASES = sorted(path for path in (Path(__file__).parents[2] / "data" / "render").iterdir() if path.is_dir())
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def rendered(case: Path) -> dict[str, str]:
    """Return every file of the case's repositories, by its path."""
    resources, problems = parse_documents((case / "input" / "all.yaml").read_text(), "all.yaml")
    assert problems == []
    nodes = read_nodes(case / "input" / "nodes.yaml").nodes
    snapshot = FleetSnapshot(tuple(resources), nodes)
    outcome = reconcile(snapshot, NOW)
    built = {key: PoolSnapshot(builds=dict(map(ready, builds))) for key, builds in outcome.builds.items()}
    outcome = reconcile(replace(snapshot, pools=built), NOW)
    assert [str(problem) for problem in outcome.problems] == []
    result: dict[str, str] = {}
    for repository in (step.repository for steps in outcome.steps.values() for step in steps):
        for model in repository.models:
            folder = f"{repository.server}/{model.name}"
            result[f"{folder}/config.pbtxt"] = model.config_text
            result |= {f"{folder}/{name}": text for name, text in model.texts.items()}
            for version, source in model.versions.items():
                words = (source.uri, source.digest, source.filename)
                result[f"{folder}/{version}.source"] = " ".join(word or "-" for word in words) + "\n"
    return result


def ready(build: ScheduledBuild) -> tuple[str, ObservedBuild]:
    """Return the build, as it is observed once its engine is there."""
    request = build.request
    uri = f"{request.store}/{request.architecture}/{PurePosixPath(request.model.uri).name}"
    return build.name, ObservedBuild(build.name, BuildReport(BuildState.READY, uri=uri, digest=f"sha256:{'0' * 64}"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_golden(case: Path) -> None:
    result, expected = rendered(case), case / "expected"
    if os.environ.get("ARGOSY_UPDATE_GOLDEN"):
        shutil.rmtree(expected, ignore_errors=True)
        for name, text in result.items():
            (expected / name).parent.mkdir(parents=True, exist_ok=True)
            (expected / name).write_text(text)
    there = {str(p.relative_to(expected)): p.read_text() for p in expected.rglob("*") if p.is_file()}
    assert result == there


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_rendering_twice_gives_the_same_bytes(case: Path) -> None:
    assert rendered(case) == rendered(case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_runtime_accepts_what_is_rendered(case: Path) -> None:
    for name, text in rendered(case).items():
        if name.endswith("config.pbtxt"):
            folder = name.split("/")[1]
            config = normalize(parse_text(text), folder, gpus=range(8))
            assert check_structure(config, folder) == []
