"""Versions with configurations of their own in a server's folder: written, changed and taken back alone."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.agent.sync.bench import Bench, text

from argosy_agent.contract import FailureKind, LoadState, RenderedModel, VersionConfig, VersionSource
from argosy_agent.sync.control import RefusedError

OWN = "argosy.pbtxt"


def with_own(model: RenderedModel, version: int, own: VersionConfig | None) -> RenderedModel:
    """Return a model of which a version has another configuration of its own, or none."""
    source = replace(model.versions[version], own=own)
    return replace(model, versions={**model.versions, version: source})


def own_text(bench: Bench, version: int) -> str | None:
    """Return the configuration that a version of `m` has of its own in the server's folder."""
    path = bench.root / "server/repository/m" / str(version) / OWN
    return path.read_text() if path.is_file() else None


def inodes(folder: Path) -> dict[str, int]:
    """Return the identity of each file but for configurations."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".pbtxt"))
    return {str(path.relative_to(folder)): path.stat().st_ino for path in files}


@pytest.fixture
def model(bench: Bench) -> RenderedModel:
    """Return a model of two versions."""
    return bench.model("m", v1=bench.source("a", "one"), v2=bench.source("b", "two"))


async def test_a_versions_configuration_is_written_into_its_folder(bench: Bench, model: RenderedModel) -> None:
    await bench.settle(with_own(model, 2, VersionConfig("second")))
    assert (own_text(bench, 1), own_text(bench, 2)) == (None, "second")
    assert set(bench.states().values()) == {LoadState.READY}


async def test_a_changed_configuration_leaves_all_files_as_they_are(bench: Bench, model: RenderedModel) -> None:
    await bench.settle(with_own(model, 2, VersionConfig("second")))
    before = inodes(bench.root / "server/repository/m")
    await bench.settle(with_own(model, 2, VersionConfig("third")))
    assert own_text(bench, 2) == "third"
    await bench.settle(model)
    assert own_text(bench, 2) is None
    await bench.settle(with_own(model, 1, VersionConfig("first")))
    assert own_text(bench, 1) == "first"
    assert inodes(bench.root / "server/repository/m") == before
    assert bench.fake.calls.count("load m") == 4


async def test_only_the_version_whose_configuration_changes_is_reported_as_changing(
    bench: Bench, model: RenderedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.settle(with_own(model, 2, VersionConfig("second")))
    seen: dict[tuple[str, int], LoadState] = {}
    load = bench.fake.load

    async def looked_at(name: str) -> None:
        seen.update(bench.states())
        await load(name)

    monkeypatch.setattr(bench.fake, "load", looked_at)
    await bench.settle(with_own(model, 2, VersionConfig("third")))
    assert seen == {("m", 1): LoadState.READY, ("m", 2): LoadState.LOADING}


async def test_a_version_that_gets_the_same_configuration_of_its_own_is_not_reported_as_changing(
    bench: Bench, model: RenderedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = replace(model, config_key="first")
    await bench.settle(with_own(model, 2, VersionConfig("second", "second")))
    seen: list[dict[tuple[str, int], LoadState]] = []
    load = bench.fake.load

    async def looked_at(name: str) -> None:
        seen.append(bench.states())
        await load(name)

    monkeypatch.setattr(bench.fake, "load", looked_at)
    promoted = replace(model, config_text="only which are served", config_key="second")
    own = VersionConfig(model.config_text, "first")
    await bench.settle(with_own(with_own(promoted, 1, own), 2, VersionConfig("second", "second")))
    assert seen == [{("m", 1): LoadState.READY, ("m", 2): LoadState.READY}]


async def test_a_refused_configuration_is_taken_back(
    bench: Bench, model: RenderedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.settle(with_own(model, 1, VersionConfig("first")))

    async def refuse(name: str) -> None:
        bench.fake.calls.append(f"load {name}")
        raise RefusedError("version 2 is at UNAVAILABLE state: no such field")

    monkeypatch.setattr(bench.fake, "load", refuse)
    await bench.settle(with_own(model, 2, VersionConfig("cut off")))
    assert (own_text(bench, 1), own_text(bench, 2)) == ("first", None)
    reported = {item.version: item for item in bench.agent.ledger.loaded()}
    assert reported[2].failure is FailureKind.LOAD
    assert all(item.answers for item in reported.values())


async def test_an_interrupted_change_is_completed_by_the_next_agent(bench: Bench, model: RenderedModel) -> None:
    await bench.settle(with_own(model, 2, VersionConfig("second")))
    bench.agent = bench.new_agent()
    await bench.settle(with_own(model, 2, VersionConfig("second")))
    assert bench.fake.calls.count("load m") == 1
    await bench.settle(with_own(model, 2, VersionConfig("third")))
    assert own_text(bench, 2) == "third"


async def test_what_the_files_bring_under_that_name_is_no_configuration(bench: Bench) -> None:
    source = bench.source("a", "one")
    (bench.root / "sources" / "a" / OWN).write_text("not the operator's")
    await bench.settle(bench.model("m", v1=source))
    assert own_text(bench, 1) is None
    await bench.settle(with_own(bench.model("m", v1=source), 1, VersionConfig("its own")))
    assert own_text(bench, 1) == "its own"
    assert (bench.root / "sources" / "a" / OWN).read_text() == "not the operator's"


async def test_labels_of_a_new_revision_leave_those_of_the_other_one(bench: Bench) -> None:
    output = 'output { name: "Y" label_filename: "labels.txt" }\n'
    sources = {}
    for version in (1, 2):
        sources[version] = bench.source(f"v{version}", "weights")
        (bench.root / "sources" / f"v{version}" / "labels.txt").write_text(f"label {version}")
    first = RenderedModel("m", text("m", 1) + output, {1: sources[1]})
    await bench.settle(first)
    second = replace(sources[2], own=VersionConfig(text("m") + output))
    folder = bench.root / "server/repository/m"
    before = inodes(folder)
    await bench.settle(RenderedModel("m", text("m", 1, 2) + output, {1: sources[1], 2: second}))
    assert (folder / "labels.txt").read_text() == "label 1"
    assert (folder / "2" / "labels.txt").read_text() == "label 2"
    assert before.items() <= inodes(folder).items()


async def test_a_model_folder_among_the_files_completes_the_versions_configuration(bench: Bench) -> None:
    root = bench.root / "sources" / "b"
    source = bench.source("b", "two")
    (root / "2").mkdir()
    (root / "weights").rename(root / "2" / "weights")
    (root / "config.pbtxt").write_text('max_batch_size: 4 output { name: "Y" label_filename: "labels.txt" }')
    (root / "labels.txt").write_text("label")
    model = bench.model("m", v1=bench.source("a", "one"), v2=source)
    await bench.settle(with_own(model, 2, VersionConfig('name: "m"\nbackend: "python"\n')))
    written = own_text(bench, 2)
    assert written is not None
    assert "max_batch_size: 4" in written
    assert 'backend: "python"' in written
    folder = bench.root / "server/repository/m"
    assert (folder / "2" / "labels.txt").read_text() == "label"
    assert not (folder / "labels.txt").exists()


async def test_a_version_of_an_ensemble_waits_for_the_steps_that_it_pins(bench: Bench) -> None:
    step = bench.model("step", v1=bench.source("a", "one"))
    own = VersionConfig("second", steps={"step": 2})
    pipe = RenderedModel("pipe", text("pipe", 1, 2), {1: VersionSource(), 2: VersionSource(own=own)}, {"step": 1})
    await bench.settle(step, pipe)
    reasons = {item.version: item.reason for item in bench.agent.ledger.loaded() if item.model == "pipe"}
    assert reasons == {1: "waiting for step", 2: "waiting for step"}
    both = bench.model("step", v1=step.versions[1], v2=bench.source("b", "two"))
    await bench.settle(both, pipe)
    assert {key: state for key, state in bench.states().items() if key[0] == "pipe"} == {
        ("pipe", 1): LoadState.READY,
        ("pipe", 2): LoadState.READY,
    }
