"""Archives: what of them is the model, and how much of them is written."""

import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest
from tests.agent.sites import QUICK, Site

from argosy_agent.cache.storage import Storage
from argosy_agent.transfer.archives import unpack
from argosy_agent.transfer.budget import Budget
from argosy_agent.transfer.errors import StorageError, TooLargeError, UnusableError

MIB = 2**20


def archive(path: Path, mode: str = "w:gz", **files: bytes) -> Path:
    """Write an archive of these files; a double underscore is a slash."""
    with tarfile.open(path, mode) as tarred:
        for name, content in files.items():
            member = tarfile.TarInfo(name.replace("__", "/"))
            member.size = len(content)
            tarred.addfile(member, io.BytesIO(content))
    return path


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    """Write a zip file of these files."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipping:
        for name, content in files.items():
            zipping.writestr(name, content)
    return path


def names(folder: Path) -> list[str]:
    """Return the files below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("name", "mode"),
    [("a.tgz", "w:gz"), ("a.TGZ", "w:gz"), ("a.tar", "w"), ("a.tar.bz2", "w:bz2"), ("a.tar.xz", "w:xz")],
)
def test_one_folder_at_the_top_is_the_model(tmp_path: Path, name: str, mode: str) -> None:
    path = archive(tmp_path / name, mode, clf__model=b"m", clf__sub__data=b"d")
    assert names(Storage(tmp_path / "cache").fetch(path.as_uri())) == ["model", "sub/data"]


def test_a_zip_file_that_may_take_any_memory_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_LZMA) as zipping:
        zipping.writestr("model", b"m")
    with pytest.raises(UnusableError, match=r"model is packed by LZMA: pack it by deflate, or as \.tar\.xz"):
        Storage(tmp_path / "cache").fetch((tmp_path / "a.zip").as_uri())


def test_a_zip_file_with_a_file_without_a_name_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as zipping:
        zipping.writestr(zipfile.ZipInfo(""), b"m")
    with pytest.raises(UnusableError, match="a file of the archive has no name"):
        Storage(tmp_path / "cache").fetch((tmp_path / "a.zip").as_uri())


def test_what_macos_leaves_never_counts(tmp_path: Path) -> None:
    left = {"__MACOSX/._clf": b"x", "clf/._model": b"x", "clf/.DS_Store": b"x", ".DS_Store": b"x"}
    path = zipped(tmp_path / "a.zip", {**left, "clf/model": b"m"})
    assert names(Storage(tmp_path / "cache").fetch(path.as_uri())) == ["model"]


