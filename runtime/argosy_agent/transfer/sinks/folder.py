"""Folders of this machine, and mounted claims: a temporary file is written, flushed, then renamed."""

import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from argosy_agent.transfer.localfiles import local_files

from .sink import Sink, Stored, UnconditionalError, refused_here

CHUNK = 8 * 2**20
NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
"""What a file system says that knows no hard links: FAT, some network and FUSE file systems."""
UNFINISHED = ".part"
"""The end of the hidden name that a file has until it is whole."""
TRIES = 5
"""How often the folder of a file is created again while other processes remove empty folders."""


class FolderSink(Sink):
    """Files below `root`, which is made when the first is written. `uri` is what errors name."""

    def __init__(self, uri: str, root: Path) -> None:
        self._uri, self._root = uri, root

    def write(self, name: str, source: Path, sent: Callable[[bytes], None]) -> None:
        with source.open("rb") as reader, self._translating(name), self._temporary(name) as temporary:
            with temporary.open("wb") as writer:
                while chunk := reader.read(CHUNK):
                    sent(chunk)
                    writer.write(chunk)
                os.fsync(writer.fileno())
            temporary.replace(self._root / name)
            _flush(self._root / name)

    def create(self, name: str, body: bytes) -> bool:
        with self._translating(name), self._temporary(name) as temporary:
            _write(temporary, body)
            try:
                os.link(temporary, self._root / name)
            except FileExistsError:
                return False
            except OSError as error:
                if error.errno in NO_LINKS:
                    raise UnconditionalError(f"{self._uri}: the file system there has no hard links") from error
                raise
            _flush(self._root / name)
        return True

    def replace(self, name: str, body: bytes) -> None:
        with self._translating(name), self._temporary(name) as temporary:
            _write(temporary, body)
            temporary.replace(self._root / name)
            _flush(self._root / name)

    def read(self, name: str) -> bytes | None:
        with self._translating(name, "read"):
            try:
                return (self._root / name).read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                return None

    def chunks(self, file: str) -> Iterator[bytes]:
        with self._translating(file, "read"), (self._root / file).open("rb") as reader:
            while chunk := reader.read(CHUNK):
                yield chunk

    def files(self, prefix: str) -> list[Stored]:
        folder = self._root / prefix
        with self._translating(prefix, "read"):
            if not folder.is_dir():
                return []
            files = local_files(folder)
        return [Stored(file.name, file.size, str(file.changed_ns), file.changed_ns / 1e9) for file in files]

    def folders(self, prefix: str = "") -> list[str]:
        with self._translating(prefix, "read"):
            try:
                return sorted(path.name for path in (self._root / prefix).iterdir() if path.is_dir())
            except FileNotFoundError:
                return []

    def remove(self, prefix: str) -> None:
        path = self._root / prefix
        with self._translating(prefix, "removed"):
            if path.is_dir() and not path.is_symlink():
                with suppress(FileNotFoundError):
                    shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
            self._drop_empty(path.parent)

    def _drop_empty(self, folder: Path) -> None:
        """Remove empty folders, up to the root, which stays."""
        while folder != self._root and folder.is_relative_to(self._root):
            try:
                folder.rmdir()
            except OSError:
                return
            folder = folder.parent

    @contextmanager
    def _temporary(self, name: str) -> Iterator[Path]:
        """Yield an empty file in the folder of `name`, and remove it afterwards."""
        target = self._root / name
        temporary = target.with_name(f".{secrets.token_hex(8)}{UNFINISHED}")
        for left in reversed(range(TRIES)):
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                temporary.touch(exist_ok=False)
                break
            except FileNotFoundError:
                if not left:
                    raise
        try:
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)

    @contextmanager
    def _translating(self, name: str, done: str = "written") -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise refused_here(f"{self._uri}/{name}", error, done) from error


def _write(path: Path, body: bytes) -> None:
    with path.open("wb") as writer:
        writer.write(body)
        os.fsync(writer.fileno())


def _flush(path: Path) -> None:
    """Have the name of a file on the disk, not its bytes alone."""
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
