"""Storage: one verified copy per content, nothing half-written."""

import hashlib
import http.server
import os
import tarfile
import threading
import time
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.agent.sites import Site

from argosy_agent.cache.storage import Storage
from argosy_agent.transfer.errors import StorageError, StorageStoppedError
from argosy_agent.transfer.localfiles import digest_of
from argosy_agent.transfer.stores.local import LINK_FROM


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    """Return an empty storage."""
    (tmp_path / "cache").mkdir()
    return Storage(tmp_path / "cache")


def folder(root: Path, **files: str) -> str:
    """Create a folder with these files (a double underscore is a slash); return its URI."""
    for name, content in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root.as_uri()


def test_a_folder_is_copied_once_and_again_when_it_changes(tmp_path: Path, storage: Storage) -> None:
    uri = folder(tmp_path / "m", model="one", sub__data="x", __pycache____old="no")
    first = storage.fetch(uri)
    assert sorted(str(p.relative_to(first)) for p in first.rglob("*")) == ["model", "sub", "sub/data"]
    assert storage.fetch(uri) == first
    folder(tmp_path / "m", model="other")
    second = storage.fetch(uri)
    assert ((first / "model").read_text(), (second / "model").read_text()) == ("one", "other")
    storage.keep([second.name])
    assert not first.exists()
    assert second.exists()


def test_an_edit_inplace_does_not_reach_the_copy(tmp_path: Path, storage: Storage) -> None:
    uri = folder(tmp_path / "m", model="one")
    copy = storage.fetch(uri)
    with (tmp_path / "m" / "model").open("a") as file:
        file.write(" and more")
    assert (copy / "model").read_text() == "one"


def test_weights_are_linked_not_copied(tmp_path: Path, storage: Storage) -> None:
    (tmp_path / "m").mkdir()
    with (tmp_path / "m" / "weights").open("wb") as file:
        file.truncate(LINK_FROM)
    copy = storage.fetch((tmp_path / "m").as_uri())
    assert os.path.samefile(copy / "weights", tmp_path / "m" / "weights")


def test_the_digest_of_a_file_and_of_a_folder(tmp_path: Path, storage: Storage) -> None:
    uri = folder(tmp_path / "m", b="two", a="one")
    lines = "".join(f"{hashlib.sha256(c.encode()).hexdigest()}  {n}\n" for n, c in (("a", "one"), ("b", "two")))
    full = "sha256:" + hashlib.sha256(lines.encode()).hexdigest()
    assert digest_of(tmp_path / "m") == full
    storage.fetch(uri, full)
    storage.fetch(f"{uri}/a", "sha256:" + hashlib.sha256(b"one").hexdigest())
    wrong = "sha256:" + "0" * 64
    with pytest.raises(StorageError, match=f"its digest is {full}, not the declared {wrong}"):
        storage.fetch(uri, wrong)
    assert not list((tmp_path / "cache").glob(".partial-*"))


@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_an_archive_becomes_what_it_holds(tmp_path: Path, storage: Storage, kind: str) -> None:
    folder(tmp_path / "m", model="one", sub__data="x")
    archive = tmp_path / f"m.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(archive, "w") as zipped:
            zipped.write(tmp_path / "m" / "model", "model")
            zipped.write(tmp_path / "m" / "sub" / "data", "sub/data")
    else:
        with tarfile.open(archive, "w:gz") as tarred:
            tarred.add(tmp_path / "m" / "model", "model")
            tarred.add(tmp_path / "m" / "sub", "sub")
    copy = storage.fetch(archive.as_uri())
    assert [str(p.relative_to(copy)) for p in sorted(copy.rglob("*"))] == ["model", "sub", "sub/data"]


def test_an_archive_may_not_leave_its_folder(tmp_path: Path, storage: Storage) -> None:
    archive = tmp_path / "m.tar"
    folder(tmp_path / "m", model="one")
    with tarfile.open(archive, "w") as tarred:
        tarred.add(tmp_path / "m" / "model", "../outside")
    with pytest.raises(StorageError, match="outside"):
        storage.fetch(archive.as_uri())
    assert not (tmp_path / "cache" / "outside").exists()


