"""Engines are kept whole, found again, and come back as they were: in folders, claims, and a real S3 server."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from argosy_agent.cache.storage import Storage
from argosy_agent.contract.builds import DataSource, Gate
from argosy_agent.engines.store import EngineStore
from argosy_agent.transfer.errors import StorageError

from .making import FILES, KEY, OTHER, REQUEST, listing, manifest, open_at, write


def test_an_engine_is_published_and_looked_up(store: EngineStore, engine: Path) -> None:
    assert store.lookup(KEY) is None
    reported: list[tuple[int, int]] = []
    published = store.publish(KEY, engine, manifest(), lambda done, total: reported.append((done, total)))
    assert store.lookup(KEY) == published
    assert (published.builder, published.precision, published.architecture) == ("onnxruntime", "int8", "amd64")
    assert published.size == sum(map(len, FILES.values()))
    assert reported[0] == (0, published.size)
    assert reported[-1] == (published.size, published.size)


def test_an_agent_fetches_it_by_the_manifests_digest(store: EngineStore, engine: Path, storage: Storage) -> None:
    published = store.publish(KEY, engine, manifest())
    assert listing(storage.fetch(published.uri, published.digest)) == FILES


def test_an_engine_of_one_file_has_that_files_digest(store: EngineStore, tmp_path: Path, storage: Storage) -> None:
    published = store.publish(KEY, write(tmp_path / "one", {"model.plan": b"x" * 10}), manifest())
    assert listing(storage.fetch(published.uri, published.digest)) == {"model.plan": b"x" * 10}


def test_what_is_fetched_may_be_written_into(store: EngineStore, tmp_path: Path) -> None:
    big = write(tmp_path / "big", {"weights": bytes(20 * 2**20), "b": b"1"})
    store.publish(KEY, big, manifest())
    store.fetch(KEY, tmp_path / "copy")
    assert listing(tmp_path / "copy") == listing(big)
    with (tmp_path / "copy" / "weights").open("r+b") as file:
        file.write(b"changed")
    assert store.lookup(KEY) is not None
    store.fetch(KEY, tmp_path / "again")
    assert listing(tmp_path / "again") == listing(big)


def test_the_first_of_two_stays(store: EngineStore, engine: Path, tmp_path: Path) -> None:
    first = store.publish(KEY, engine, manifest())
    assert store.publish(KEY, write(tmp_path / "other", {"x": b"1"}), manifest()) == first
    assert len(list(store.list())) == 1


def test_no_credentials_are_retained(here: EngineStore, engine: Path, tmp_path: Path) -> None:
    here.publish(KEY, engine, manifest())
    data = DataSource("https://who:secret@host/data?sign=1")
    here.add_request(KEY, replace(REQUEST, calibration=data, gate=Gate(data, script=data)))
    texts = [path.read_text() for path in (tmp_path / "engines").rglob("*.json")]
    assert sum("https://host/model" in text for text in texts) == 2
    assert not any("secret@" in text or "sign=" in text for text in texts)


def test_racers_agree_on_one(store: EngineStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All have written their files before any writes a manifest."""
    racers = 4
    together = threading.Barrier(racers)
    sink = type(store._sink)
    create = sink.create

    def created(self: object, name: str, body: bytes) -> bool:
        if name.endswith("manifest.json"):
            together.wait(60)
        return create(self, name, body)  # type: ignore[arg-type]

    monkeypatch.setattr(sink, "create", created)
    folders = [write(tmp_path / f"racer{n}", {"model": b"%d" % n * 100, "sub/x": b"%d" % n}) for n in range(racers)]
    with ThreadPoolExecutor(racers) as pool:
        winners = list(pool.map(lambda folder: store.publish(KEY, folder, manifest()), folders))
    assert len({winner.attempt for winner in winners}) == 1
    assert store.lookup(KEY) == winners[0]
    assert store._sink.folders(KEY) == [winners[0].attempt]


def test_phases(store: EngineStore, engine: Path, tmp_path: Path) -> None:
    assert not store.load_phase(KEY, "convert", tmp_path / "nothing")
    store.save_phase(KEY, "convert", engine)
    store.save_phase(KEY, "quantize-2", write(tmp_path / "second", {"q": b"2"}))
    assert store.load_phase(KEY, "convert", tmp_path / "convert")
    assert listing(tmp_path / "convert") == FILES
    assert store.lookup(KEY) is None
    assert list(store.list()) == []
    store.publish(KEY, engine, manifest())
    store.drop_phases(KEY)
    assert not store.load_phase(KEY, "convert", tmp_path / "again")
    assert store.lookup(KEY) is not None


def test_removed_is_gone(store: EngineStore, engine: Path) -> None:
    store.remove(KEY)
    store.publish(KEY, engine, manifest())
    retained = store.publish(OTHER, engine, manifest(OTHER))
    store.add_request(KEY, REQUEST)
    store.remove(KEY, "0" * 16)
    assert store.lookup(KEY) is not None
    store.remove(KEY)
    assert store.lookup(KEY) is None
    assert store.keys() == [OTHER]
    assert [item.key for item in store.list()] == [OTHER]
    assert store.lookup(OTHER) == retained


def test_wrong_names_are_refused(here: EngineStore, engine: Path) -> None:
    with pytest.raises(ValueError, match="is no engine's key"):
        here.publish("../up", engine, manifest())
    with pytest.raises(ValueError, match="is no phase's name"):
        here.save_phase(KEY, "../up", engine)


def test_a_scheme_that_cannot_be_written_to(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"https://host/x cannot be written to: spec.storage.engineCache.storageUri"):
        open_at("https://host/x", tmp_path)


def test_the_longest_names(store: EngineStore, tmp_path: Path) -> None:
    """255 bytes, which leave no space for a longer name next to it."""
    files = {"é" * 127 + "x": b"1", f"sub/{'n' * 255}": b"2"}
    store.publish(KEY, write(tmp_path / "long", files), manifest())
    store.fetch(KEY, tmp_path / "copy")
    assert listing(tmp_path / "copy") == files
