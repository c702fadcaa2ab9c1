"""Folders that this machine can read: `file:` URIs, and volumes of `pvc:` URIs that are mounted here."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from argosy_agent.transfer.errors import ChangedError, StorageError, reason
from argosy_agent.transfer.localfiles import LocalFile, local_files, local_path

from .answers import MISSING
from .source import Source, StoredFile

LINK_FROM = 16 * 2**20
"""Files of this many bytes and more are hard-linked where they can be: weights are replaced, not edited."""
CHUNK = 8 * 2**20


def root_of(uri: str, pvc_root: Path) -> Path:
    """The path that a `file:` or `pvc:` URI means here. Raises StorageError where its claim is not mounted."""
    parts = urlsplit(uri)
    if parts.scheme != "pvc":
        return local_path(uri)
    if not pvc_root.is_dir():
        raise StorageError(
            f"{uri}: there are no claims outside a cluster (argosy up, argosy render): "
            "write where the files are on this machine, file:/…"
        )
    if not (pvc_root / parts.netloc).is_dir():
        raise StorageError(f"{uri}: the claim {parts.netloc} is not mounted here; is it in the pool's namespace?")
    path = Path(unquote(parts.path.lstrip("/")))
    if ".." in path.parts:
        raise StorageError(f"{uri} leaves its claim; correct spec.storageUri")
    return pvc_root / parts.netloc / path


def found(uri: str, pvc_root: Path) -> list[LocalFile]:
    """The files that `uri` means now. Raises StorageError where there are none."""
    root = root_of(uri, pvc_root)
    try:
        files = local_files(root)
    except FileNotFoundError as error:
        raise StorageError(f"{uri}: {reason(error)}; {MISSING}") from error
    except OSError as error:
        raise StorageError(f"{uri} cannot be read: {reason(error)} ({error.filename or root})") from error
    if not files:
        raise StorageError(f"{uri}: the folder {root} is empty; {MISSING}")
    return files


class LocalSource(Source):
    """Files that are here. Big ones are linked where the cache is on the same disk."""

    readers = 2

    def __init__(self, uri: str, pvc_root: Path) -> None:
        self._uri, self._pvc_root = uri, pvc_root

    def files(self) -> list[StoredFile]:
        return [
            StoredFile(each.name, each.size, str(each.changed_ns), str(each.path))
            for each in found(self._uri, self._pvc_root)
        ]

    def read(self, file: StoredFile, start: int, end: int | None) -> Iterator[bytes]:
        with open(file.place, "rb") as reader:
            if str(os.fstat(reader.fileno()).st_mtime_ns) != file.mark:
                raise ChangedError(f"{file.place} changed while it was copied")
            reader.seek(start)
            left = (end or 0) - start
            while left > 0 and (chunk := reader.read(min(CHUNK, left))):
                left -= len(chunk)
                yield chunk
        if left > 0:
            raise ChangedError(f"{file.place} became shorter while it was copied")

    def link(self, file: StoredFile, target: Path) -> bool:
        if (file.size or 0) < LINK_FROM:
            return False
        target.unlink(missing_ok=True)
        try:
            os.link(Path(file.place).resolve(), target)
        except OSError:
            target.touch()
            return False
        return True

    def check(self, file: StoredFile, path: Path) -> None:
        if not os.path.samefile(file.place, path):
            shutil.copystat(file.place, path)
