"""A slow download, a slow server or one that ends holds up no other model."""

import asyncio
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agent.sync.bench import Bench
from tests.waiting import until

from argosy_agent.cache.storage import Storage
from argosy_agent.contract import LoadState, RenderedRepository
from argosy_agent.sync.agent import SLOW_ANSWERS
from argosy_agent.sync.control import SlowError
from argosy_agent.sync.storage.fetching import FETCHES_AT_ONCE


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

    def slow(self: Storage, uri: str, digest: str = "", progress: Any = None, *_: Any) -> Path:
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
def slow_fetches(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Yield an event for which fetches of sources called `big…` wait."""
    go, fetch = threading.Event(), Storage.fetch

    def slow(self: Storage, uri: str, digest: str = "", progress: Any = None, *_: Any) -> Path:
        assert "/sources/big" not in uri or go.wait(60)
        return fetch(self, uri, digest, progress)

    monkeypatch.setattr(Storage, "fetch", slow)
    yield go
    go.set()


async def test_long_downloads_delay_no_model_that_is_cached(bench: Bench, slow_fetches: threading.Event) -> None:
    good = bench.model("good", v1=bench.source("a", "one"))
    await bench.settle(good)
    shutil.rmtree(bench.root / "server")
    bench.fake.loaded.clear()
    bench.agent = bench.new_agent()
    big = [bench.model(f"big{n}", v1=bench.source(f"big{n}", "x")) for n in range(FETCHES_AT_ONCE)]
    await bench.agent.observe()
    await bench.converge(RenderedRepository("server", (*big, good)))
    await until(lambda: "good" in bench.fake.loaded)
    slow_fetches.set()
    await until(lambda: not bench.agent.busy)


async def test_a_suspect_waits_for_loads_and_not_for_downloads(bench: Bench, slow_fetches: threading.Event) -> None:
    suspect, big = bench.model("suspect", v1=bench.source("a", "one")), bench.model("big", v1=bench.source("big", "x"))
    bench.fake.gone = True
    await bench.settle(suspect)
    bench.fake.gone, bench.now = False, 3.0
    await bench.agent.observe()
    await bench.converge(RenderedRepository("server", (big,)))
    await bench.converge(RenderedRepository("server", (big, suspect)))
    await until(lambda: "suspect" in bench.fake.loaded)
    assert bench.agent.busy
    slow_fetches.set()
    await until(lambda: not bench.agent.busy)


async def test_a_server_that_is_only_slow_makes_no_suspect(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow(name: str) -> None:
        raise SlowError("no answer within 10 s")

    monkeypatch.setattr(bench.fake, "load", slow)
    await bench.settle(bench.model("m", v1=bench.source("a", "one")))
    assert not bench.agent.ledger.failures["m"].alone


async def test_a_download_that_no_one_wants_any_more_ends(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = threading.Event(), threading.Event()

    def endless(self: Storage, uri: str, digest: str, progress: Any, *_: Any) -> Path:
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
