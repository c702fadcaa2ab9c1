"""The cache folder: complete copies by key, which of them stay, and free space for another.

<key>/                  a complete copy; its own time is when it was last used
.kept-<owner>.json      the keys that an agent serves, touched while it does: other agents leave them
"""

import os
import secrets
import shutil
import stat
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from argosy_agent.jsonfiles import read_json, write_json
from argosy_agent.transfer.errors import StorageError

from .origins import PREFIX as ORIGIN
from .owners import Owner, disk_time, is_at_work
from .partials import Partials


@dataclass(frozen=True, slots=True)
class Entry:
    """Something in the cache: its bytes, when it was last used (seconds), and whether it has to stay."""

    name: str
    size: int
    used_at: float
    stays: bool = False


def evicted(entries: Sequence[Entry], excess: int) -> list[Entry] | None:
    """Return the least recently used entries whose going frees at least `excess` bytes.

    None where all that may go would not be enough; then nothing should go.
    """
    gone: list[Entry] = []
    for entry in sorted((entry for entry in entries if not entry.stays), key=lambda entry: (entry.used_at, entry.name)):
        if excess <= 0:
            break
        if entry.size:
            gone.append(entry)
            excess -= entry.size
    return None if excess > 0 else gone


KINDS = ("file-", "remote-")
RETAINED = ".kept-"
REPORT_S, RETAINED_GONE_AFTER_S = 60.0, 600.0
SPARE = 16 * 2**20
"""Bytes that are left free on the disk."""


class Cache:
    """The copies in one folder, at most `size_limit` bytes of them. Thread-safe."""

    def __init__(self, folder: Path, size_limit: int | None, owner: Owner, partials: Partials) -> None:
        self._folder, self._limit, self._owner, self._partials = folder, size_limit, owner, partials
        self._lock = threading.RLock()
        self._retained: frozenset[str] = frozenset()
        self._reported_at = -REPORT_S
        self._used_since: set[str] = set()
        self._fetching: dict[str, int] = {}

    def take(self, key: str) -> Path | None:
        """Return a complete copy and mark it as used; None if it is not here."""
        path = self._folder / key
        with self._lock, suppress(FileNotFoundError):
            os.utime(path)
            self._used_since.add(key)
            return path
        return None

    def keep(self, keys: Collection[str]) -> None:
        """Retain these copies, which are served or desired, and drop copies of `file:` and `pvc:` folders that no agent
        retains.

        Call it again and again; it costs nothing while nothing changes.
        """
        with self._lock:
            recent = time.monotonic() - self._reported_at <= REPORT_S
            if recent and self._retained == frozenset(keys) and not self._used_since:
                return
            self._used_since = set()
            with suppress(OSError):
                self._report(frozenset(keys))
                stay = self._staying()
                for path in self._folder.glob("file-*"):
                    if path.name not in stay:
                        self._evict(path)

    def _report(self, keys: frozenset[str]) -> None:
        """Write the retained keys for other agents, where they changed or the file is old."""
        changed, self._retained = keys != self._retained, keys
        if changed or time.monotonic() - self._reported_at > REPORT_S:
            write_json(self._folder / f"{RETAINED}{self._owner}.json", {"keys": sorted(keys)})
            self._reported_at = time.monotonic()

    @contextmanager
    def fetching(self, key: str) -> Iterator[None]:
        """Count a copy that is being fetched, and evict neither it nor its partial copy."""
        with self._lock:
            self._fetching[key] = 0
        try:
            yield
        finally:
            with self._lock:
                self._fetching.pop(key, None)

    def ensure_space(self, key: str, size: int, here: int, uri: str) -> None:
        """Free space for `size` bytes of `key`, of which `here` are on the disk, by evicting the least recently used
        copies.

        Raises StorageError where it does not fit next to the copies that stay; then nothing is evicted for it.
        """
        with self._lock:
            self._fetching[key] = size
            entries = self._entries(key)
            free = shutil.disk_usage(self._folder).free
            crowded = max(size - here + SPARE - free, 0) if size > here else 0
            others = sum(entry.size for entry in entries) + sum(self._fetching.values()) - size
            excess = 0 if self._limit is None else max(others + size - self._limit, 0)
            gone = evicted(entries, max(excess, crowded))
            if gone is None:
                self._fetching[key] = 0
                stays = others - sum(entry.size for entry in entries if not entry.stays)
                raise self._refusal(uri, size, stays, excess, free)
            for entry in gone:
                self._evict(self._folder / entry.name)

    def free(self) -> None:
        """Evict every copy that may go, as the disk is full."""
        with self._lock, suppress(OSError):
            for entry in self._entries(""):
                if not entry.stays:
                    self._evict(self._folder / entry.name)

    def _refusal(self, uri: str, size: int, stays: int, excess: int, free: int) -> StorageError:
        if excess and self._limit is not None:
            return StorageError(
                f"{uri} needs {_amount(size)}; spec.storage.modelCache.sizeLimit is {_amount(self._limit)} and "
                f"{_amount(stays)} of it is served or being fetched: raise it, or serve fewer models from this server"
            )
        return StorageError(
            f"{uri} needs {_amount(size)}; the disk of the model cache ({self._folder}) has {_amount(free)} free, of "
            f"which {_amount(SPARE)} stay free, and nothing there may go: give it a larger disk "
            "(spec.storage.modelCache), or serve fewer models from it"
        )

    def _entries(self, key: str) -> list[Entry]:
        """Return the entries of the folder, except those that this process fetches, which are counted separately."""
        stay = self._staying()
        cached = [(path, path.name in stay) for kind in KINDS for path in self._folder.glob(f"{kind}*")]
        mine = {*self._fetching, key}
        partials = [(partial.path, partial.filled) for partial in self._partials.all() if partial.key not in mine]
        used = (_last_use(path, stays) for path, stays in [*cached, *partials] if path.name not in mine)
        # Copies may have files in common: their bytes are freed with the last of them that goes.
        seen: set[tuple[int, int]] = set()
        lasting = sorted(filter(None, used), reverse=True)
        return [Entry(path.name, _size(path, seen), used_at, stays) for stays, used_at, path in lasting]

    def _staying(self) -> set[str]:
        now = disk_time(self._folder, self._owner)
        stay = set(self._retained) | self._used_since | set(self._fetching)
        for path in self._folder.glob(f"{RETAINED}*.json"):
            owner = path.name.removeprefix(RETAINED).removesuffix(".json")
            if owner == str(self._owner):
                continue
            if is_at_work(owner, path, self._owner, now, RETAINED_GONE_AFTER_S):
                stay |= set((read_json(path) or {}).get("keys", []))
            else:
                path.unlink(missing_ok=True)
        return stay

    def _evict(self, path: Path) -> None:
        gone = self._folder / f".gone-{secrets.token_hex(8)}"
        with suppress(OSError):
            path.rename(gone)
            (self._folder / f"{ORIGIN}{path.name}.json").unlink(missing_ok=True)
        shutil.rmtree(gone, ignore_errors=True)


def _last_use(path: Path, stays: bool) -> tuple[bool, float, Path] | None:
    try:
        return stays, path.stat().st_mtime, path
    except FileNotFoundError:  # another agent evicted it
        return None


def _size(folder: Path, seen: set[tuple[int, int]]) -> int:
    """Return the bytes below a folder; for a partial copy, whose files have holes, the bytes that it takes on the disk.

    Files in `seen`, by device and inode, are left out; the others are added to it.
    """
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                total += status.st_blocks * 512 if folder.name.startswith(".") else status.st_size
    return total


def _amount(size: int) -> str:
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} bytes"
