"""Folders that this machine can read: `file:` URIs, and volumes of `pvc:` URIs that are mounted here."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from argosy_agent.transfer.beneath import EVERYWHERE, opened, resolved
from argosy_agent.transfer.errors import ChangedError, MissingError, StorageError, reason
from argosy_agent.transfer.localfiles import LocalFile, local_files, local_path

from .answers import MISSING
from .source import Source, StoredFile

LINK_FROM = 16 * 2**20
"""Files of this many bytes and more are hard-linked where they can be: weights are replaced, not edited."""
CHUNK = 8 * 2**20
ALLOWED = "the pool's spec.storage.allowedFolders"


@dataclass(frozen=True, slots=True)
class Roots:
    """Where files of this machine are read: claims, each by its name below `claims`, and what lies beneath one of
    `folders`, which alone a `file:` URI may name.
    """

    claims: Path
    folders: tuple[Path, ...] = (EVERYWHERE,)


def root_of(uri: str, roots: Roots) -> tuple[Path, Path]:
    """Return the path that a `file:` or `pvc:` URI means here, and the folder that it may not leave.

    Raises StorageError where its claim is not mounted, or where no `file:` may name it.
    """
    parts = urlsplit(uri)
    if parts.scheme != "pvc":
        return _allowed(uri, roots.folders)
    claim = roots.claims / parts.netloc
    if not roots.claims.is_dir():
        raise StorageError(
            f"{uri}: there are no claims outside a cluster (argosy up, argosy render): "
            "write where the files are on this machine, file:/…"
        )
    if not claim.is_dir():
        raise StorageError(f"{uri}: the claim {parts.netloc} is not mounted here; is it in the pool's namespace?")
    path = Path(unquote(parts.path.lstrip("/")))
    if ".." in path.parts:
        raise StorageError(f"{uri} leaves its claim; correct spec.storageUri")
    return claim / path, claim


def _allowed(uri: str, folders: tuple[Path, ...]) -> tuple[Path, Path]:
    path = Path(os.path.abspath(local_path(uri)))
    for folder in folders:
        if path.is_relative_to(folder):
            return path, folder
    allowed = f"below {', '.join(map(str, folders))}" if folders else "nowhere"
    raise StorageError(f"{uri}: {ALLOWED} lets file: be read {allowed}; add its folder there, or name another storage")


def local_files_of(uri: str, roots: Roots) -> list[LocalFile]:
    """Return the files that `uri` means now. Raises StorageError where there are none, or where some cannot be read."""
    path, root = root_of(uri, roots)
    try:
        files = local_files(path, root)
    except StorageError as error:
        raise StorageError(f"{uri}: {error}") from error
    except FileNotFoundError as error:
        raise MissingError(f"{uri}: no such file or folder: {path}; {MISSING}") from error
    except OSError as error:
        raise StorageError(f"{uri} cannot be read: {reason(error)} ({error.filename or path})") from error
    if not files:
        raise MissingError(f"{uri}: the folder {path} is empty; {MISSING}")
    return files


class LocalSource(Source):
    """Files that are here. Big ones are linked where the cache is on the same disk."""

    readers = 2

    def __init__(self, uri: str, roots: Roots) -> None:
        self._uri, self._roots = uri, roots
        self._root = root_of(uri, roots)[1]

    def files(self) -> list[StoredFile]:
        return [
            StoredFile(file.name, file.size, str(file.changed_ns), str(file.path))
            for file in local_files_of(self._uri, self._roots)
        ]

    def read(self, file: StoredFile, start: int, end: int | None) -> Iterator[bytes]:
        with opened(Path(file.path), self._root) as descriptor, open(descriptor, "rb", closefd=False) as reader:
            if str(os.fstat(descriptor).st_mtime_ns) != file.mark:
                raise ChangedError(f"{file.path} changed while it was copied")
            reader.seek(start)
            left = (end or 0) - start
            while left > 0 and (chunk := reader.read(min(CHUNK, left))):
                left -= len(chunk)
                yield chunk
        if left > 0:
            raise ChangedError(f"{file.path} became shorter while it was copied")

    def link(self, file: StoredFile, target: Path) -> bool:
        if (file.size or 0) < LINK_FROM:
            return False
        target.unlink(missing_ok=True)
        with opened(Path(file.path), self._root) as descriptor, suppress(OSError):
            os.link(resolved(Path(file.path), self._root), target)
            if os.path.samestat(target.lstat(), os.fstat(descriptor)):
                return True
        target.unlink(missing_ok=True)
        target.touch()
        return False

    def check(self, file: StoredFile, path: Path) -> None:
        with opened(Path(file.path), self._root) as descriptor:
            status = os.fstat(descriptor)
        if not os.path.samestat(status, path.stat()):
            path.chmod(status.st_mode & 0o777)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
