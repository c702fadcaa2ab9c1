"""The agent against a fake server: what it loads, in which order, and what it does when something fails."""

import asyncio
import errno
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.running import wait_for

from argosy_agent.cache.storage import Storage
from argosy_agent.contract import FailureKind, LoadState, RenderedModel, RenderedRepository, VersionSource
from argosy_agent.folder.repository import Change, RepositoryFolder
from argosy_agent.folder.target import Target
from argosy_agent.sync.agent import SLOW_ANSWERS, Agent
from argosy_agent.sync.control import ControlError, RefusedError, SlowError, UnreachableError
from argosy_agent.sync.fetching import FETCHES_AT_ONCE
from argosy_agent.sync.loading import LOADS_AT_ONCE
from argosy_agent.sync.reasons import load_failure


def text(name: str, *versions: int, note: str = "") -> str:
    """A config.pbtxt that serves these versions."""
    listed = ", ".join(map(str, versions))
    return f'name: "{name}"\nversion_policy {{ specific {{ versions: [{listed}] }} }}\n# {note}\n'


class Bench:
    """An agent, its fake server, a clock that is set by hand, and folders of models."""

    def __init__(self, root: Path, fake: Any) -> None:
        self.root, self.fake, self.now = root, fake, 0.0
        (root / "cache").mkdir()
        self.agent = self.new_agent()

    def new_agent(self) -> Agent:
        """An agent that knows only what the folder says: as after a kill."""
        folder = RepositoryFolder(self.root / "server", "server.log")
        return Agent(folder, Storage(self.root / "cache"), self.fake, lambda: self.now)

    def source(self, name: str, content: str, broken: bool = False) -> VersionSource:
        """A folder with one file."""
        folder = self.root / "sources" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "weights").write_text(content)
        if broken:
            (folder / "broken").touch()
        return VersionSource(folder.as_uri())

    def model(self, name: str, note: str = "", **versions: VersionSource) -> RenderedModel:
        """A rendered model; versions as `v1=…`."""
        numbered = {int(key[1:]): source for key, source in versions.items()}
        return RenderedModel(name, text(name, *numbered, note=note), numbered)

    async def settle(self, *models: RenderedModel) -> None:
        """Rounds until nothing is under way."""
        desired = RenderedRepository("server", models)
        for _ in range(6):
            await self.agent.observe()
            await self.converge(desired)
            for _ in range(400):
                if not self.agent.busy:
                    break
                await asyncio.sleep(0.005)

    async def converge(self, desired: RenderedRepository) -> None:
        """Start what is missing."""
        await self.agent.aim(desired)
        self.agent.converge()

    def states(self) -> dict[tuple[str, int], LoadState]:
        """What the agent reports."""
        return {(each.model, each.version): each.state for each in self.agent.ledger.loaded()}

    def entries(self, model: str) -> set[str]:
        """What the server's folder of a model holds."""
        return {path.name for path in (self.root / "server" / "repository" / model).iterdir()}


@pytest.fixture
def bench(tmp_path: Path, fake: Any) -> Bench:
    """A bench."""
    return Bench(tmp_path, fake)


async def test_a_version_bump_swaps_and_drops_the_old_folder(bench: Bench) -> None:
    await bench.settle(bench.model("m", v1=bench.source("a", "one")))
    assert bench.fake.loaded == {"m": {1: "one"}}
    await bench.settle(bench.model("m", v2=bench.source("b", "two")))
    assert bench.fake.loaded == {"m": {2: "two"}}
    assert bench.entries("m") == {"2", "config.pbtxt"}
    assert bench.fake.calls == ["load m", "load m"]


async def test_a_model_is_loaded_by_its_served_name_and_reported_by_its_resources(bench: Bench) -> None:
    model = replace(bench.model("Bert_v2.1", v1=bench.source("a", "one")), resource="bert")
    await bench.settle(model)
    assert bench.fake.calls == ["load Bert_v2.1"]
    assert bench.states() == {("bert", 1): LoadState.READY}
    bench.agent = bench.new_agent()
    await bench.settle(model)
    assert bench.fake.calls == ["load Bert_v2.1"]
    assert bench.states() == {("bert", 1): LoadState.READY}
    broken = replace(bench.model("Bert_v2.1", v2=bench.source("b", "two", broken=True)), resource="bert")
    await bench.settle(broken)
    assert bench.states() == {("bert", 1): LoadState.READY, ("bert", 2): LoadState.UNAVAILABLE}


