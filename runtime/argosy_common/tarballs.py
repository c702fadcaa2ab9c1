"""Taking members out of a tar archive so that nothing is written outside its folder, and no memory is filled.

Python has its filter "data" for that from 3.11.4 on, and Debian 12 ships 3.11.2.
"""

import bz2
import gzip
import io
import lzma
import os
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Self

from .unxz import Unxz

BROKEN_TAR = (tarfile.TarError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError, ValueError)
"""The exceptions of unpacking, in addition to OSError, where an archive is truncated, damaged or none."""

_DAMAGED = (tarfile.ReadError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError)
_DAMAGE = "it is cut off or damaged: copy it again"
_NO_ARCHIVE = "it is no tar archive, nor one packed by gzip, bzip2 or xz"
_READERS: dict[bytes, Callable[[BinaryIO], io.BufferedIOBase]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lambda file: io.BufferedReader(Unxz(file)),
}
_PIECE = 1 << 16
_PERMISSIONS = 0o755
_LONGEST_HEADER = 2**22
_HEADERS = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
)


class _Member(tarfile.TarInfo):
    """A member whose long names and attributes, which are read into memory as a whole, have a limit."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type in _HEADERS and self.size > _LONGEST_HEADER:
            raise tarfile.ExtractError(f"a header of {self.size} bytes, of at most {_LONGEST_HEADER}")
        return super()._proc_member(archive)  # type: ignore[misc,no-any-return]  # typeshed has no private methods


class _Archive(tarfile.TarFile):
    """An archive to be read, within limits of memory."""

    @classmethod
    def xzopen(cls, name: Any, mode: Any = "r", fileobj: Any = None, preset: Any = None, **more: Any) -> Self:
        """Open a .xz archive within a limit of memory, as `tarfile.TarFile` asks for it."""
        source = io.BufferedReader(Unxz(fileobj or Path(name).open("rb")))  # noqa: SIM115  (closed with the archive)
        try:
            archive = cls.taropen(name, mode, source, **more)
        except (lzma.LZMAError, EOFError) as error:
            source.close()
            raise tarfile.ReadError("not an lzma file") from error
        except BaseException:
            source.close()
            raise
        archive._extfileobj = False  # type: ignore[attr-defined]  # closed with the archive, as by Python's own
        return archive


@contextmanager
def opened(path: Path) -> Iterator[tarfile.TarFile]:
    """Open an archive to be read, and say in a sentence that begins with "it" what is wrong with it.

    Raises OSError and what is in BROKEN_TAR, also while it is read.
    """
    try:
        archive = _Archive.open(path, tarinfo=_Member)
    except _DAMAGED as error:
        raise tarfile.ReadError(_DAMAGE if _is_packed(path) else _NO_ARCHIVE) from error
    with archive:
        try:
            yield archive
        except _DAMAGED as error:
            raise tarfile.ReadError(_DAMAGE) from error
        except OSError as error:
            if error.errno is not None:
                raise
            raise tarfile.ReadError(_DAMAGE) from error  # a decompressor's


def _is_packed(path: Path) -> bool:
    """Return whether a file, which is no whole archive, is empty or damaged where it is packed. Raises OSError."""
    with path.open("rb") as file:
        head = file.read(6)
        reader = next((reader for magic, reader in _READERS.items() if head.startswith(magic)), None)
        if reader is None:
            return not head
        file.seek(0)
        try:
            reader(file).read(_PIECE)
        except (*_DAMAGED, OSError):
            return True
    return False


def extract_all(archive: tarfile.TarFile, folder: Path) -> None:
    """Take every member out. Raises OSError and tarfile.TarError, which is what leads out of the folder."""
    for member in archive:
        extract(archive, member, folder)


def extract(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Take one member out. Raises OSError and tarfile.TarError."""
    try:
        _extract(archive, member, folder)
    except (KeyError, RecursionError) as error:  # a link to no member, or to itself
        raise tarfile.ExtractError(
            f"{member.name!r} is a link to {member.linkname!r}, which is no file of the archive"
        ) from error


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    if hasattr(tarfile, "data_filter"):
        archive.extract(member, folder, filter="data")
        return
    _check(member, folder)
    member.mode = (member.mode & _PERMISSIONS) | 0o600 | (0o100 if member.isdir() else 0)
    archive.extract(member, folder, set_attrs=not member.issym())


def _check(member: tarfile.TarInfo, folder: Path) -> None:
    """Raise tarfile.ExtractError for a member that is no file, folder or link, or that leads out of the folder."""
    if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
        raise tarfile.ExtractError(f"{member.name!r} is neither a file nor a folder nor a link")
    _check_inside(member.name, folder / member.name, folder)
    if member.islnk():
        _check_inside(member.linkname, folder / member.linkname, folder)
    if member.issym():
        _check_inside(member.linkname, (folder / member.name).parent / member.linkname, folder)


def _check_inside(name: str, path: Path, folder: Path) -> None:
    root = os.path.realpath(folder)
    if os.path.isabs(name) or os.path.commonpath([os.path.realpath(path), root]) != root:
        raise tarfile.ExtractError(f"{name!r} would be outside the folder")
