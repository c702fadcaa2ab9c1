"""The interface of every kind of storage: list its files, and read one from any byte."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from argosy_agent.transfer.budget import Budget
from argosy_agent.transfer.errors import StorageError


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file of a source.

    `name`: its path below the copy; `size`: bytes, None if unknown; `mark`: a value that changes with the content (an
    ETag; empty if there is none); `ranges`: whether parts of it can be read. `path`: for the source's own use. `etag`:
    a strong ETag, equal only for equal bytes; empty without one.
    """

    name: str
    size: int | None
    mark: str = ""
    path: str = ""
    ranges: bool = True
    etag: str = ""


class Source(ABC):
    """Files somewhere. Its methods block; `read` may run in several threads at once."""

    readers = 4
    """How many parts may be read at once."""
    part = 16 * 2**20
    """A large file is read in parts of at most this many bytes."""
    digest = ""
    """What the source itself says the digest of all of it is, once it was listed and if that can be trusted."""

    @abstractmethod
    def files(self) -> list[StoredFile]:
        """Return the present files. Raises StorageError."""

    @abstractmethod
    def read(self, file: StoredFile, start: int, end: int | None) -> Iterator[bytes]:
        """Return the bytes from `start` up to `end` (None: all), in order.

        Raises TransientError, ChangedError or StorageError; may end early where a connection was cut.
        """

    def link(self, file: StoredFile, target: Path) -> bool:
        """Make `target` the same file without copying, where that can be."""
        return False

    def check(self, file: StoredFile, path: Path) -> None:  # noqa: B027  # most need nothing
        """Look at a file that is whole. Raises DigestMismatchError."""

    def assemble(self, folder: Path, budget: Budget) -> None:  # noqa: B027  # most need nothing
        """Make the copy of what was fetched into `folder`. Raises OSError, tarfile.TarError, StorageError."""

    def close(self) -> None:  # noqa: B027  # most need nothing
        """Let connections go."""

    def __enter__(self) -> "Source":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def safe_name(name: str) -> str:
    """Return `name` as a relative path that stays below its folder. Raises StorageError."""
    path = PurePosixPath(name.lstrip("/"))
    if not path.parts or ".." in path.parts or "\0" in name:
        raise StorageError(f"a file named {name!r} would be written outside its folder")
    return path.as_posix()


def strong(etag: str | None) -> str:
    """Return an ETag where equal ones mean equal bytes; a weak one does not, and is left out."""
    return "" if etag is None or etag.startswith("W/") else etag


def without_markers(files: list[StoredFile]) -> list[StoredFile]:
    """Return the files without the empty objects that some tools write in place of folders."""
    parents = {parent.as_posix() for file in files for parent in PurePosixPath(file.name).parents}
    return [file for file in files if file.size or file.name not in parents]
