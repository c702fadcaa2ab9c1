"""Members of a tar archive stay in its folder, also where Python has no filter for that."""

import bz2
import gzip
import io
import lzma
import os
import random
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from argosy_common.tarballs import extract_all, opened


@pytest.fixture(params=["filter", "no filter"], autouse=True)
def _python(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Play Python from 3.11.4 on, and as it was before: without the filter, and without the argument."""
    if request.param == "filter":
        if not hasattr(tarfile, "data_filter"):
            pytest.skip("this Python has no filters")
        return
    extract = tarfile.TarFile.extract

    def before(self: tarfile.TarFile, member: tarfile.TarInfo, path: Path, set_attrs: bool = True) -> None:
        if hasattr(tarfile, "fully_trusted_filter"):
            extract(self, member, path, set_attrs, filter="fully_trusted")
        else:
            extract(self, member, path, set_attrs)

    monkeypatch.delattr(tarfile, "data_filter", raising=False)
    monkeypatch.setattr(tarfile.TarFile, "extract", before)


def _archive(*members: tarfile.TarInfo) -> tarfile.TarFile:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for member in members:
            member.size = 4 if member.isreg() else 0
            archive.addfile(member, io.BytesIO(b"data") if member.isreg() else None)
    packed.seek(0)
    return tarfile.open(fileobj=packed)


def _member(name: str, type_: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o4777) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.mode = type_, link, mode
    return member


def test_files_folders_and_links_within_come_out(tmp_path: Path) -> None:
    extract_all(
        _archive(
            _member("1/", tarfile.DIRTYPE),
            _member("1/model.onnx"),
            _member("1/soft", tarfile.SYMTYPE, "model.onnx"),
            _member("1/hard", tarfile.LNKTYPE, "1/model.onnx"),
        ),
        tmp_path,
    )
    for name in ("model.onnx", "soft", "hard"):
        assert (tmp_path / "1" / name).read_bytes() == b"data"
    mode = (tmp_path / "1/model.onnx").stat().st_mode & 0o7777
    assert (mode & 0o600, mode & 0o7022) == (0o600, 0)
    assert os.access(tmp_path / "1", os.X_OK)


@pytest.mark.parametrize("link", ["gone", "hard"])
def test_a_link_to_no_file_of_the_archive_is_refused(tmp_path: Path, link: str) -> None:
    with pytest.raises(tarfile.ExtractError, match=f"'hard' is a link to '{link}', which is no file of the archive"):
        extract_all(_archive(_member("hard", tarfile.LNKTYPE, link)), tmp_path)


@pytest.mark.parametrize(
    "members",
    [
        [_member("../out")],
        [_member("a/../../out")],
        [_member("soft", tarfile.SYMTYPE, "../out")],
        [_member("soft", tarfile.SYMTYPE, "/etc/passwd")],
        [_member("hard", tarfile.LNKTYPE, "../out")],
        [_member("a", tarfile.SYMTYPE, "."), _member("a/b", tarfile.SYMTYPE, ".."), _member("a/b/out")],
        [_member("pipe", tarfile.FIFOTYPE)],
    ],
)
def test_nothing_leads_out(tmp_path: Path, members: list[tarfile.TarInfo]) -> None:
    (tmp_path / "out").write_text("theirs")
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(tarfile.TarError):
        extract_all(_archive(*members), folder)
    assert (tmp_path / "out").read_text() == "theirs"
    assert [path.name for path in tmp_path.iterdir() if path.name != "folder"] == ["out"]


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
@pytest.mark.parametrize("first", [True, False])
def test_headers_that_would_fill_the_memory_are_refused(tmp_path: Path, kind: bytes, first: bool) -> None:
    header = _member("x", kind)
    header.size = 2**32  # that much is never there, nor asked for
    before = b"" if first else _member("model").tobuf()
    (tmp_path / "m.tar").write_bytes(before + header.tobuf(tarfile.USTAR_FORMAT) + bytes(2**20))
    with (
        pytest.raises(tarfile.ExtractError, match="a header of 4294967296 bytes"),
        opened(tmp_path / "m.tar") as archive,
    ):
        extract_all(archive, tmp_path / "out")


DAMAGED = "^it is cut off or damaged: copy it again$"
NO_ARCHIVE = "^it is no tar archive, nor one packed by gzip, bzip2 or xz$"


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_what_is_wrong_with_a_packed_archive_is_reported_in_a_sentence(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    member = _member("model")
    member.size = 100_000
    full = pack(member.tobuf() + bytes(random.Random(0).choices(range(8), k=100_000)) + bytes(1024))
    for size in (12, 30, len(full) // 2):
        _refused(tmp_path, full[:size], DAMAGED)
    half = len(full) // 2
    if pack is not gzip.compress:  # whose checksum stands behind all that is read
        _refused(tmp_path, full[:half] + b"\xff" * 100 + full[half + 100 :], DAMAGED)
    _refused(tmp_path, pack(b"no tar" * 200), NO_ARCHIVE)


def test_what_is_no_archive_at_all_is_reported_in_a_sentence(tmp_path: Path) -> None:
    _refused(tmp_path, b"", DAMAGED)
    _refused(tmp_path, b"no archive", NO_ARCHIVE)
    member = _member("model")
    member.size = 100_000
    _refused(tmp_path, member.tobuf() + bytes(1000), DAMAGED)


def _refused(tmp_path: Path, file: bytes, why: str) -> None:
    (tmp_path / "m.tar").write_bytes(file)
    with pytest.raises(tarfile.ReadError, match=why), opened(tmp_path / "m.tar") as archive:
        extract_all(archive, tmp_path / "out")


def test_long_names_and_attributes_are_read(tmp_path: Path) -> None:
    long = "a" * 200 + "/" + "ä" * 120
    member = _member(long)
    with tarfile.open(tmp_path / "m.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(member)
    with opened(tmp_path / "m.tar") as archive:
        assert archive.getnames() == [long]