def test_what_is_not_there_is_reported(tmp_path: Path, storage: Storage) -> None:
    with pytest.raises(StorageError, match="no such file or folder"):
        storage.fetch((tmp_path / "nothing").as_uri())
    with pytest.raises(StorageError, match="there are no claims outside a cluster"):
        storage.fetch("pvc://claim/x")
    with pytest.raises(StorageError, match="no storage is called so; one of file, pvc, s3"):
        storage.fetch("ftp://host/x")
    (tmp_path / "hollow").mkdir()
    with pytest.raises(StorageError, match="hollow is empty"):
        storage.fetch((tmp_path / "hollow").as_uri())


def test_a_claim_is_a_folder_below_the_root_of_claims(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    storage = Storage(tmp_path / "cache", pvc_root=tmp_path / "pvc")
    folder(tmp_path / "pvc" / "claim" / "models", model="one")
    assert (storage.fetch("pvc://claim/models") / "model").read_text() == "one"
    with pytest.raises(StorageError, match="the claim other is not mounted here"):
        storage.fetch("pvc://other/models")
    with pytest.raises(StorageError, match="leaves its claim"):
        storage.fetch("pvc://claim/../../secret")


@pytest.fixture
def website(tmp_path: Path) -> Iterator[str]:
    """Serve `tmp_path/site` over HTTP; yield its URL."""
    (tmp_path / "site").mkdir()
    handler = partial(SilentHandler, directory=str(tmp_path / "site"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class SilentHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""


def test_http_is_fetched_with_progress(tmp_path: Path, storage: Storage, website: str) -> None:
    (tmp_path / "site" / "model.onnx").write_bytes(b"x" * 1000)
    reported: list[tuple[int, int]] = []
    copy = storage.fetch(f"{website}/model.onnx", progress=lambda done, total: reported.append((done, total)))
    assert (copy / "model.onnx").read_bytes() == b"x" * 1000
    assert reported[-1] == (1000, 1000)
    with pytest.raises(StorageError, match=r"nothing\.onnx: the server answered 404"):
        storage.fetch(f"{website}/nothing.onnx")


def test_stopping_ends_a_copy_and_leaves_nothing(tmp_path: Path, storage: Storage) -> None:
    uri = folder(tmp_path / "m", model="one")
    storage.stop()
    with pytest.raises(StorageStoppedError):
        storage.fetch(uri)
    assert list((tmp_path / "cache").iterdir()) == []


def test_what_a_killed_copy_left_is_swept_after_a_day(tmp_path: Path) -> None:
    for name, age in (("old", 2 * 86400), ("new", 0)):
        (tmp_path / f".partial-remote-{name}").mkdir()
        os.utime(tmp_path / f".partial-remote-{name}", (time.time() - age,) * 2)
    Storage(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".partial-remote-new"]


def test_the_same_uri_under_a_new_version_is_fetched_again(tmp_path: Path, site: Site) -> None:
    storage, uri = Storage(tmp_path / "cache"), f"{site.url}/m"
    site.files["/m"] = b"old"
    first = storage.fetch(uri, version=1)
    site.files["/m"] = b"new"
    assert (storage.fetch(uri, version=2) / "m").read_bytes() == b"new"
    assert storage.fetch(uri, version=1) == first
    assert (first / "m").read_bytes() == b"old"


def test_a_digest_says_what_the_files_are_whatever_the_version(tmp_path: Path, site: Site) -> None:
    storage, uri = Storage(tmp_path / "cache"), f"{site.url}/m"
    site.files["/m"] = b"model"
    digest = "sha256:" + hashlib.sha256(b"model").hexdigest()
    assert storage.fetch(uri, digest, version=1) == storage.fetch(uri, digest, version=2)
