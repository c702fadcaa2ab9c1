"""A file system that hangs holds up its own models, which report why they wait; others are loaded and reported."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agent.sync.bench import Bench
from tests.agent.sync.test_sidecar import Bench as LoopBench
from tests.waiting import until

from argosy_agent.cache.storage import Storage
from argosy_agent.contract import FailureKind, LoadState, RenderedModel, RenderedRepository
from argosy_agent.sync import sidecar
from argosy_agent.sync.storage import keys
from argosy_agent.sync.storage.fetching import FETCHES_AT_ONCE
from argosy_agent.sync.storage.threads import SILENT_S, StorageThreads, storage_of, unanswered


class Hanging:
    """A method of Storage that hangs for the claim `nfs` until `go` is set; `inside` counts the threads in it."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method, self.go, self.lock = method, threading.Event(), threading.Lock()
        self.inside = self.most = 0

    def patched(self) -> Callable[..., Any]:
        """Return the function that takes the method's place."""

        def hang(storage: Storage, uri: str, *rest: Any) -> Any:
            if uri.startswith("pvc://nfs/") and not self.go.is_set():
                with self.lock:
                    self.inside += 1
                    self.most = max(self.most, self.inside)
                assert self.go.wait(60)
                with self.lock:
                    self.inside -= 1
            return self.method(storage, uri, *rest)

        return hang


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set every patience to nothing."""
    monkeypatch.setattr(keys, "PATIENCE_S", 0.0)
    monkeypatch.setattr(sidecar, "PATIENCE_S", 0.0)


@pytest.fixture
def hung_keys(monkeypatch: pytest.MonkeyPatch, impatient: None) -> Iterator[Hanging]:
    """Yield a claim whose folders cannot be looked through."""
    hanging = Hanging(Storage.key)
    monkeypatch.setattr(Storage, "key", hanging.patched())
    yield hanging
    hanging.go.set()


@pytest.fixture
def hung_fetches(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hanging]:
    """Yield a claim whose files cannot be read."""
    hanging = Hanging(Storage.fetch)
    monkeypatch.setattr(Storage, "fetch", hanging.patched())
    yield hanging
    hanging.go.set()


async def rounds_until(bench: Bench, what: Callable[[], object], *models: RenderedModel) -> None:
    """Run rounds until it is so."""
    desired = RenderedRepository("server", models)
    while not what():
        await bench.agent.observe()
        await bench.converge(desired)
        await asyncio.sleep(0.005)


async def test_a_claim_that_cannot_be_looked_through_holds_up_no_other_model(bench: Bench, hung_keys: Hanging) -> None:
    hung = [bench.model(f"hung{n}", v1=bench.claimed("nfs", f"m{n}", str(n))) for n in range(20)]
    models = (
        *hung,
        bench.model("good", v1=bench.source("a", "one")),
        bench.model("claim", v1=bench.claimed("ok", "m", "two")),
    )
    await rounds_until(bench, lambda: len(bench.fake.loaded) == 2, *models)
    assert {name: state for (name, _), state in bench.states().items() if state is LoadState.READY}.keys() == {
        "good",
        "claim",
    }
    assert hung_keys.most == 1
    bench.now = SILENT_S
    await bench.converge(RenderedRepository("server", models))
    reported = {model.model: model for model in bench.agent.ledger.loaded()}
    assert (reported["hung0"].state, reported["hung0"].failure) == (LoadState.UNAVAILABLE, FailureKind.DOWNLOAD)
    assert {reported[model.name].reason for model in hung} == {unanswered("pvc://nfs", SILENT_S)}
    assert "pvc://nfs: the storage does not answer for 30 s" in reported["hung0"].reason
    assert all(bench.agent.ledger.has_been_tried(model.name) for model in hung)
    hung_keys.go.set()
    await rounds_until(bench, lambda: len(bench.fake.loaded) == 22, *models)
    assert bench.agent.ledger.silent == {}


async def test_files_that_cannot_be_read_give_their_turns_to_others(bench: Bench, hung_fetches: Hanging) -> None:
    hung = [bench.model(f"hung{n}", v1=bench.claimed("nfs", f"m{n}", str(n))) for n in range(FETCHES_AT_ONCE + 2)]
    models = (*hung, bench.model("zoo", v1=bench.source("a", "one")))
    await rounds_until(bench, lambda: hung_fetches.inside == FETCHES_AT_ONCE, *models)
    assert bench.fake.loaded == {}
    bench.now = SILENT_S
    await rounds_until(bench, lambda: bench.fake.loaded, *models)
    assert bench.fake.loaded == {"zoo": {1: "one"}}
    assert bench.agent.ledger.silent == dict.fromkeys([model.name for model in hung], unanswered("pvc://nfs", SILENT_S))
    assert hung_fetches.most == FETCHES_AT_ONCE
    hung_fetches.go.set()
    await rounds_until(bench, lambda: len(bench.fake.loaded) == len(models), *models)


async def test_a_model_whose_claim_hangs_is_served_from_another_source(bench: Bench, hung_fetches: Hanging) -> None:
    hung, other = bench.model("m", v1=bench.claimed("nfs", "m", "one")), bench.model("m", v1=bench.source("a", "two"))
    await rounds_until(bench, lambda: hung_fetches.inside, hung)
    bench.now = SILENT_S
    await rounds_until(bench, lambda: bench.fake.loaded, other)
    assert bench.fake.loaded == {"m": {1: "two"}}
    await rounds_until(bench, lambda: not bench.fake.loaded)


async def test_what_is_served_stays_as_it_is_while_its_storage_hangs(bench: Bench, hung_keys: Hanging) -> None:
    model = bench.model("m", v1=bench.claimed("nfs", "m", "one"))
    hung_keys.go.set()
    await rounds_until(bench, lambda: bench.fake.loaded and not bench.agent.busy, model)
    hung_keys.go.clear()
    bench.agent, bench.now = bench.new_agent(), SILENT_S
    await rounds_until(bench, lambda: hung_keys.inside, model)
    assert bench.states() == {("m", 1): LoadState.READY}
    bench.now = 2 * SILENT_S
    bench.fake.loaded.clear()
    await rounds_until(bench, lambda: bench.fake.loaded, model)
    assert bench.fake.loaded == {"m": {1: "one"}}
    assert bench.agent.ledger.silent == {}


async def test_a_fetch_that_has_all_its_bytes_is_not_silent(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked, go = threading.Event(), threading.Event()

    def unpack(storage: Storage, uri: str, digest: str, progress: Any, *rest: Any) -> Path:
        progress(10, 10)
        unpacked.set()
        assert go.wait(60)
        return bench.root / "sources" / "a"

    monkeypatch.setattr(Storage, "fetch", unpack)
    model = bench.model("m", v1=bench.source("a", "one"))
    await rounds_until(bench, unpacked.is_set, model)
    bench.now = 10 * SILENT_S
    await bench.converge(RenderedRepository("server", (model,)))
    assert bench.agent.ledger.silent == {}
    go.set()
    await until(lambda: bench.fake.loaded)


async def test_a_cache_whose_disk_hangs_ends_no_round(
    tmp_path: Path, fake: Any, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, go = LoopBench(tmp_path, fake), threading.Event()

    def hang(storage: Storage, keys: object) -> None:
        assert go.wait(60)

    monkeypatch.setattr(type(bench.storage), "keep", hang)
    bench.sidecar._take(bench.want(bench.model("m")))
    for _ in range(3):
        await bench.sidecar.round()
    assert [state.live for state in bench.offers.states] == [True] * 3
    assert fake.calls == []
    go.set()
    await bench.wake.wait()
    monkeypatch.setattr(sidecar, "PATIENCE_S", 10.0)
    assert (await bench.rounds()).settled
    assert fake.loaded == {"m": {1: "x"}}


async def test_a_cache_whose_disk_hangs_is_named(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, go, cached = threading.Event(), threading.Event(), Storage.cached

    def hang(storage: Storage, key: str) -> Path | None:
        inside.set()
        assert go.wait(60)
        return cached(storage, key)

    monkeypatch.setattr(Storage, "cached", hang)
    model = bench.model("m", v1=bench.source("a", "one"))
    await rounds_until(bench, inside.is_set, model)
    bench.now = 5 * SILENT_S
    await bench.converge(RenderedRepository("server", (model,)))
    assert bench.agent.ledger.loaded()[0].reason == unanswered("the model cache", 4 * SILENT_S)
    go.set()
    await rounds_until(bench, lambda: bench.fake.loaded, model)


async def test_an_end_waits_for_no_thread_that_hangs() -> None:
    go, threads = threading.Event(), StorageThreads(lambda: 0.0, 1, 1)
    call = threads.submit("nfs", "m", lambda _: go.wait(60))
    behind = threads.submit("nfs", "n", lambda _: True)
    await threads.ended(0.0)
    assert not call.result.done()
    go.set()
    assert await call.result
    assert not behind.result.done()


def test_a_storage_is_named_without_a_password() -> None:
    assert storage_of("https://user:secret@host/a") == "https://host"
    assert storage_of("pvc://claim/a/b") == "pvc://claim"
    assert storage_of("https://[x/y") == ""
    assert storage_of("file:/proc/self") == "file:/proc"
