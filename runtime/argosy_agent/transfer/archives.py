"""A copy that is one archive becomes what the archive holds."""

import os
import secrets
import shutil
import zipfile
from pathlib import Path

from argosy_common.tarballs import BROKEN_TAR, extract, opened

from .budget import Budget
from .localfiles import is_leftover

ZIP = ".zip"
SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ZIP)
OTHER_SUFFIXES = (".7z", ".rar", ".gz", ".bz2", ".xz", ".zst", ".tzst", ".lz4", ".lzma", ".z")
"""Those of archives and packed files that are not unpacked."""
BROKEN = (*BROKEN_TAR, zipfile.BadZipFile, RuntimeError)
"""What unpacking raises where an archive is not whole, has a password, or would write outside its folder."""
_MODEL_FOLDERS = (".onnx", ".savedmodel", ".mlpackage")
"""Suffixes of folders that are a model's file to its backend."""


def is_archive(name: str) -> bool:
    """Return whether a file of this name is unpacked, or refused, where it comes alone."""
    return name.lower().endswith((*SUFFIXES, *OTHER_SUFFIXES))


def unpack(folder: Path, budget: Budget) -> None:
    """Put the contents of an archive in its place, where it is the only file.

    A single folder at its top is the model, so its contents are; leftovers of macOS are dropped. Raises OSError, the
    errors in BROKEN, and StorageError where there is no space for it.
    """
    files = [path for path in folder.iterdir() if not is_leftover(path.name)]
    if len(files) != 1 or not is_archive(files[0].name) or not files[0].is_file():
        return
    if not files[0].name.lower().endswith(SUFFIXES):
        raise ValueError(
            f"{files[0].name} is packed in another way than {', '.join(SUFFIXES)}: pack it as one of these"
        )
    archive = files[0].rename(folder / ".archive")  # it may hold a file of its own name
    _extract(archive, files[0].name.lower().endswith(ZIP), folder, budget)
    archive.unlink()
    _remove_leftovers(folder)
    _raise_lone_folder(folder)
    _check_links(folder)
    flush(folder)


def _extract(archive: Path, is_zip: bool, folder: Path, budget: Budget) -> None:
    try:
        if is_zip:
            with zipfile.ZipFile(archive) as zipped:
                for entry in zipped.infolist():
                    if not entry.filename:
                        raise ValueError("a file of the archive has no name")
                    if entry.compress_type == zipfile.ZIP_LZMA:  # takes as much memory as the file says
                        raise ValueError(f"{entry.filename} is packed by LZMA: pack it by deflate, or as .tar.xz")
                    budget.take_file(entry.file_size)
                    zipped.extract(entry, folder)
        else:
            with opened(archive) as tarred:
                for member in tarred:
                    budget.take_file(member.size)
                    extract(tarred, member, folder)
    except OSError as error:
        if error.errno is None:  # a decompressor's, of damaged data
            raise ValueError(str(error)) from error
        raise


def _remove_leftovers(folder: Path) -> None:
    for path in [path for path in folder.rglob("*") if is_leftover(path.name)]:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _raise_lone_folder(folder: Path) -> None:
    """Put the contents of the only folder in its place, unless the folder is the model's file itself."""
    entries = list(folder.iterdir())
    if len(entries) != 1 or entries[0].is_symlink() or not entries[0].is_dir():
        return
    if not entries[0].name.endswith(_MODEL_FOLDERS):
        top = entries[0].rename(folder / f".top-{secrets.token_hex(4)}")  # it may hold an entry of its own name
        for path in list(top.iterdir()):
            path.rename(folder / path.name)
        top.rmdir()


def _check_links(folder: Path) -> None:
    """Raise ValueError for a link that leads out of the folder, as one may that was within a folder above the model."""
    root = os.path.realpath(folder)
    for path in folder.rglob("*"):
        if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root):
            link = os.readlink(path)
            raise ValueError(f"{path.relative_to(folder)} is a link to {link!r}, which is outside the folder")


def flush(folder: Path) -> None:
    """Have every file below `folder` on the disk."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
