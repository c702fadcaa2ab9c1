"""A server that lost what it served gets it again, whatever has become of what should be served."""

import shutil
from typing import Any

import pytest
from tests.agent.sync.bench import Bench

from argosy_agent.contract import FailureKind, LoadState, VersionSource
from argosy_agent.folder.repository import RepositoryFolder
from argosy_agent.folder.target import Target
from argosy_agent.sync.control import UnreachableError


async def test_a_server_that_lost_everything_gets_it_again(bench: Bench) -> None:
    model = bench.model("m", v1=bench.source("a", "one"))
    await bench.settle(model)
    bench.fake.loaded.clear()
    await bench.settle(model)
    assert bench.fake.loaded == {"m": {1: "one"}}


@pytest.mark.parametrize("uri", ["pvc://nowhere/x", "foo://nowhere/x"])
async def test_a_restarted_server_gets_what_served_if_the_next_is_unavailable(bench: Bench, uri: str) -> None:
    first = bench.source("a", "one")
    await bench.settle(bench.model("m", v1=first))
    desired = bench.model("m", v1=first, v2=VersionSource(uri))
    await bench.settle(desired)
    bench.fake.loaded.clear()
    await bench.settle(desired)
    assert bench.fake.loaded == {"m": {1: "one"}}
    assert bench.states()["m", 2] is LoadState.UNAVAILABLE
    (served,) = [item for item in bench.agent.ledger.loaded() if item.version == 1]
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
    desired = bench.model("m", v1=first, v2=bench.source("b", "two", broken=True))
    await bench.settle(desired)
    bench.fake.loaded.clear()
    await bench.settle(desired)  # within the pause after the failure
    assert bench.fake.loaded == {"m": {1: "one"}}
    bench.fake.loaded.clear()
    desired = bench.model("m", v1=first, v2=bench.source("b", "two"))
    await bench.settle(desired)
    assert bench.fake.loaded == {"m": {1: "one", 2: "two"}}
    assert bench.states() == {("m", 1): LoadState.READY, ("m", 2): LoadState.READY}


async def test_what_got_lost_and_is_refused_now_blocks_nothing_else(bench: Bench) -> None:
    await bench.settle(bench.model("m", v1=bench.source("a", "one")))
    bench.fake.loaded.clear()
    (bench.root / "server/repository/m/1/broken").touch()
    await bench.settle(bench.model("m", v2=bench.source("b", "two")))
    assert bench.fake.loaded == {"m": {2: "two"}}
    assert bench.fake.calls == ["load m"] * 3


async def test_a_server_that_ends_with_lost_models_gets_what_should_serve(
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
    desired = bench.model("m", v1=bench.source("b", "two"))
    tried: list[str] = []
    stage = RepositoryFolder.stage

    def noted(self: RepositoryFolder, target: Target, *rest: Any) -> Any:
        tried.append(target.model.versions[1].uri.rpartition("/")[2])
        return stage(self, target, *rest)

    monkeypatch.setattr(RepositoryFolder, "stage", noted)
    await bench.settle(desired)
    assert tried == ["a", "b"]
    bench.now = 3.0
    await bench.settle(desired)
    assert tried == ["a", "b", "b", "a"]


async def test_a_server_that_is_killed_while_it_loads_convicts_the_load_only_where_that_happens_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ends(name: str) -> None:
        raise UnreachableError("the server ended")

    load = bench.fake.load
    for good_at_last in (True, False):
        name = f"m{good_at_last:d}"
        model = bench.model(name, v1=bench.source(name, "one"))
        monkeypatch.setattr(bench.fake, "load", ends)
        await bench.settle(model)
        (reported,) = [entry for entry in bench.agent.ledger.loaded() if entry.model == name]
        assert (reported.state, reported.failure) == (LoadState.UNAVAILABLE, FailureKind.SERVER)
        monkeypatch.setattr(bench.fake, "load", load if good_at_last else ends)
        bench.now += 3.0
        await bench.settle(model)
        (reported,) = [entry for entry in bench.agent.ledger.loaded() if entry.model == name]
        assert reported.failure is (None if good_at_last else FailureKind.LOAD)