async def test_nothing_is_loaded_twice(bench: Bench) -> None:
    model = bench.model("m", v1=bench.source("a", "one"))
    await bench.settle(model)
    await bench.settle(model)
    bench.agent = bench.new_agent()
    await bench.settle(model)
    assert bench.fake.calls == ["load m"]


async def test_many_loads_are_not_as_many_questions_for_the_whole_index(bench: Bench) -> None:
    models = [bench.model(f"m{n}", v1=bench.source(f"m{n}", str(n))) for n in range(20)]
    await bench.settle(*models)
    assert bench.fake.asked["index"] == 1
    assert set(bench.states().values()) == {LoadState.READY}
    await bench.settle(models[0])
    assert bench.fake.loaded == {"m0": {1: "0"}}
    assert bench.fake.asked["index"] <= 4


async def test_changed_files_of_the_same_version_are_loaded(bench: Bench) -> None:
    await bench.settle(bench.model("m", v1=bench.source("a", "one")))
    await bench.settle(bench.model("m", v1=bench.source("a", "another")))
    assert bench.fake.loaded == {"m": {1: "another"}}


async def test_a_refused_version_is_taken_back_and_told(bench: Bench) -> None:
    first = bench.source("a", "one")
    await bench.settle(bench.model("m", v1=first))
    config = (bench.root / "server/repository/m/config.pbtxt").read_text()
    await bench.settle(bench.model("m", v1=first, v2=bench.source("b", "two", broken=True)))
    assert bench.fake.loaded == {"m": {1: "one"}}
    assert bench.entries("m") == {"1", "config.pbtxt"}
    assert (bench.root / "server/repository/m/config.pbtxt").read_text() == config
    assert bench.states() == {("m", 1): LoadState.READY, ("m", 2): LoadState.UNAVAILABLE}
    (told,) = [each.reason for each in bench.agent.ledger.loaded() if each.version == 2]
    assert told.startswith("failed to load 'm': version 2 is broken; mend its files")


async def test_refused_files_of_the_same_version_are_taken_back_and_told(bench: Bench) -> None:
    await bench.settle(bench.model("m", v1=bench.source("a", "one")))
    await bench.settle(bench.model("m", v1=bench.source("a", "another", broken=True)))
    assert bench.fake.loaded == {"m": {1: "one"}}
    assert (bench.root / "server/repository/m/1/weights").read_text() == "one"
    assert bench.states() == {("m", 1): LoadState.UNAVAILABLE}
    assert bench.agent.ledger.loaded()[0].former


async def test_what_failed_is_tried_again_later_and_at_once_when_it_changes(bench: Bench) -> None:
    broken = bench.model("m", v1=bench.source("a", "one", broken=True))
    await bench.settle(broken)
    assert bench.fake.calls == ["load m"]
    bench.now = 2.5
    await bench.settle(broken)
    assert bench.fake.calls == ["load m"] * 2
    bench.now = 4.0
    await bench.settle(broken)
    assert bench.fake.calls == ["load m"] * 2
    await bench.settle(bench.model("m", v1=bench.source("a", "one")))
    assert bench.fake.loaded == {"m": {1: "one"}}
    assert bench.agent.ledger.failures == {}


async def test_an_ensemble_waits_for_its_steps_and_goes_before_them(bench: Bench) -> None:
    step = bench.model("step", v1=bench.source("a", "one"))
    pipe = RenderedModel("pipe", text("pipe", 1), {1: VersionSource()}, {"step": 1})
    await bench.settle(pipe, step)
    assert bench.fake.calls == ["load step", "load pipe"]
    assert bench.entries("pipe") == {"1", "config.pbtxt"}
    await bench.settle()
    assert bench.fake.calls[2:] == ["unload pipe", "unload step"]
    assert not any((bench.root / "server/repository").iterdir())


async def test_an_ensemble_of_a_broken_step_says_what_it_waits_for(bench: Bench) -> None:
    step = bench.model("step", v1=bench.source("a", "one", broken=True))
    pipe = RenderedModel("pipe", text("pipe", 1), {1: VersionSource()}, {"step": 1})
    await bench.settle(step, pipe)
    (told,) = [each for each in bench.agent.ledger.loaded() if each.model == "pipe"]
    assert (told.state, told.reason) == (LoadState.LOADING, "waiting for step")


async def test_files_that_are_not_there_are_told_and_taken_when_they_come(bench: Bench) -> None:
    missing = VersionSource((bench.root / "sources" / "late").as_uri())
    model = bench.model("m", v1=missing)
    await bench.settle(model)
    assert "no such file or folder" in bench.agent.ledger.loaded()[0].reason
    bench.source("late", "here")
    await bench.settle(model)
    assert bench.fake.loaded == {"m": {1: "here"}}


