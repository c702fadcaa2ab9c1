"""Stores that hold half of an engine, refuse, are full or not there; and builds that are killed while they publish."""

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from argosy_agent.engines.artifacts import BrokenArtifactError
from argosy_agent.engines.store import EngineStore
from argosy_agent.transfer.errors import FullError, StorageError

from .making import FILES, KEY, OTHER, listing, manifest, open_at, write

ROOT = Path(__file__).parents[3]
PUBLISHER = """
import sys
from pathlib import Path
from tests.agent.engines.making import KEY, manifest, open_at
from argosy_agent.transfer.sinks import folder

def stop(point):
    print(point, flush=True)
    sys.stdin.read()

uri, base, point = sys.argv[1:]
store = open_at(uri, Path(base))
sink = type(store._sink)
create, link = sink.create, folder.os.link

def created(self, name, body):
    if point == "before the manifest" and name.endswith("manifest.json"):
        stop(point)
    done = create(self, name, body)
    if point == "after the manifest" and name.endswith("manifest.json"):
        stop(point)
    return done

def linked(source, target):
    link(source, target)
    if point == "as the manifest has its name" and str(target).endswith("manifest.json"):
        stop(point)

sink.create, folder.os.link = created, linked
at = {"at the first byte": 1, "midway": 3000, "with all files": 7002}.get(point, 10**9)
store.publish(KEY, Path(base) / "built", manifest(), lambda done, total: stop(point) if done >= at else None)
print("done", flush=True)
"""
POINTS = ("at the first byte", "midway", "with all files", "before the manifest")


