"""The folder of bundles that an operator or `argosy up` writes: the newest rounds whose decisions differ."""

import gzip
import hashlib
import json
import logging
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

from argosy.reconcile import Outcome
from argosy.replay.bundle import Bundle, bundle_document, parsed_bundle
from argosy.replay.codec import DocumentError
from argosy.snapshot import FleetSnapshot

log = logging.getLogger(__name__)

RETAINED = 100
"""Bundles of one pool that stay. A fleet of a thousand models has about a hundred KiB in each."""
SUFFIX = ".json.gz"
Record = Callable[[str, FleetSnapshot, datetime, timedelta, Outcome | Exception], None]
"""Receives the name of what a round was about, what it saw, its time and period of draining, and how it ended."""
_GZIP = b"\x1f\x8b"
_UNSAFE = re.compile(r"[^A-Za-z0-9.-]")


class BundleFolder:
    """Writes bundles into one folder. Several threads may record at the same time."""

    def __init__(self, root: Path, release: str, retained: int = RETAINED) -> None:
        self._root, self._release, self._retained = root, release, retained
        self._last: dict[str, str] = {}
        self._writing = threading.Lock()
        self._error = ""

    def record(
        self, name: str, snapshot: FleetSnapshot, now: datetime, drain_period: timedelta, result: Outcome | Exception
    ) -> None:
        """Write the bundle of a round of `name`, unless it decided the same as the round before.

        A folder that cannot be written, and a round that cannot be encoded, are logged: the round goes on.
        """
        try:
            document = bundle_document(self._release, snapshot, now, drain_period, result)
            with self._writing:
                self._write(name, document, now)
            self._error = ""
        except Exception as error:
            if str(error) != self._error:
                self._error = str(error)
                log.warning("%s: the bundle of a round cannot be written: %s", self._root, error, exc_info=True)

    def _write(self, name: str, document: dict[str, Any], now: datetime) -> None:
        decided = json.dumps([document["decisions"], document["error"]], sort_keys=True)
        digest = hashlib.sha256(decided.encode()).hexdigest()
        if self._last.get(name) == digest:
            return
        prefix = _UNSAFE.sub("_", name)
        path = self._root / f"{prefix}-{now.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}{SUFFIX}"
        self._root.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f".{path.name}")
        unfinished.write_bytes(gzip.compress(json.dumps(document, sort_keys=True).encode(), mtime=0))
        unfinished.replace(path)
        self._last[name] = digest
        for old in sorted(self._root.glob(f"{prefix}-[0-9]*{SUFFIX}"))[: -self._retained]:
            old.unlink(missing_ok=True)


def not_recorded(*_: object) -> None:
    """Record nothing, where no folder of bundles is given."""


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
