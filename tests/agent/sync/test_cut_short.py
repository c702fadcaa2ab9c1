"""Whatever cuts a change short, the folder and the server agree on what is served."""

import asyncio
import errno
from pathlib import Path
from typing import Any

import pytest
from tests.agent.sync.bench import Bench

from argosy_agent.cache.storage import Storage
from argosy_agent.contract import LoadState, RenderedRepository
from argosy_agent.folder.repository import RepositoryFolder, StagedChange
from argosy_agent.folder.target import Target
from argosy_agent.sync.control import ControlError, RefusedError, SlowError, UnreachableError


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


async def test_a_copy_that_broke_off_halfway_is_made_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: str, target: str) -> None:
        Path(target).write_text("ha")
        raise OSError(errno.ENOSPC, "No space left on device")

    model = bench.model("m", v1=bench.source("a", "one"))
    with monkeypatch.context() as patched:
        patched.setattr("argosy_agent.folder.writing._link_or_copy", full)
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
async def test_a_load_counts_although_the_server_never_reports_draining(
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
        patched.setattr(StagedChange, step, full)
        await bench.settle(bench.model("m", v1=first))
    assert bench.agent.ledger.failures == {}
    assert bench.states() == {("m", 1): LoadState.READY}
    await bench.settle(bench.model("m", v1=first, v2=bench.source("b", "two")))
    assert bench.fake.loaded == {"m": {1: "one", 2: "two"}}


async def test_a_record_that_cannot_be_read_is_made_again(bench: Bench) -> None:
    model = bench.model("m", v1=bench.source("a", "one"))
    await bench.settle(model)
    (bench.root / "server" / "applied" / "m.json").write_text('{"name": "m", "versions": [], "keys": {}}')
    bench.agent = bench.new_agent()
    await bench.settle(model)
    assert bench.fake.calls == ["load m"] * 2
    assert RepositoryFolder(bench.root / "server", "").applied()["m"].model == model
