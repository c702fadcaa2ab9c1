"""Archives packed by xz: read as by Python's own module, but within a limit of memory."""

import io
import lzma
import random
import tarfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_common.tarballs import BROKEN_TAR, extract_all, opened
from argosy_common.unxz import Unxz


def _demanding(file: bytes) -> bytes:
    """Return an .xz file with 1 GiB for the dictionary in the header of its first block."""
    size = (file[12] + 1) * 4
    header = bytearray(file[12 : 12 + size - 4])
    assert header[2:4] == b"\x21\x01"  # LZMA2, whose properties are one byte
    header[4] = 36
    return file[:12] + bytes(header) + zlib.crc32(header).to_bytes(4, "little") + file[12 + size :]


def _demanding_lzma(file: bytes) -> bytes:
    """Return the same for an .lzma file."""
    return file[:1] + (1 << 30).to_bytes(4, "little") + file[5:]


def _packed(content: bytes = b"") -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        member = tarfile.TarInfo("model")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


@pytest.mark.parametrize(
    "file",
    [_demanding(lzma.compress(_packed())), _demanding_lzma(lzma.compress(_packed(), lzma.FORMAT_ALONE))],
    ids=["xz", "lzma"],
)
def test_an_archive_that_takes_too_much_memory_is_refused(tmp_path: Path, file: bytes) -> None:
    (tmp_path / "m.tar.xz").write_bytes(file)
    refused = pytest.raises(ValueError, match="takes more than 128 MiB of memory: pack it by xz -9 or less")
    with refused, opened(tmp_path / "m.tar.xz"):
        pass


@pytest.mark.parametrize("preset", [0, 6, 9 | lzma.PRESET_EXTREME])
@pytest.mark.parametrize("file_format", [lzma.FORMAT_XZ, lzma.FORMAT_ALONE])
def test_xz_archives_are_read(tmp_path: Path, preset: int, file_format: int) -> None:
    content = random.Random(preset).randbytes(300_000)
    (tmp_path / "m.tar.xz").write_bytes(lzma.compress(_packed(content), file_format, preset=preset))
    with opened(tmp_path / "m.tar.xz") as archive:
        extract_all(archive, tmp_path / "out")
        # Back to the first member, which has been read.
        assert archive.extractfile("model").read() == content  # type: ignore[union-attr]
    assert (tmp_path / "out" / "model").read_bytes() == content


def test_a_damaged_xz_archive_is_broken(tmp_path: Path) -> None:
    full = lzma.compress(_packed(bytes(random.Random(0).choices(range(8), k=300_000))))
    half = len(full) // 2
    for broken in (full[:half], full[:half] + b"\xff" * 100 + full[half + 100 :], full[:20], b""):
        (tmp_path / "m.tar.xz").write_bytes(broken)
        with pytest.raises(BROKEN_TAR), opened(tmp_path / "m.tar.xz") as archive:
            extract_all(archive, tmp_path / "out")


@given(st.lists(st.tuples(st.binary(max_size=300), st.integers(0, 3)), min_size=1, max_size=5), st.data())
def test_what_an_xz_file_holds_is_read_from_anywhere(streams: list[tuple[bytes, int]], data: st.DataObject) -> None:
    packed = b"".join(lzma.compress(content) + bytes(4 * zeros) for content, zeros in streams)
    full, read = io.BytesIO(b"".join(content for content, _ in streams)), Unxz(io.BytesIO(packed))
    for offset in data.draw(st.lists(st.integers(0, len(full.getvalue())), max_size=5)):
        assert read.seek(offset) == full.seek(offset)
        assert read.readall() == full.getvalue()[offset:]
    read.close()
