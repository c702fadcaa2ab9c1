"""Errors of storage.

StorageError
├── UnusableError         the files came whole and are of no use: the same would come again
│   └── DigestMismatchError   they are not those that were declared
├── TooLargeError         there is no room for what comes or is unpacked; another try would fetch it all again
├── FullError             the place to write to takes no more
├── StorageStoppedError   `Storage.stop` was called
├── UnauthorizedError     the server wants other credentials, or newer ones
├── TransientError        another try may bring it: a cut connection, an overloaded server
└── ChangedError          the source is not any more what its listing said
"""

import errno
from urllib.parse import urlsplit, urlunsplit

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class StorageError(Exception):
    """The files cannot be had; the message names the URI, the reason and the way out."""


class UnusableError(StorageError):
    """The files are complete and of no use; until they are corrected, another try gives the same."""


class DigestMismatchError(UnusableError):
    """The files are not those that were declared; the message names both digests."""


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
