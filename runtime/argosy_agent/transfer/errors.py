"""Errors of storage.

StorageError
├── UnusableError         the files are complete and cannot be used; a retry would fetch the same
│   └── DigestMismatchError   they do not match the declared digest
├── MissingError          the storage answers that nothing is there
├── TooLargeError         the download or the unpacked files do not fit; a retry would fetch everything again
├── FullError             the target has no free space
├── StorageStoppedError   `Storage.stop` was called
├── UnauthorizedError     the server requires other or newer credentials
├── TransientError        a retry may succeed: a cut connection, an overloaded server
└── ChangedError          the source has changed since it was listed
"""

import errno
from urllib.parse import urlsplit, urlunsplit

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class StorageError(Exception):
    """The files cannot be had; the message names the URI, the reason and the way out."""


class UnusableError(StorageError):
    """The files are complete and of no use; until they are corrected, another try gives the same."""


class DigestMismatchError(UnusableError):
    """The files do not match the declared digest. The message has both digests."""


class MissingError(StorageError):
    """The storage answers that nothing is there."""


class TooLargeError(StorageError):
    """More was fetched or unpacked than fits; the message names the limit. Another try would fetch it again."""


class FullError(StorageError):
    """A disk, a claim or a bucket takes no more."""


class StorageStoppedError(StorageError):
    """`Storage.stop` was called while a copy was under way."""


class UnauthorizedError(StorageError):
    """The server wants other credentials, or newer ones."""


class TransientError(StorageError):
    """It may go better at once or soon. `after` is how many seconds the server asks to wait."""

    def __init__(self, message: str, after: float = 0.0) -> None:
        super().__init__(message)
        self.after = after


class ChangedError(StorageError):
    """A file changed between its listing and its reading."""


def shown(uri: str) -> str:
    """Return `uri` as it may stand in a status: without password and signature."""
    parts = urlsplit(uri)
    host = parts.netloc.rpartition("@")[2] if parts.scheme in ("http", "https") else parts.netloc
    return urlunsplit(parts._replace(netloc=host, query="…" if parts.query else "")) if parts.scheme else uri


def reason(error: BaseException) -> str:
    """Return what went wrong, in words."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def is_full(error: BaseException) -> bool:
    """Return whether a disk or a quota is full."""
    return isinstance(error, OSError) and error.errno in FULL
