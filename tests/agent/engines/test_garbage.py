"""Garbage of a store: by rule, and in stores of each kind."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_agent.contract.builds import AccuracyReport
from argosy_agent.engines.inventory import SHARED, Half, StoredEngine, garbage
from argosy_agent.engines.manifest import Manifest, without_credentials
from argosy_agent.engines.store import EngineStore
from argosy_agent.transfer.errors import FullError

from .making import KEY, OTHER, REQUEST, manifest, write

LATER = time.time() + 10**6
"""Everything was written before."""
KEYS = st.sampled_from([KEY, OTHER])
HALVES = st.builds(Half, KEYS, st.just(1), st.floats(0, 100))
ENGINES = st.builds(
    StoredEngine,
    key=KEYS,
    manifest=st.none() | st.builds(Manifest, KEYS),
    problem=st.sampled_from(["", "model.onnx is missing"]),
    broken=st.booleans(),
    used_at=st.floats(0, 100),
    halves=st.lists(HALVES, max_size=3).map(tuple),
    leased_at=st.sampled_from([0.0, 50.0]),
)


@given(st.lists(ENGINES, max_size=5), st.sets(KEYS), st.floats(0, 100))
def test_nothing_young_and_nothing_used_goes(engines: list[StoredEngine], used: set[str], before: float) -> None:
    removable = garbage(engines, lambda engine: engine.key in used, before, 40.0)
    for engine in engines:
        assert not (engine.leased_at and engine in removable.engines)
        goes = engine in removable.engines
        assert not (goes and engine.used_at >= before)
        assert not (goes and engine.key in used and not engine.broken)
        assert not (goes and engine.problem and not engine.broken)
    assert all(half.changed_at < before for half in removable.halves)
    assert {*removable.halves} <= {half for engine in engines if not engine.leased_at for half in engine.halves}
    unknown = garbage(engines, None, before, 40.0)
    assert all(engine.broken for engine in unknown.engines)
    assert unknown.halves == removable.halves


def report(at: str) -> AccuracyReport:
    return AccuracyReport("perplexity_ratio", 1.01, True, 10, "sha256:1", at)


def test_what_is_retained_alongside_an_engine(store: EngineStore, engine: Path) -> None:
    store.publish(KEY, engine, manifest())
    store.add_request(KEY, REQUEST)
    store.add_request(KEY, REQUEST)
    store.add_accuracy(KEY, report("2026-01-03T00:00:00Z"))
    store.add_accuracy(KEY, report("2026-01-02T00:00:00Z"))
    store._sink.replace(f"{KEY}/accuracy/torn.json", b"{")
    (stored,) = store.inventory()
    assert stored.requests == (without_credentials(REQUEST),)
    assert [report.at for report in stored.accuracies] == ["2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"]
    assert abs(stored.used_at - time.time()) < 100
    assert (stored.problem, stored.halves) == ("", ())


def left_behind(store: EngineStore, engine: Path) -> None:
    """Store one engine in use, one that is not, one broken, phases and an attempt of a build that was killed."""
    for key in (KEY, OTHER, "b" * 32):
        store.publish(key, engine, manifest(key))
        store.add_request(key, REQUEST)
    store._sink.remove("b" * 32 + f"/{store._sink.folders('b' * 32)[0]}/model.onnx")
    store.save_phase("c" * 32, "convert", engine)
    store._sink.replace(f"{KEY}/{'1' * 16}/model.onnx", b"half")
    store._sink.replace("theirs/model.onnx", b"theirs")
    store._sink.replace(f"{KEY}/notes.txt", b"theirs")


def test_what_goes(store: EngineStore, engine: Path) -> None:
    left_behind(store, engine)
    is_used: Callable[[StoredEngine], bool] = lambda engine: engine.key == KEY  # noqa: E731
    assert list(store.collect(is_used, time.time() - 10**6)) == []
    would = list(store.collect(is_used, LATER, remove=False))
    gone = list(store.collect(is_used, LATER))
    assert gone == would
    assert {removed.path if isinstance(removed, Half) else removed.key for removed in gone} == {
        OTHER,
        "b" * 32,
        f"{'c' * 32}/phases",
        f"{KEY}/{'1' * 16}",
    }
    assert store.lookup(KEY) is not None
    assert [engine.key for engine in store.list()] == [KEY]
    assert store._sink.read("theirs/model.onnx") == store._sink.read(f"{KEY}/notes.txt") == b"theirs"
    assert list(store.collect(is_used, LATER)) == []


def test_what_a_running_build_has_written_stays_however_old_it_is(store: EngineStore, engine: Path) -> None:
    key = "c" * 32
    with store.leased(key):
        left_behind(store, engine)
        store._sink.replace(f"{key}/{'1' * 16}/model.onnx", b"half")
        gone = list(store.collect(lambda engine: True, LATER))
        assert not any(isinstance(removed, Half) and removed.path.startswith(key) for removed in gone)
        assert store.load_phase(key, "convert", engine.parent / "again")
    gone = list(store.collect(lambda engine: True, LATER))
    assert {removed.path for removed in gone if isinstance(removed, Half)} == {f"{key}/phases", f"{key}/{'1' * 16}"}


def test_a_lease_is_renewed_and_that_of_a_killed_build_expires(here: EngineStore, tmp_path: Path) -> None:
    written, keep = threading.Semaphore(0), here._sink.replace

    def replace(name: str, body: bytes) -> None:
        keep(name, body)
        written.release()

    here._sink.replace = replace  # type: ignore[method-assign]
    with here.leased(KEY, renewed_s=0.001):
        assert all(written.acquire(timeout=60) for _ in range(3))
    assert here.inspect(KEY).leased_at == 0.0
    killed = here.leased(KEY)
    killed.__enter__()
    assert list(here.collect(None, LATER)) == []
    for path in (tmp_path / "engines" / KEY).rglob("*"):
        os.utime(path, (1000, 1000))
    assert [removed.path for removed in here.collect(None, LATER) if isinstance(removed, Half)] == [f"{KEY}/leases"]


def test_what_builds_share_stays(store: EngineStore, engine: Path, tmp_path: Path) -> None:
    store.save_phase(KEY, SHARED, engine)
    store.save_phase(OTHER, "convert", engine)
    assert [removed.path for removed in store.collect(None, LATER) if isinstance(removed, Half)] == [f"{OTHER}/phases"]
    assert store.load_phase(KEY, SHARED, tmp_path / "again")


def test_a_store_that_takes_no_lease_ends_no_build(here: EngineStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(name: str, body: bytes) -> None:
        raise FullError("no room")

    monkeypatch.setattr(here._sink, "replace", full)
    with here.leased(KEY):
        assert here.inspect(KEY).leased_at == 0.0


def test_without_knowing_who_uses_what_only_what_is_broken_goes(store: EngineStore, engine: Path) -> None:
    left_behind(store, engine)
    list(store.collect(None, LATER))
    assert {engine.key for engine in store.list()} == {KEY, OTHER}


def test_what_a_newer_release_wrote_stays(store: EngineStore) -> None:
    store._sink.replace(f"{KEY}/manifest.json", b'{"format": 99}')
    (engine,) = store.inventory()
    assert "which a newer release of Argosy wrote: update this one" in engine.problem
    assert list(store.collect(lambda engine: False, LATER)) == []
    assert store._sink.read(f"{KEY}/manifest.json") is not None


def test_a_request_counts_as_use(here: EngineStore, engine: Path, tmp_path: Path) -> None:
    here.publish(KEY, engine, manifest())
    for path in (tmp_path / "engines").rglob("*"):
        os.utime(path, (1000, 1000))
    assert [engine.used_at for engine in here.inventory()] == [1000]
    here.add_request(KEY, REQUEST)
    assert list(here.collect(lambda engine: False, time.time() - 100)) == []


def test_what_a_killed_writer_left(here: EngineStore, tmp_path: Path) -> None:
    write(tmp_path / "engines" / KEY, {f".{'a' * 16}.part": b"{", f"{'1' * 16}/.{'b' * 16}.part": b"x"})
    gone = list(here.collect(None, LATER))
    assert len(gone) == 2
    assert here.keys() == []
