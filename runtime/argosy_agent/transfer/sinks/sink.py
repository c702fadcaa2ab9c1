"""What every place to write to can do."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from argosy_agent.transfer.errors import StorageError


@dataclass(frozen=True, slots=True)
class Stored:
    """A file in a sink: its path below what was listed, its bytes, what changes with its content, and when it was
    last written, in seconds since 1970 by the sink's clock."""

    name: str
    size: int
    mark: str
    changed_at: float


class UnconditionalError(StorageError):
    """The place cannot write a file only where there is none yet."""


class Sink(ABC):
    """Files below a root. Names are relative paths with slashes. Its methods block, and any thread may call them.

    All raise StorageError with the URI, the reason and the way out, and TransientError where another try may help.
    """

    writers = 2
    """How many files may be written at once."""

    @abstractmethod
    def write(self, name: str, source: Path, sent: Callable[[bytes], None]) -> None:
        """Write a file, all of it or nothing. `sent` is called with each piece of it, in order, and may raise."""

    @abstractmethod
    def create(self, name: str, body: bytes) -> bool:
        """Write a small file where there is none; False where there is one. Of many that try, one alone succeeds.

        False may also be returned after an answer was lost: the content tells which writer it is from. Raises
        UnconditionalError.
        """

    @abstractmethod
    def replace(self, name: str, body: bytes) -> None:
        """Write a small file, whether there is one or not; no reader sees half of it."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """Return a small file; None where there is none."""

    @abstractmethod
    def chunks(self, file: str) -> Iterator[bytes]:
        """Return a file's bytes, in order."""

    @abstractmethod
    def files(self, prefix: str) -> list[Stored]:
        """Return every file below a folder; none where there is no such folder."""

    @abstractmethod
    def folders(self, prefix: str = "") -> list[str]:
        """Return the names of the folders in a folder."""

    @abstractmethod
    def remove(self, prefix: str) -> None:
        """Remove a file, or a folder with all below it; nothing where there is none."""

    def is_conditional(self, scratch: str) -> bool:
        """Return whether `create` keeps its promise; `scratch` is a name that it may be tried on."""
        try:
            return self.create(scratch, b"") and not self.create(scratch, b"")
        except UnconditionalError:
            return False
        finally:
            self.remove(scratch)