async def test_a_server_that_lost_everything_gets_it_again(bench: Bench) -> None:
    model = bench.model("m", v1=bench.source("a", "one"))
    await bench.settle(model)
    bench.fake.loaded.clear()
    await bench.settle(model)
    assert bench.fake.loaded == {"m": {1: "one"}}


@pytest.mark.parametrize("uri", ["pvc://nowhere/x", "foo://nowhere/x"])
async def test_a_restarted_server_gets_back_what_served_where_the_next_version_cannot_be_had(
    bench: Bench, uri: str
) -> None:
    first = bench.source("a", "one")
    await bench.settle(bench.model("m", v1=first))
    wanted = bench.model("m", v1=first, v2=VersionSource(uri))
    await bench.settle(wanted)
    bench.fake.loaded.clear()
    await bench.settle(wanted)
    assert bench.fake.loaded == {"m": {1: "one"}}
    assert bench.states()["m", 2] is LoadState.UNAVAILABLE
    (served,) = [each for each in bench.agent.ledger.loaded() if each.version == 1]
    assert served.answers


async def test_a_restarted_server_gets_back_what_served_where_its_source_is_gone(bench: Bench) -> None:
    model = bench.model("m", v1=bench.source("a", "one"))
    await bench.settle(model)
    shutil.rmtree(bench.root / "sources" / "a")
    bench.agent = bench.new_agent()
    bench.fake.loaded.clear()
    await bench.settle(model)
    assert bench.fake.loaded == {"m": {1: "one"}}
    assert bench.agent.ledger.loaded()[0].former


async def test_what_got_lost_comes_back_at_once_and_then_what_should_be_served(bench: Bench) -> None:
    first = bench.source("a", "one")
    await bench.settle(bench.model("m", v1=first))
    wanted = bench.model("m", v1=first, v2=bench.source("b", "two", broken=True))
    await bench.settle(wanted)
    bench.fake.loaded.clear()
    await bench.settle(wanted)  # within the pause after the failure
    assert bench.fake.loaded == {"m": {1: "one"}}
    bench.fake.loaded.clear()
    wanted = bench.model("m", v1=first, v2=bench.source("b", "two"))
    await bench.settle(wanted)
    assert bench.fake.loaded == {"m": {1: "one", 2: "two"}}
    assert bench.states() == {("m", 1): LoadState.READY, ("m", 2): LoadState.READY}


async def test_what_got_lost_and_is_refused_now_keeps_nothing_from_its_place(bench: Bench) -> None:
    await bench.settle(bench.model("m", v1=bench.source("a", "one")))
    bench.fake.loaded.clear()
    (bench.root / "server/repository/m/1/broken").touch()
    await bench.settle(bench.model("m", v2=bench.source("b", "two")))
    assert bench.fake.loaded == {"m": {2: "two"}}
    assert bench.fake.calls == ["load m"] * 3


