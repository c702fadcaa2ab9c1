"""A copy that is one archive becomes what the archive holds."""

import gzip
import os
import tarfile
import zipfile
import zlib
from pathlib import Path

from argosy_runtime.tarballs import extract_all

SUFFIXES = (".tar", ".tar.gz", ".tgz", ".zip")
BROKEN = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, ValueError)
"""What unpacking raises where an archive is not whole, or would write outside its folder."""


def unpack(folder: Path) -> None:
    """Put what an archive holds in its place, where it is all there is. Raises OSError and what is in BROKEN."""
    files = list(folder.iterdir())
    if len(files) != 1 or not files[0].name.endswith(SUFFIXES) or not files[0].is_file():
        return
    archive = files[0].rename(folder / ".archive")  # it may hold a file of its own name
    if files[0].name.endswith(".zip"):
        with zipfile.ZipFile(archive) as zipped:
            zipped.extractall(folder)
    else:
        with tarfile.open(archive) as tarred:
            extract_all(tarred, folder)
    archive.unlink()
    flush(folder)


def flush(folder: Path) -> None:
    """Have every file below `folder` on the disk."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
