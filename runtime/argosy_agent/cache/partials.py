"""Partial copies: folders next to the complete ones, which one process at a time fills.

    .partial-<key>             unclaimed: an earlier try ended here, the next resumes it
    .partial-<key>.<owner>     being filled by `owner`
        journal                what of it is there
        files/                 the files; renamed to <cache>/<key> when they are complete
        linked/                those of another complete copy with the same content, on their way to be files/

A folder changes hands by being renamed, which one process alone can do. Two that begin the same copy in the same
instant may both fetch it; the second finds it there when it is done, and drops its own.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from argosy_agent.threads import repeated
from argosy_agent.transfer.journal import Journal
from argosy_common.publishing import publish

from .owners import BEAT_S, GONE_AFTER_S, Owner, disk_time, is_at_work

PREFIX = ".partial-"
LEFT_FOR_S = 24 * 3600.0
"""How long an unclaimed partial copy is kept."""


class Partial:
    """One copy being filled by this process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files = path / "files"
        if not (path / "journal").is_file():
            shutil.rmtree(self.files, ignore_errors=True)
        self.files.mkdir(exist_ok=True)
        self.journal = Journal(path / "journal")

    def seal(self) -> None:
        """Prevent later tries from resuming here, as the files are about to be changed."""
        (self.path / "journal").unlink(missing_ok=True)

    def link(self, copy: Path) -> bool:
        """Take the files of a complete copy, by hard links.

        Return False where that copy is gone, or the disk has no links.
        """
        linked = self.path / "linked"
        try:
            shutil.copytree(copy, linked, symlinks=True, copy_function=os.link)
        except OSError:
            shutil.rmtree(linked, ignore_errors=True)
            return False
        self.seal()
        shutil.rmtree(self.files)
        linked.rename(self.files)
        return True

    def drop(self) -> None:
        """Throw it away."""
        shutil.rmtree(self.path, ignore_errors=True)

    def publish(self, target: Path) -> None:
        """Make it the complete copy `target`, unless another process did. Raises OSError.

        The other's copy may be gone again since the rename found it; then this one takes its place.
        """
        self.files.chmod(0o755)
        while not publish(self.files, target) and not target.is_dir():
            pass
        _flush_folder(target.parent)


@dataclass(frozen=True, slots=True)
class PartialEntry:
    """A partial copy in the folder, and whether a process fills it."""

    path: Path
    key: str
    filled: bool


class Partials:
    """The partial copies of one cache folder, as `owner` sees them."""

    def __init__(self, cache: Path, owner: Owner) -> None:
        self._cache, self._owner = cache, owner

    @contextmanager
    def claim(self, key: str, waiting: Callable[[], None]) -> Iterator[Partial | None]:
        """Yield this process's partial copy of `key`; None if another process published it meanwhile.

        `waiting` is called between looks at a copy that another process fills. Raises OSError.
        """
        path = self._own(key, waiting)
        if path is None:
            yield None
            return
        partial = Partial(path)
        try:
            with _beating(path):
                yield partial
        finally:
            partial.journal.close()
            self._leave(key, partial)

    def sweep(self) -> None:
        """Drop the partial copies that no process has resumed for `LEFT_FOR_S`."""
        for partial in self.all():
            with suppress(OSError):
                idle_s = disk_time(self._cache, self._owner) - partial.path.stat().st_mtime
                if not partial.filled and idle_s > LEFT_FOR_S:
                    shutil.rmtree(partial.path, ignore_errors=True)

    def all(self) -> list["PartialEntry"]:
        """Return every partial copy in the folder."""
        paths = list(self._cache.glob(f"{PREFIX}*"))
        now = disk_time(self._cache, self._owner) if paths else 0.0
        return [PartialEntry(path, _key_of(path), self._is_filled(path, now)) for path in paths]

    def _own(self, key: str, waiting: Callable[[], None]) -> Path | None:
        mine = self._cache / f"{PREFIX}{key}.{self._owner}"
        while not (self._cache / key).is_dir():
            others = [path for path in self._cache.glob(f"{PREFIX}{key}*") if path != mine]
            now = disk_time(self._cache, self._owner)
            if not any(self._is_filled(path, now) for path in others):
                for path in others:
                    self._adopt(path, mine)
                mine.mkdir(exist_ok=True)
                return mine
            waiting()
        return None

    def _adopt(self, path: Path, mine: Path) -> None:
        if mine.exists():
            shutil.rmtree(path, ignore_errors=True)
        with suppress(OSError):  # another process was first
            path.rename(mine)

    def _is_filled(self, path: Path, now: float) -> bool:
        _, _, owner = path.name.removeprefix(PREFIX).partition(".")
        return is_at_work(owner, path, self._owner, now, GONE_AFTER_S)

    def _leave(self, key: str, partial: Partial) -> None:
        """Leave what can be resumed to any process, at most one partial copy of a key."""
        free = self._cache / f"{PREFIX}{key}"
        if partial.journal.size and (partial.path / "journal").is_file() and partial.files.is_dir():
            with suppress(OSError):
                partial.path.rename(free)
        shutil.rmtree(partial.path, ignore_errors=True)


def _key_of(path: Path) -> str:
    return path.name.removeprefix(PREFIX).partition(".")[0]


@contextmanager
def _beating(path: Path) -> Iterator[None]:
    """Touch `path` every few seconds, so that other processes see that it is being filled."""

    def beat() -> None:
        with suppress(OSError):
            os.utime(path)

    os.utime(path)
    with repeated(beat, BEAT_S):
        yield


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
