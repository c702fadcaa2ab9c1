"""Refusals: files of the cache that record fetches in vain, so that a restarted process does not repeat them at once.

.refused-<key>.json     why it is of no use, how often it was fetched, until when it is skipped (seconds since 1970)
"""

from contextlib import suppress
from pathlib import Path

from argosy_agent.contract.fields import DocumentError, Fields
from argosy_agent.jsonfiles import read_json, write_json
from argosy_agent.transfer.errors import StorageError, TooLargeError, UnusableError
from argosy_common.backoff import backoff_s

PREFIX = ".refused-"
FIRST_S, MOST_S = 60.0, 1800.0
"""The pauses between two fetches, which grow."""


class Refusals:
    """The refusals of one cache folder, at most `size_limit` bytes large. Times are seconds since 1970.

    What was too large for another limit may fit now.
    """

    def __init__(self, cache: Path, size_limit: int | None) -> None:
        self._cache, self._limit = cache, size_limit or 0
        self._mine: set[str] = set()

    def check(self, key: str, now: float) -> None:
        """Raise the error that another process recorded for a copy, while that holds."""
        if key in self._mine or (record := self._read(key)) is None:
            return
        with suppress(DocumentError):
            if record.flag("tooLarge") and record.number("sizeLimit") != self._limit:
                return
            if 0 < record.amount("until") - now <= MOST_S:
                kind = TooLargeError if record.flag("tooLarge") else UnusableError
                raise kind(record.text("said"))

    def note(self, key: str, error: StorageError, now: float) -> None:
        """Record an error, so that the copy is skipped for a while.

        From now on this process decides itself when it tries again.
        """
        self._mine.add(key)
        attempts, record = 0, self._read(key)
        with suppress(DocumentError):
            attempts = record.number("attempts") if record is not None else 0
        pause = backoff_s(attempts + 1, FIRST_S, MOST_S)
        values = {"attempts": attempts + 1, "until": now + pause, "said": str(error)}
        with suppress(OSError):
            too_large = isinstance(error, TooLargeError)
            write_json(self._path(key), {**values, "tooLarge": too_large, "sizeLimit": self._limit})

    def forget(self, key: str) -> None:
        """Remove the record, as the copy came and is of use."""
        self._path(key).unlink(missing_ok=True)

    def sweep(self, now: float) -> None:
        """Remove the records that no longer hold. Raises OSError."""
        for path in self._cache.glob(f"{PREFIX}*.json"):
            if now - path.stat().st_mtime > 2 * MOST_S:
                path.unlink(missing_ok=True)

    def _read(self, key: str) -> Fields | None:
        with suppress(OSError):
            record = read_json(self._path(key))
            return Fields(record, key) if record is not None else None
        return None

    def _path(self, key: str) -> Path:
        return self._cache / f"{PREFIX}{key}.json"