async def test_a_server_that_ends_with_what_got_lost_is_given_what_should_be_served(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ends(name: str) -> None:
        if (bench.root / "server/repository" / name / "1").exists():
            raise UnreachableError("the server ended")
        await load(name)

    await bench.settle(bench.model("m", v1=bench.source("a", "one")))
    bench.fake.loaded.clear()
    load = bench.fake.load
    monkeypatch.setattr(bench.fake, "load", ends)
    wanted = bench.model("m", v1=bench.source("b", "two"))
    tried: list[str] = []
    stage = RepositoryFolder.stage

    def noted(self: RepositoryFolder, target: Target, *rest: Any) -> Any:
        tried.append(target.model.versions[1].uri.rpartition("/")[2])
        return stage(self, target, *rest)

    monkeypatch.setattr(RepositoryFolder, "stage", noted)
    await bench.settle(wanted)
    assert tried == ["a", "b"]
    bench.now = 3.0
    await bench.settle(wanted)
    assert tried == ["a", "b", "b", "a"]


async def test_files_that_stand_in_the_folder_are_not_fetched_again(bench: Bench) -> None:
    first = bench.source("a", "one")
    await bench.settle(bench.model("m", v1=first))
    shutil.rmtree(bench.root / "cache")
    (bench.root / "cache").mkdir()
    await bench.settle(bench.model("m", v1=first, v2=bench.source("b", "two")))
    assert bench.fake.loaded == {"m": {1: "one", 2: "two"}}
    assert len(list((bench.root / "cache").glob("file-*"))) == 1


async def test_labels_follow_the_newest_version_back(bench: Bench) -> None:
    def labelled(name: str, label: str) -> VersionSource:
        source = bench.source(name, name)
        (bench.root / "sources" / name / "labels.txt").write_text(label)
        return source

    def model(**versions: VersionSource) -> RenderedModel:
        made = bench.model("m", **versions)
        return replace(made, config_text=made.config_text + 'output { name: "Y" label_filename: "labels.txt" }\n')

    first = labelled("a", "cat")
    await bench.settle(model(v1=first))
    await bench.settle(model(v1=first, v2=labelled("b", "dog")))
    assert (bench.root / "server/repository/m/labels.txt").read_text() == "dog"
    await bench.settle(model(v1=first))
    assert (bench.root / "server/repository/m/labels.txt").read_text() == "cat"


@pytest.mark.parametrize("fault", ["refused", "not there"])
async def test_on_a_fresh_server_what_can_be_served_is_where_the_newest_version_fails(bench: Bench, fault: str) -> None:
    first = bench.source("a", "one")
    second = bench.source("b", "two", broken=True) if fault == "refused" else VersionSource("foo://nowhere/x")
    wanted = bench.model("m", v1=first, v2=second)
    await bench.settle(wanted)
    assert bench.fake.loaded == {"m": {1: "one"}}
    assert bench.states() == {("m", 1): LoadState.READY, ("m", 2): LoadState.UNAVAILABLE}
    assert bench.agent.ledger.has_been_tried("m")
    shutil.rmtree(bench.root / "sources" / "b", ignore_errors=True)
    wanted = bench.model("m", v1=first, v2=bench.source("b", "two"))
    await bench.settle(wanted)
    assert bench.fake.loaded == {"m": {1: "one", 2: "two"}}
    assert bench.agent.ledger.failures == {}


async def test_the_whole_target_is_tried_again_beside_what_serves_of_it(bench: Bench) -> None:
    wanted = bench.model("m", v1=bench.source("a", "one"), v2=bench.source("b", "two", broken=True))
    await bench.settle(wanted)
    calls = len(bench.fake.calls)
    bench.now = 3.0
    await bench.settle(wanted)
    assert len(bench.fake.calls) == calls + 1
    assert bench.fake.loaded == {"m": {1: "one"}}
    assert bench.agent.ledger.failures["m"].attempts == 2
    assert bench.entries("m") == {"1", "config.pbtxt"}


async def test_a_server_that_ends_while_it_loads_makes_the_model_a_suspect(bench: Bench) -> None:
    good, bad = bench.model("good", v1=bench.source("a", "one")), bench.model("bad", v1=bench.source("b", "two"))
    bench.fake.gone = True
    await bench.settle(bad)
    assert bench.agent.ledger.failures["bad"].alone
    bench.fake.gone = False
    await bench.settle(good, bad)
    assert bench.fake.loaded == {"good": {1: "one"}}
    bench.now = 3.0
    await bench.settle(good, bad)
    assert set(bench.fake.loaded) == {"good", "bad"}


async def test_a_change_that_was_cut_short_is_made_again(bench: Bench) -> None:
    source = bench.source("a", "one")
    model = bench.model("m", v1=source)
    await bench.settle(model)
    folder = RepositoryFolder(bench.root / "server", "server.log")
    before = folder.applied()["m"]
    other = bench.source("b", "two")
    changed = bench.model("m", v1=other)
    # staged, and then the process is gone: neither committed nor taken back
    storage = Storage(bench.root / "cache")
    folder.stage(Target(changed, {1: storage.key(other.uri)}), before, {1: storage.fetch(other.uri)})
    bench.agent = bench.new_agent()
    await bench.settle(model)
    assert (bench.root / "server/repository/m/1/weights").read_text() == "one"
    assert bench.fake.loaded == {"m": {1: "one"}}


async def test_labels_and_warmup_data_come_to_stand_beside_the_versions(bench: Bench) -> None:
    source = bench.source("a", "one")
    folder = bench.root / "sources" / "a"
    (folder / "warmup").mkdir()
    (folder / "warmup" / "raw").write_text("data")
    (folder / "labels.txt").write_text("cat\ndog\n")
    config = text("m", 1) + 'output { name: "Y" label_filename: "labels.txt" }\n'
    await bench.settle(RenderedModel("m", config, {1: source}))
    assert bench.entries("m") == {"1", "config.pbtxt", "warmup", "labels.txt"}


async def test_a_lone_file_gets_the_name_that_its_backend_wants(bench: Bench) -> None:
    file = bench.root / "classifier-v7.onnx"
    file.write_text("onnx")
    model = bench.model("m", v1=VersionSource(file.as_uri(), "", "model.onnx"))
    await bench.settle(model)
    assert [path.name for path in (bench.root / "server/repository/m/1").iterdir()] == ["model.onnx"]


async def test_stopping_takes_back_what_is_under_way(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await bench.settle(bench.model("m", v1=bench.source("a", "one")))
    started = asyncio.Event()

    async def never(name: str) -> None:
        started.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(bench.fake, "load", never)
    await bench.agent.observe()
    await bench.converge(RenderedRepository("server", (bench.model("m", v2=bench.source("b", "two")),)))
    await started.wait()
    await bench.agent.stop()
    assert bench.entries("m") == {"1", "config.pbtxt"}
    assert RepositoryFolder(bench.root / "server", "server.log").applied()["m"].model.versions.keys() == {1}


async def test_what_fails_is_told_with_the_step_at_which_it_failed(bench: Bench) -> None:
    good = bench.source("digest", "one")
    wrong = VersionSource(good.uri, "sha256:" + "0" * 64)
    absent = VersionSource((bench.root / "sources" / "nowhere").as_uri())
    await bench.settle(
        bench.model("digest", v1=wrong),
        bench.model("absent", v1=absent),
        bench.model("broken", v1=bench.source("broken", "two", broken=True)),
        bench.model("good", v1=good),
    )
    assert {each.model: each.failure for each in bench.agent.ledger.loaded()} == {
        "digest": FailureKind.DIGEST,
        "absent": FailureKind.DOWNLOAD,
        "broken": FailureKind.LOAD,
        "good": None,
    }


async def test_a_disk_that_is_full_counts_as_a_failed_download(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    model = bench.model("m", v1=bench.source("a", "one"))
    with monkeypatch.context() as patched:
        patched.setattr("argosy_agent.folder.repository.place", full)
        await bench.settle(model)
    (told,) = bench.agent.ledger.loaded()
    assert (told.state, told.failure) == (LoadState.UNAVAILABLE, FailureKind.DOWNLOAD)
    assert "No space left on device" in told.reason
    bench.now = 60.0
    await bench.settle(model)
    assert bench.fake.loaded == {"m": {1: "one"}}


async def test_a_copy_that_broke_off_halfway_is_made_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: str, target: str) -> None:
        Path(target).write_text("ha")
        raise OSError(errno.ENOSPC, "No space left on device")

    model = bench.model("m", v1=bench.source("a", "one"))
    with monkeypatch.context() as patched:
        patched.setattr("argosy_agent.folder.placing._link_or_copy", full)
        await bench.settle(model)
    assert not (bench.root / "server" / "staging" / "m").exists()
    bench.now = 60.0
    await bench.settle(model)
    assert bench.fake.loaded == {"m": {1: "one"}}


async def test_what_an_earlier_change_left_behind_is_in_no_ones_way(bench: Bench) -> None:
    await bench.settle(bench.model("m", v1=bench.source("a", "one")))
    for kind in ("staging", "replaced"):
        (bench.root / "server" / kind / "m" / "1").mkdir(parents=True, exist_ok=True)
        (bench.root / "server" / kind / "m" / "1" / "stale").touch()
    await bench.settle(bench.model("m", v1=bench.source("a", "another")))
    assert bench.fake.loaded == {"m": {1: "another"}}
    await bench.settle(bench.model("m", v1=bench.source("a", "a third", broken=True)))
    assert (bench.root / "server/repository/m/1/weights").read_text() == "another"


@pytest.mark.parametrize("error", [SlowError("slow"), UnreachableError("gone"), RefusedError("no")])
async def test_what_is_loaded_counts_although_the_server_does_not_say_that_it_drained(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, error: ControlError
) -> None:
    await bench.settle(bench.model("m", v1=bench.source("a", "one")))
    load, index = bench.fake.load, bench.fake.index
    answers: list[ControlError | None] = []

    async def loads(name: str) -> None:
        await load(name)
        answers[:] = [error]

    async def answering() -> Any:
        if answers and (failing := answers.pop(0)) is not None:
            raise failing
        return await index()

    monkeypatch.setattr(bench.fake, "load", loads)
    monkeypatch.setattr(bench.fake, "index", answering)
    await bench.settle(bench.model("m", v2=bench.source("b", "two")))
    assert bench.agent.ledger.failures == {}
    assert bench.fake.loaded == {"m": {2: "two"}}
    assert bench.entries("m") == {"2", "config.pbtxt"}


@pytest.mark.parametrize("step", ["accept", "tidy"])
async def test_what_is_loaded_counts_although_the_disk_fails_afterwards(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(change: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    first = bench.source("a", "one")
    with monkeypatch.context() as patched:
        patched.setattr(Change, step, full)
        await bench.settle(bench.model("m", v1=first))
    assert bench.agent.ledger.failures == {}
    assert bench.states() == {("m", 1): LoadState.READY}
    await bench.settle(bench.model("m", v1=first, v2=bench.source("b", "two")))
    assert bench.fake.loaded == {"m": {1: "one", 2: "two"}}


async def test_a_changed_file_name_takes_effect(bench: Bench) -> None:
    file = bench.root / "classifier-v7.onnx"
    file.write_text("onnx")
    for name in ("model.onnx", "net.onnx"):
        await bench.settle(bench.model("m", v1=VersionSource(file.as_uri(), "", name)))
        assert [path.name for path in (bench.root / "server/repository/m/1").iterdir()] == [name]


async def test_a_fault_of_ours_is_told_and_tried_again_after_a_pause(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(*_: object) -> None:
        raise KeyError("nobody thought of it")

    monkeypatch.setattr("argosy_agent.folder.repository.place", fault)
    await bench.settle(bench.model("m", v1=bench.source("a", "one")))
    (told,) = bench.agent.ledger.loaded()
    assert told.reason == "KeyError: 'nobody thought of it'"
    assert bench.agent.ledger.failures["m"].attempts == 1


@pytest.mark.parametrize("uri", ["https://[x/y", "file:///a\0b"])
async def test_a_uri_that_is_none_holds_up_no_other_model(bench: Bench, uri: str) -> None:
    await bench.settle(bench.model("bad", v1=VersionSource(uri)), bench.model("good", v1=bench.source("a", "one")))
    assert bench.fake.loaded == {"good": {1: "one"}}
    (told,) = [each for each in bench.agent.ledger.loaded() if each.model == "bad"]
    assert (told.state, told.failure) == (LoadState.UNAVAILABLE, FailureKind.DOWNLOAD)
    assert told.reason


async def test_files_that_came_whole_and_are_wrong_are_seldom_fetched_again(bench: Bench) -> None:
    wrong = bench.model("digest", v1=VersionSource(bench.source("a", "one").uri, "sha256:" + "0" * 64))
    torn = bench.model("torn", v1=bench.source("b", "no archive"))
    (bench.root / "sources" / "b" / "weights").rename(bench.root / "sources" / "b" / "weights.zip")
    models = {"digest": wrong, "torn": torn}
    await bench.settle(*models.values())
    tried = {}
    for _ in range(12):
        failures = bench.agent.ledger.failures
        tried = {name: failures[name].retry_at - bench.now for name in models}
        bench.now += max(tried.values())
        await bench.settle(*models.values())
    assert tried == {"digest": 1800.0, "torn": 1800.0}
    assert {bench.agent.ledger.failures[name].attempts for name in models} == {13}
    right = bench.model("digest", v1=bench.source("a", "one"))
    await bench.settle(right)
    assert bench.fake.loaded == {"digest": {1: "one"}}


async def test_what_fails_for_days_is_still_tried_once_a_minute(bench: Bench) -> None:
    await bench.settle(bench.model("m", v1=bench.source("a", "one", broken=True)))
    ledger = bench.agent.ledger
    for _ in range(2000):
        ledger.failed(ledger.targets["m"], "broken", FailureKind.LOAD, 0.0)
    assert ledger.failures["m"].retry_at == 60.0


def test_no_password_is_told(bench: Bench) -> None:
    folder = bench.root / "server/repository/m"
    said = f"failed: {folder}/1/model.onnx is not there"
    assert "hunter2" not in load_failure(said, folder, {1: "https://me:hunter2@host/x.zip?sig=abc"}, "")
    assert "https://host/x.zip" in load_failure(said, folder, {1: "https://me:hunter2@host/x.zip?sig=abc"}, "")


async def test_a_new_version_is_told_ready_while_the_old_one_still_answers(bench: Bench) -> None:
    await bench.settle(bench.model("m", v1=bench.source("a", "one")))
    bench.fake.draining = {("m", 1)}
    await bench.agent.observe()
    await bench.converge(RenderedRepository("server", (bench.model("m", v2=bench.source("b", "two")),)))
    await until(lambda: bench.states().get(("m", 2)) is LoadState.READY)
    await until(lambda: bench.states() == {("m", 1): LoadState.UNLOADING, ("m", 2): LoadState.READY})
    assert bench.agent.busy
    assert bench.entries("m") == {"1", "2", "config.pbtxt"}
    # killed now, it knows that the new version is loaded
    assert RepositoryFolder(bench.root / "server", "").applied()["m"].keys.keys() == {2}
    bench.fake.draining = set()
    await until(lambda: not bench.agent.busy)
    assert bench.entries("m") == {"2", "config.pbtxt"}


async def test_a_server_that_is_only_slow_keeps_what_it_has(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow(*_: object) -> None:
        raise SlowError("no answer within 10 s")

    model = bench.model("m", v1=bench.source("a", "one"))
    await bench.settle(model)
    for question in ("index", "is_ready"):
        monkeypatch.setattr(bench.fake, question, slow)
    assert [await bench.agent.observe() for _ in range(SLOW_ANSWERS - 1)] == [True] * (SLOW_ANSWERS - 1)
    assert bench.states() == {("m", 1): LoadState.READY}
    assert not await bench.agent.observe()
    assert bench.states() == {("m", 1): LoadState.LOADING}


async def test_downloads_that_take_long_hold_up_no_round(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    go, fetch = threading.Event(), Storage.fetch

    def slow(self: Storage, uri: str, digest: str = "", progress: Any = None, secret: str = "") -> Path:
        assert go.wait(60)
        return fetch(self, uri, digest, progress)

    monkeypatch.setattr(Storage, "fetch", slow)
    models = [bench.model(f"m{n}", v1=bench.source(f"m{n}", str(n))) for n in range(40)]
    desired = RenderedRepository("server", tuple(models))
    try:
        for _ in range(3):
            await bench.agent.observe()
            await asyncio.wait_for(bench.converge(desired), 30)
        assert set(bench.states().values()) == {LoadState.LOADING}
    finally:
        go.set()
    await bench.settle(*models)
    assert len(bench.fake.loaded) == 40


@pytest.fixture
def held_up(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Fetches of sources called `big…` wait for this."""
    go, fetch = threading.Event(), Storage.fetch

    def slow(self: Storage, uri: str, digest: str = "", progress: Any = None, secret: str = "") -> Path:
        assert "/sources/big" not in uri or go.wait(60)
        return fetch(self, uri, digest, progress)

    monkeypatch.setattr(Storage, "fetch", slow)
    yield go
    go.set()


async def test_downloads_that_take_long_hold_up_no_model_that_is_whole_in_the_cache(
    bench: Bench, held_up: threading.Event
) -> None:
    good = bench.model("good", v1=bench.source("a", "one"))
    await bench.settle(good)
    shutil.rmtree(bench.root / "server")
    bench.fake.loaded.clear()
    bench.agent = bench.new_agent()
    big = [bench.model(f"big{n}", v1=bench.source(f"big{n}", "x")) for n in range(FETCHES_AT_ONCE)]
    await bench.agent.observe()
    await bench.converge(RenderedRepository("server", (*big, good)))
    await until(lambda: "good" in bench.fake.loaded)
    held_up.set()
    await until(lambda: not bench.agent.busy)


async def test_a_suspect_waits_for_loads_and_not_for_downloads(bench: Bench, held_up: threading.Event) -> None:
    suspect, big = bench.model("suspect", v1=bench.source("a", "one")), bench.model("big", v1=bench.source("big", "x"))
    bench.fake.gone = True
    await bench.settle(suspect)
    bench.fake.gone, bench.now = False, 3.0
    await bench.agent.observe()
    await bench.converge(RenderedRepository("server", (big,)))
    await bench.converge(RenderedRepository("server", (big, suspect)))
    await until(lambda: "suspect" in bench.fake.loaded)
    assert bench.agent.busy
    held_up.set()
    await until(lambda: not bench.agent.busy)


async def test_a_server_that_is_only_slow_makes_no_suspect(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow(name: str) -> None:
        raise SlowError("no answer within 10 s")

    monkeypatch.setattr(bench.fake, "load", slow)
    await bench.settle(bench.model("m", v1=bench.source("a", "one")))
    assert not bench.agent.ledger.failures["m"].alone


async def test_a_download_that_nobody_wants_any_more_ends(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = threading.Event(), threading.Event()

    def endless(self: Storage, uri: str, digest: str, progress: Any, secret: str = "") -> Path:
        try:
            while not ended.wait(0.005):
                begun.set()
                progress(1, 2)
        finally:
            ended.set()
        return Path()

    monkeypatch.setattr(Storage, "fetch", endless)
    await bench.agent.observe()
    await bench.converge(RenderedRepository("server", (bench.model("m", v1=bench.source("a", "one")),)))
    await until(begun.is_set)
    await bench.converge(RenderedRepository("server"))
    await until(ended.is_set)
    monkeypatch.undo()
    await bench.settle(bench.model("m", v2=bench.source("b", "two")))
    assert bench.fake.loaded == {"m": {2: "two"}}
    assert bench.agent.ledger.failures == {}


async def test_the_longest_name_that_kubernetes_has_is_served(bench: Bench) -> None:
    first, second = "n" * 253, "n" * 252 + "m"
    await bench.settle(
        bench.model(first, v1=bench.source("a", "one")), bench.model(second, v1=bench.source("b", "two"))
    )
    bench.agent = bench.new_agent()
    await bench.settle(bench.model(first, v1=bench.source("a", "one")))
    assert bench.fake.loaded == {first: {1: "one"}}


async def test_a_record_that_cannot_be_read_is_made_again(bench: Bench) -> None:
    model = bench.model("m", v1=bench.source("a", "one"))
    await bench.settle(model)
    (bench.root / "server" / "applied" / "m.json").write_text('{"name": "m", "versions": [], "keys": {}}')
    bench.agent = bench.new_agent()
    await bench.settle(model)
    assert bench.fake.calls == ["load m"] * 2
    assert RepositoryFolder(bench.root / "server", "").applied()["m"].model == model


async def until(what: Any) -> None:
    """Wait until it is so."""
    await asyncio.to_thread(wait_for, what, lambda: "never")


def in_place(model: RenderedModel, note: str) -> RenderedModel:
    """The same with another configuration, for which a server has nothing to load anew."""
    return replace(model, config_text=f"{model.config_text}# {note}\n", reload_key="one", config_key=note)


async def test_a_change_in_place_leaves_every_file_as_it_stands_but_the_configuration(bench: Bench) -> None:
    source = bench.source("a", "one")
    (bench.root / "sources" / "a" / "labels.txt").write_text("cat")
    model = RenderedModel("m", text("m", 1) + 'output { name: "Y" label_filename: "labels.txt" }\n', {1: source})
    folder = bench.root / "server/repository/m"

    def standing() -> dict[str, tuple[int, int]]:
        files = (path for path in sorted(folder.rglob("*")) if path.is_file())
        return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in files}

    await bench.settle(in_place(model, "a"))
    before, asked = standing(), bench.fake.calls.count("load m")
    shutil.rmtree(bench.root / "cache")
    (bench.root / "cache").mkdir()
    await bench.settle(in_place(model, "b"))
    after = standing()
    assert (folder / "config.pbtxt").read_text().endswith("# b\n")
    assert before.pop("config.pbtxt") != after.pop("config.pbtxt")
    assert (before, bench.fake.calls.count("load m")) == (after, asked + 1)
    assert bench.states() == {("m", 1): LoadState.READY}


async def test_a_change_in_place_does_not_wait_behind_models_that_load(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = bench.model("m", v1=bench.source("a", "one"))
    await bench.settle(in_place(model, "a"))
    others = [bench.model(f"n{at}", v1=bench.source(f"n{at}", "n")) for at in range(LOADS_AT_ONCE)]
    load, go_on, begun = bench.fake.load, asyncio.Event(), asyncio.Queue[str]()

    async def held_up(name: str) -> None:
        begun.put_nowait(name)
        if name != "m":
            await go_on.wait()
        await load(name)

    monkeypatch.setattr(bench.fake, "load", held_up)
    await bench.agent.observe()
    await bench.converge(RenderedRepository("server", (in_place(model, "a"), *others)))
    assert {await begun.get() for _ in others} == {each.name for each in others}
    await bench.converge(RenderedRepository("server", (in_place(model, "b"), *others)))
    assert await begun.get() == "m"
    go_on.set()
    await bench.settle(in_place(model, "b"), *others)
    assert bench.states()["m", 1] is LoadState.READY


async def test_a_change_in_place_that_is_refused_is_taken_back_and_told(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = bench.model("m", v1=bench.source("a", "one"))
    await bench.settle(in_place(model, "a"))

    async def refuse(name: str) -> None:
        raise RefusedError("instance 'm_0_1' found no memory")

    monkeypatch.setattr(bench.fake, "load", refuse)
    await bench.settle(in_place(model, "b"))
    (told,) = bench.agent.ledger.loaded()
    assert (told.answers, told.former, told.failure) == (True, True, FailureKind.LOAD)
    assert "found no memory" in told.reason
    assert (bench.root / "server/repository/m/config.pbtxt").read_text().endswith("# a\n")
