"""The interface of all sinks, and the errors of one that cannot be written to: the reason, and the missing right."""

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from argosy_agent.transfer.errors import FullError, StorageError, is_full, reason
from argosy_agent.transfer.stores.answers import SECRET, Purpose


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


FIELD = "spec.storage.engineCache.storageUri"
WHO = f"{SECRET} or the build's service account (spec.storage.serviceAccountName)"
RIGHTS = {
    "s3": f"{WHO} needs s3:ListBucket, s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload there",
    "gs": f"{WHO} needs storage.objects.list, .get, .create and .delete there (the role Storage Object User)",
    "az": f"{WHO} needs the role Storage Blob Data Contributor there",
}
RIGHTS["abfss"] = RIGHTS["az"]
WRITING = Purpose(
    {scheme: f"{words}: engines are written to {FIELD}" for scheme, words in RIGHTS.items()},
    f"create the bucket, or correct {FIELD}",
)
NOT_ALLOWED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def refused_here(uri: str, error: OSError, done: str) -> StorageError:
    """Return the error for a file at `uri` of a folder that could not be `done`: read, written, removed."""
    words = f"{uri} cannot be {done}: {reason(error)}"
    if is_full(error):
        return FullError(f"{words}: {full_advice(uri)}")
    if error.errno in NOT_ALLOWED:
        return StorageError(f"{words}: {_allow(uri)}")
    return StorageError(f"{words}; look at {FIELD}")


def full_advice(uri: str) -> str:
    """Return what to do where no more goes in."""
    what = {"pvc": "the claim", "file": "the disk", "": "the disk"}.get(urlsplit(uri).scheme, "the bucket's quota")
    return f"make {what} of {FIELD} larger, or remove engines that no model uses: argosy engines gc"


def _allow(uri: str) -> str:
    if urlsplit(uri).scheme == "pvc":
        return f"the claim of {FIELD} must be mounted writable, and user {os.getuid()} must own the folder or its group"
    return f"user {os.getuid()} must be allowed to write into the folder of {FIELD}"