def test_an_archive_alongside_what_macos_leaves_is_unpacked(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    archive(tmp_path / "m" / "a.tgz", model=b"m")
    (tmp_path / "m" / "._a.tgz").write_bytes(b"x")
    assert names(Storage(tmp_path / "cache").fetch((tmp_path / "m").as_uri())) == ["model"]


def test_a_folder_that_is_the_models_file_stays(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tgz", **{"model.onnx__model.onnx": b"m", "model.onnx__weights": b"w"})
    assert names(Storage(tmp_path / "cache").fetch(path.as_uri())) == ["model.onnx/model.onnx", "model.onnx/weights"]


def test_a_link_that_leads_out_once_its_folder_is_the_model_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as tarred:
        for name, link in (("clf/model", "sub/model"), ("clf/out", "../out")):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, link
            tarred.addfile(member)
    with pytest.raises(UnusableError, match=r"out is a link to '\.\./out', which is outside"):
        Storage(tmp_path / "cache").fetch((tmp_path / "a.tar").as_uri())


def test_a_top_folder_may_hold_an_entry_of_its_own_name(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tgz", clf__clf__model=b"m", clf__other=b"o")
    assert names(Storage(tmp_path / "cache").fetch(path.as_uri())) == ["clf/model", "other"]


@pytest.mark.parametrize("name", ["model.7z", "model.tar.zst", "model.onnx.gz", "model.RAR"])
def test_a_suffix_that_is_not_unpacked_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"packed")
    with pytest.raises(UnusableError, match=rf"{name} is packed in another way than \.tar, \.tar\.gz"):
        Storage(tmp_path / "cache").fetch((tmp_path / name).as_uri())


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_an_archive_that_holds_more_than_the_limit_is_not_written(tmp_path: Path, kind: str) -> None:
    big = {"first": bytes(MIB), "big": bytes(200 * MIB), "last": b"x"}
    path = archive(tmp_path / "a.tgz", **big) if kind == "tar" else zipped(tmp_path / "a.zip", big)
    folder = tmp_path / "files"
    folder.mkdir()
    path.rename(folder / path.name)
    most = 10 * MIB

    def ask(size: int, here: int) -> None:
        assert here <= most
        if size > most:
            raise StorageError(f"{size} is more than {most}")

    with pytest.raises(StorageError, match="is more than"):
        unpack(folder, Budget(ask))
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.name != ".archive") <= 2 * MIB


def test_the_error_names_the_limit_and_leaves_nothing(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tgz", big=bytes(200 * MIB))
    assert path.stat().st_size < MIB
    with pytest.raises(TooLargeError, match=r"needs 200\.0 MiB; spec\.storage\.modelCache\.sizeLimit is 10\.0 MiB"):
        Storage(tmp_path / "cache", 10 * MIB).fetch(path.as_uri())
    assert not any(path.is_file() for path in (tmp_path / "cache").rglob("*"))


def test_many_empty_files_take_space_too(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tgz", **{f"f{number}": b"" for number in range(1000)})
    with pytest.raises(TooLargeError, match="sizeLimit is 1"):
        Storage(tmp_path / "cache", MIB).fetch(path.as_uri())


def test_a_download_of_unknown_size_ends_at_the_limit(tmp_path: Path, site: Site) -> None:
    site.unsized = site.plain = True
    site.files["/m"] = os.urandom(8 * MIB)
    arrived: list[int] = []
    storage = Storage(tmp_path / "cache", MIB, retry=QUICK)
    with pytest.raises(TooLargeError, match="sizeLimit is 1"):
        storage.fetch(f"{site.url}/m", progress=lambda done, total: arrived.append(done))
    assert max(arrived) <= 3 * MIB
    assert not any(path.is_file() for path in (tmp_path / "cache").rglob("*"))


class Agents:
    """Processes that work on one cache one after another, at a time that is set."""

    def __init__(self, cache: Path, limit: int) -> None:
        self.cache, self.limit, self.now = cache, limit, 1e9

    def fetch(self, uri: str) -> Path:
        """Fetch it in a new process."""
        return Storage(self.cache, self.limit, retry=QUICK, lasting=True, now=lambda: self.now).fetch(uri)


def test_what_came_in_vain_is_left_alone_by_the_next_process(tmp_path: Path, site: Site) -> None:
    site.files["/a.tgz"] = archive(tmp_path / "a.tgz", big=bytes(200 * MIB)).read_bytes()
    agents, uri = Agents(tmp_path / "cache", 10 * MIB), f"{site.url}/a.tgz"
    with pytest.raises(TooLargeError) as first:
        agents.fetch(uri)
    requests = len(site.requests)
    agents.now += 59
    with pytest.raises(TooLargeError) as second:
        agents.fetch(uri)
    assert (str(second.value), len(site.requests)) == (str(first.value), requests)
    agents.now += 2
    with pytest.raises(TooLargeError):
        agents.fetch(uri)
    assert len(site.requests) > requests
    agents.now += 61  # the second pause is longer
    requests = len(site.requests)
    with pytest.raises(TooLargeError):
        agents.fetch(uri)
    assert len(site.requests) == requests
    site.files["/a.tgz"] = archive(tmp_path / "b.tgz", model=b"m").read_bytes()
    agents.now += 60
    assert names(agents.fetch(uri)) == ["model"]
    assert not list((tmp_path / "cache").glob(".refused-*"))


def test_what_was_too_large_is_tried_at_once_under_another_limit(tmp_path: Path, site: Site) -> None:
    site.files["/a.tgz"] = archive(tmp_path / "a.tgz", big=bytes(20 * MIB)).read_bytes()
    agents, uri = Agents(tmp_path / "cache", 10 * MIB), f"{site.url}/a.tgz"
    with pytest.raises(TooLargeError):
        agents.fetch(uri)
    agents.limit = 100 * MIB
    assert names(agents.fetch(uri)) == ["big"]
