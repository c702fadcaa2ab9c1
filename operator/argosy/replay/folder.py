"""The folder of bundles that an operator or `argosy up` writes: the newest rounds whose decisions differ."""

import gzip
import hashlib
import json
import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

from argosy.reconcile import RoundOutcome
from argosy.replay.bundle import Bundle, bundle_document, described, parsed_bundle
from argosy.replay.codec import DocumentError, encoded
from argosy.snapshot import FleetSnapshot

log = logging.getLogger(__name__)

RETAINED = 100
"""Bundles of one pool that stay. A fleet of a thousand models has about a hundred KiB in each."""
MOST_BYTES = 64 * 1024 * 1024
"""Of all bundles of one pool. The readings that became a verdict make them larger while a candidate is proven."""
SELDOM = timedelta(seconds=10)
"""The least time between two bundles that differ in statuses alone."""
SUFFIX = ".json.gz"
Record = Callable[[str, FleetSnapshot, datetime, timedelta, RoundOutcome | Exception], None]
"""Receives the name of what a round was about, what it saw, its time and period of draining, and how it ended."""
_OWN = 0o600
_GZIP = b"\x1f\x8b"
_UNSAFE = re.compile(r"[^A-Za-z0-9.-]")


class BundleFolder:
    """Writes bundles into one folder. Several threads may record at the same time."""

    def __init__(self, root: Path, release: str, retained: int = RETAINED) -> None:
        self._root, self._release, self._retained = root, release, retained
        self._last: dict[str, _Written] = {}
        self._writing = threading.Lock()
        self._error = ""

    def record(
        self,
        name: str,
        snapshot: FleetSnapshot,
        now: datetime,
        drain_period: timedelta,
        result: RoundOutcome | Exception,
    ) -> None:
        """Write the bundle of a round of `name`, if it decided otherwise than the one that was written last.

        Where only statuses differ, as measurements do all the time, `SELDOM` passes between two bundles. A folder that
        cannot be written, and a round that cannot be encoded, are logged: the round goes on.
        """
        try:
            with self._writing:
                written = _Written.of(result, now)
                if (last := self._last.get(name)) is None or written.differs_from(last):
                    self._write(name, bundle_document(self._release, snapshot, now, drain_period, result), now)
                    self._last[name] = written
            self._error = ""
        except Exception as error:
            if str(error) != self._error:
                self._error = str(error)
                log.warning("%s: the bundle of a round cannot be written: %s", self._root, error, exc_info=True)

    def _write(self, name: str, document: dict[str, Any], now: datetime) -> None:
        prefix = _UNSAFE.sub("_", name)
        path = self._root / f"{prefix}-{now.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}{SUFFIX}"
        self._root.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f".{path.name}")
        unfinished.touch(mode=_OWN)
        unfinished.write_bytes(gzip.compress(json.dumps(document, sort_keys=True).encode(), mtime=0))
        unfinished.replace(path)
        for old in self._superfluous(prefix):
            old.unlink(missing_ok=True)

    def _superfluous(self, prefix: str) -> Iterator[Path]:
        """Yield the bundles of one pool that do not stay. The newest one always stays."""
        size = 0
        newest_first = sorted(self._root.glob(f"{prefix}-[0-9]*{SUFFIX}"), reverse=True)
        for number, path in enumerate(newest_first):
            size += path.stat().st_size
            if number and (number >= self._retained or size > MOST_BYTES):
                yield path


@dataclass(frozen=True, slots=True)
class _Written:
    """A bundle that was written: digests of what was to be carried out and of all decisions, and the round's time."""

    carried_out: str
    decided: str
    at: datetime

    @classmethod
    def of(cls, result: RoundOutcome | Exception, now: datetime) -> "_Written":
        """Return the digests of a round's result."""
        if isinstance(result, Exception):
            return cls(_digest(described(result)), "", now)
        decisions = encoded(result)
        carried_out = {field: value for field, value in decisions.items() if field != "statuses"}
        return cls(_digest(carried_out), _digest(decisions), now)

    def differs_from(self, other: "_Written") -> bool:
        """Return whether it is worth a bundle after the other one."""
        if self.carried_out != other.carried_out:
            return True
        return self.decided != other.decided and abs(self.at - other.at) >= SELDOM


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def not_recorded(*_: object) -> None:
    """Record nothing, where no folder of bundles is given."""


@contextmanager
def faults_recorded(
    record: Record, name: str, snapshot: FleetSnapshot, now: datetime, drain_period: timedelta
) -> Iterator[None]:
    """Record an error of Argosy's own that ends the block, which is raised."""
    try:
        yield
    except Exception as error:
        record(name, snapshot, now, drain_period, error)
        raise


def bundle_recorder(root: Path | None) -> Record:
    """Return what writes bundles of this release into a folder; without a folder nothing is written."""
    return not_recorded if root is None else BundleFolder(root, version("argosy")).record


def read_bundle(path: Path) -> Bundle:
    """Return the bundle in a file, compressed or not. Raises OSError, and DocumentError which names the field."""
    content = path.read_bytes()
    try:
        text = gzip.decompress(content) if content.startswith(_GZIP) else content
    except (OSError, EOFError) as error:
        raise DocumentError(f"it is no whole gzip file: {error}") from error
    return parsed_bundle(text)