def kill_at(point: str, uri: str, folder: Path) -> None:
    """Let another process publish, and kill it there."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PUBLISHER, uri, str(folder), point]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == point
        process.kill()


@pytest.mark.parametrize("point", POINTS)
def test_killed_before_its_manifest_it_is_not_seen(
    store: EngineStore, engine: Path, tmp_path: Path, point: str
) -> None:
    kill_at(point, store.uri, tmp_path)
    assert store.lookup(KEY) is None
    assert list(store.list()) == []
    published = store.publish(KEY, engine, manifest())
    assert store.lookup(KEY) == published
    store.fetch(KEY, tmp_path / "copy")
    assert listing(tmp_path / "copy") == FILES


@pytest.mark.parametrize("point", ["as the manifest has its name", "after the manifest"])
def test_killed_behind_its_manifest_all_is_there(here: EngineStore, engine: Path, tmp_path: Path, point: str) -> None:
    kill_at(point, here.uri, tmp_path)
    result = here.lookup(KEY)
    assert result is not None
    assert here.publish(KEY, engine, manifest()) == result


def spoil(store: EngineStore, name: str, body: bytes | None) -> None:
    """Replace a file of an engine, or remove it."""
    store._sink.remove(name)
    if body is not None:
        store._sink.replace(name, body)


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("model.onnx", None, "model.onnx is missing"),
        ("model.onnx", b"weights", "model.onnx has 7 bytes in place of 7000"),
        ("model.onnx", b"WEIGHTS" * 1000, "model.onnx holds other bytes than were published"),
        ("sub/more", b"1", "sub/more is there and belongs to nothing"),
    ],
)
def test_half_an_engine(store: EngineStore, engine: Path, tmp_path: Path, name: str, body: bytes, words: str) -> None:
    published = store.publish(KEY, engine, manifest())
    spoil(store, f"{KEY}/{published.attempt}/{name}", body)
    for look in (lambda: store.lookup(KEY), lambda: store.fetch(KEY, tmp_path / "copy")):
        with pytest.raises(BrokenArtifactError, match=f"{KEY} holds a broken engine: {words}; ") as caught:
            look()
    with pytest.raises(BrokenArtifactError):
        store.publish(KEY, engine, manifest())
    store.remove(KEY, caught.value.attempt)
    again = store.publish(KEY, engine, manifest())
    assert store.lookup(KEY) == again
    store.fetch(KEY, tmp_path / "again")
    assert listing(tmp_path / "again") == FILES


def test_what_was_only_copied_is_read_and_verified(store: EngineStore, engine: Path, tmp_path: Path) -> None:
    """Another time, or another ETag, is no other content."""
    published = store.publish(KEY, engine, manifest())
    spoil(store, f"{KEY}/{published.attempt}/model.onnx", FILES["model.onnx"])
    for path in tmp_path.rglob("model.onnx"):
        os.utime(path, (1, 1))
    assert store.lookup(KEY) == published


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "manifest.json is not JSON"),
        ('{"format": 1', "manifest.json is not JSON"),
        ("[]", "manifest.json must be an object"),
        ('{"format": 1, "attempt": "../../etc"}', "manifest.json.attempt: '../../etc' is no hexadecimal number"),
        (
            '{"format": 1, "key": "k", "attempt": "ab", "digest": "", "files": [{"name": "../x", "size": 1}]}',
            r"manifest.json.files\[0\].name: '../x' is no path below a folder",
        ),
    ],
)
def test_a_manifest_that_is_none(store: EngineStore, engine: Path, text: str, words: str) -> None:
    store._sink.replace(f"{KEY}/manifest.json", text.encode())
    with pytest.raises(BrokenArtifactError, match=words) as caught:
        store.lookup(KEY)
    assert list(store.list()) == []
    store.remove(KEY, caught.value.attempt)
    store.publish(KEY, engine, manifest())
    assert store.lookup(KEY) is not None


def test_a_manifest_of_another_engine(store: EngineStore, engine: Path) -> None:
    published = store.publish(KEY, engine, manifest())
    store._sink.replace(f"{OTHER}/manifest.json", store._sink.read(f"{KEY}/manifest.json") or b"")
    with pytest.raises(BrokenArtifactError, match=f"manifest.json is that of {KEY}"):
        store.lookup(OTHER)
    store.remove(OTHER)
    assert store.lookup(KEY) == published


def test_a_broken_phase_is_done_again(store: EngineStore, engine: Path, tmp_path: Path) -> None:
    store.save_phase(KEY, "convert", engine)
    location = f"{KEY}/phases/convert"
    (attempt,) = store._sink.folders(location)
    spoil(store, f"{location}/{attempt}/model.onnx", b"cut")
    assert not store.load_phase(KEY, "convert", tmp_path / "copy")
    store.save_phase(KEY, "convert", engine)
    spoil(store, f"{location}/manifest.json", b"{")
    store.save_phase(KEY, "convert", engine)
    assert store.load_phase(KEY, "convert", tmp_path / "again")
    assert listing(tmp_path / "again") == FILES


def test_what_lies_alongside_is_left_alone(store: EngineStore, engine: Path) -> None:
    for name in ("README", "models/manifest.json", f"{KEY}.old/manifest.json", f"{OTHER}/notes.txt", "x/y/z"):
        store._sink.replace(name, b"theirs")
    published = store.publish(KEY, engine, manifest())
    assert [item.key for item in store.list()] == [KEY]
    assert store.lookup(KEY) == published
    assert store.lookup(OTHER) is None
    store.remove(KEY)
    assert store._sink.read(f"{OTHER}/notes.txt") == b"theirs"
    assert store._sink.read(f"{KEY}.old/manifest.json") == b"theirs"


@contextmanager
def size_limit(size: int) -> Iterator[None]:
    """Let the kernel refuse files of more than `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk(here: EngineStore, engine: Path, tmp_path: Path) -> None:
    with (
        size_limit(4096),
        pytest.raises(FullError, match=r"engines.*model.onnx cannot be written: .* larger, or remove"),
    ):
        here.publish(KEY, engine, manifest())
    assert listing(tmp_path / "engines") == {}
    here.publish(KEY, engine, manifest())


def test_a_full_disk_on_the_way_back_is_not_the_stores(here: EngineStore, engine: Path, tmp_path: Path) -> None:
    here.publish(KEY, engine, manifest())
    with size_limit(4096), pytest.raises(OSError, match="File too large"):
        here.fetch(KEY, tmp_path / "copy")


def test_a_folder_that_holds_something(here: EngineStore, engine: Path, tmp_path: Path) -> None:
    here.publish(KEY, engine, manifest())
    with pytest.raises(StorageError, match="copy holds files already: an engine is fetched into an empty folder"):
        here.fetch(KEY, write(tmp_path / "copy", {"x": b"1"}))
    assert listing(tmp_path / "copy") == {"x": b"1"}


def test_no_space_left(here: EngineStore, engine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(FullError, match=r"No space left on device: make the disk of spec.storage.engineCache"):
            here.publish(KEY, engine, manifest())
    assert listing(tmp_path / "engines") == {}


def test_a_folder_that_may_not_be_written_to(engine: Path, tmp_path: Path) -> None:
    """Not by root either: the kernel's own."""
    with pytest.raises(StorageError, match=r"cannot be written: .*user \d+ must be allowed to write into the folder"):
        open_at("file:/sys/engines", tmp_path).publish(KEY, engine, manifest())


def test_a_folder_that_is_a_file(engine: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match=r"cannot be written: .*look at spec.storage.engineCache.storageUri"):
        open_at(f"file:{tmp_path}/file", tmp_path).publish(KEY, engine, manifest())


def test_a_claim_that_is_not_mounted(tmp_path: Path) -> None:
    (tmp_path / "pvc").mkdir()
    with pytest.raises(StorageError, match="the claim models is not mounted here"):
        open_at("pvc://models/engines", tmp_path)


def test_file_systems_without_links(here: EngineStore, engine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    published = here.publish(KEY, engine, manifest())
    assert here.lookup(KEY) == published
    assert here.publish(KEY, engine, manifest()) == published


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "holds no files"),
        ({"model.tar.gz": b"x"}, "would be unpacked when fetched"),
        ({"a\nb": b"x"}, "not every store can keep such a name"),
    ],
)
def test_what_cannot_be_published(here: EngineStore, tmp_path: Path, files: dict[str, bytes], words: str) -> None:
    (tmp_path / "bad").mkdir()
    with pytest.raises(StorageError, match=words):
        here.publish(KEY, write(tmp_path / "bad", files), manifest())
    assert here.keys() == []
