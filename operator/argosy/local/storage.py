"""A storageUri becomes a verified folder on this disk.

A copy has a key: of the URI and its digest, and for `file:` also of the names, sizes and times below it, so a
folder that changes becomes another copy and what is served keeps its own. A copy is written beside the
cache's folders and renamed when it is whole and its digest is right; what stands under its key is never
written again.
"""

import hashlib
import shutil
import tarfile
import tempfile
import threading
import zipfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import fsspec
from fsspec.callbacks import Callback

from .digest import verify
from .localfiles import LocalFile, copy, is_file, local_files

Progress = Callable[[int, int], None]
"""Told of (bytes here, bytes in all); 0 in all means that nobody knows."""

ARCHIVES = (".tar", ".tar.gz", ".tgz", ".zip")


class StorageError(Exception):
    """The files cannot be had; the message names the URI and the reason."""


class StorageStoppedError(StorageError):
    """`Storage.stop` was called while a copy was under way."""


class Storage:
    """Copies of model files in one cache folder. Its methods block, and any thread may call them."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._stopped = threading.Event()
        for left in cache.glob(".partial-*"):
            shutil.rmtree(left, ignore_errors=True)

    def key(self, uri: str, digest: str = "") -> str:
        """The name of the copy that this URI means now. Raises StorageError where a `file:` is not there."""
        parts = [uri, digest]
        if is_file(uri):
            parts += [f"{each.name}\0{each.size}\0{each.changed_ns}" for each in _found(uri)]
        kind = "file" if is_file(uri) else "remote"
        return f"{kind}-{hashlib.sha256(chr(10).join(parts).encode()).hexdigest()[:32]}"

    def fetch(self, uri: str, digest: str = "", progress: Progress = lambda done, total: None) -> Path:
        """The folder with the files of `uri`, fetched if it is not here yet.

        A URI of one file becomes a folder that holds it; of an archive, what it holds. Raises StorageError.
        """
        key = self.key(uri, digest)
        target = self._cache / key
        if target.is_dir():
            return target
        partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=self._cache))
        try:
            self._fill(uri, partial, progress)
            verify(partial, digest)
            _unpack(partial)
            if self.key(uri, digest) != key:
                raise StorageError(f"{uri} changed while it was copied; it is taken again when it stands still")
            _publish(partial, target)
        except (OSError, ValueError, tarfile.TarError, zipfile.BadZipFile) as error:
            raise StorageError(f"{uri} cannot be fetched: {_reason(error)}") from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        return target

    def keep(self, keys: Collection[str]) -> None:
        """Drop copies of `file:` folders other than `keys`. What came from afar stays for the next time."""
        for folder in self._cache.glob("file-*"):
            if folder.name not in keys:
                shutil.rmtree(folder, ignore_errors=True)

    def stop(self) -> None:
        """Make every copy under way raise StorageStoppedError soon."""
        self._stopped.set()

    def _fill(self, uri: str, folder: Path, progress: Progress) -> None:
        if is_file(uri):
            self._copy(uri, folder, progress)
        else:
            self._download(uri, folder, progress)

    def _copy(self, uri: str, folder: Path, progress: Progress) -> None:
        files = _found(uri)
        meter = _Meter(progress, sum(each.size for each in files), self._stopped)
        for each in files:
            copy(each, folder / each.name, meter.relative_update)

    def _download(self, uri: str, folder: Path, progress: Progress) -> None:
        try:
            self._download_files(uri, folder, progress)
        except StorageError:
            raise
        except Exception as error:  # every file system has exceptions of its own
            raise StorageError(f"{uri} cannot be fetched: {_reason(error)}") from error

    def _download_files(self, uri: str, folder: Path, progress: Progress) -> None:
        filesystem, root = fsspec.url_to_fs(uri)
        sizes = _remote_files(filesystem, root, uri)
        meter = _Meter(progress, sum(sizes.values()), self._stopped)
        for path in sorted(sizes):
            target = folder / _inside(path, root)
            target.parent.mkdir(parents=True, exist_ok=True)
            filesystem.get_file(path, str(target), callback=meter)


class _Meter(Callback):  # type: ignore[misc]  # fsspec has no types
    """fsspec's callback: adds up the bytes of several files, and ends the copy when it is told to stop."""

    def __init__(self, progress: Progress, total: int, stopped: threading.Event) -> None:
        super().__init__()
        self._progress, self._total, self._stopped, self._done = progress, total, stopped, 0

    def set_size(self, size: int | None) -> None:
        """One file's size: the total is known already."""

    def relative_update(self, inc: int = 1) -> None:
        """`inc` more bytes are here."""
        if self._stopped.is_set():
            raise StorageStoppedError("stopped")
        self._done += inc
        self._progress(self._done, self._total)

    def absolute_update(self, value: int) -> None:
        """Some file systems say how much of one file is here: nothing to add up."""
        self.relative_update(0)

    def branched(self, path_1: str, path_2: str, **kwargs: Any) -> "_Meter":
        """The same meter counts every file."""
        return self


def _found(uri: str) -> list[LocalFile]:
    try:
        return local_files(uri)
    except FileNotFoundError as error:
        raise StorageError(f"spec.storageUri: {_reason(error)}; correct it, or put the files there") from error
    except OSError as error:
        raise StorageError(f"{uri} cannot be read: {_reason(error)}") from error


def _remote_files(filesystem: Any, root: str, uri: str) -> dict[str, int]:
    """Path → bytes. Over HTTP a URI is one file: its links are not followed."""
    if urlsplit(uri).scheme in ("http", "https"):
        return {root: int(filesystem.info(root).get("size") or 0)}
    found = filesystem.find(root, detail=True)
    if not found:
        raise StorageError(f"{uri}: nothing is there; correct spec.storageUri, or put the files there")
    return {path: int(info.get("size") or 0) for path, info in found.items()}


def _inside(path: str, root: str) -> str:
    """Where `path` lies below `root`, or its own name where it is the root. Never outside."""
    relative = path[len(root) :].lstrip("/") if path.startswith(root.rstrip("/") + "/") else ""
    name = relative or Path(urlsplit(path).path).name
    if ".." in Path(name).parts:
        raise StorageError(f"{path} would be written outside its folder")
    return name


def _unpack(folder: Path) -> None:
    """Put what an archive holds in its place, where it is all there is."""
    files = list(folder.iterdir())
    if len(files) != 1 or not files[0].name.endswith(ARCHIVES) or not files[0].is_file():
        return
    archive = files[0]
    if archive.name.endswith(".zip"):
        with zipfile.ZipFile(archive) as zipped:
            zipped.extractall(folder)
    else:
        with tarfile.open(archive) as tarred:
            tarred.extractall(folder, filter="data")
    archive.unlink()


def _publish(partial: Path, target: Path) -> None:
    partial.chmod(0o755)
    try:
        partial.rename(target)
    except OSError:
        if not target.is_dir():  # else another thread was first, with the same files
            raise


def _reason(error: BaseException) -> str:
    """What went wrong in words. A file system that wraps another's error may say no more than the URL."""
    if isinstance(error, FileNotFoundError) and error.__cause__ is not None:
        error = error.__cause__
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
