"""Brings the files of a source into a folder: in parts, several at once, from where an earlier try ended."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from argosy_agent.transfer.stores.source import Source, StoredFile

from .errors import ChangedError, DigestMismatchError, TransientError
from .flow import Flow
from .journal import Journal, Span, length, missing

NOTED = 16 * 2**20
"""After at most this many bytes of a part what has come is made lasting: a process that is killed loses no more."""


class Download:
    """The files of one source on their way into `folder`. Raises StorageError, OSError.

    `links`: a file may be hard-linked to its source's, which is never written to.
    """

    def __init__(
        self, source: Source, folder: Path, journal: Journal, flow: Flow, part: int, links: bool = True
    ) -> None:
        self._source, self._folder, self._journal, self._flow, self._part = source, folder, journal, flow, part
        self._links = links

    def run(self, files: Sequence[StoredFile]) -> None:
        """Have every file whole in the folder. What an interrupted run brought is used if it is of the same files."""
        spans = {file.name: self._begin(file) for file in files}
        total = 0 if any(file.size is None for file in files) else sum(file.size or 0 for file in files)
        self._flow.begin(sum(length(here) for here in spans.values()), total)
        linked = {file.name for file in files if not spans[file.name] and self._link(file)}
        parts = [(f, span) for f in files if f.name not in linked for span in self._parts(f, spans[f.name])]
        self._flow.gather([partial(self._read, file, *span) for file, span in parts], self._source.readers)
        with ThreadPoolExecutor(self._source.readers, "check") as pool:
            list(pool.map(self._finish, files))

    def _begin(self, file: StoredFile) -> list[Span]:
        path = self._path(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        spans = self._journal.resume(file)
        if spans and not (path.is_file() and path.stat().st_size >= spans[-1][1]):
            self._journal.restart(file)
            spans = []
        if not spans:
            path.unlink(missing_ok=True)  # never written through: it may be a link to the source itself
        path.touch()
        return spans

    def _link(self, file: StoredFile) -> bool:
        self._flow.check()
        if not self._links or not self._source.link(file, self._path(file)):
            return False
        self._journal.here(file, 0, file.size or 0)
        self._flow.arrived(file.size or 0)
        return True

    def _parts(self, file: StoredFile, spans: list[Span]) -> Iterator[tuple[int, int | None]]:
        if file.size is None:
            yield 0, None
        elif not file.ranges:
            yield from missing(spans, file.size, file.size or 1)
        else:
            yield from missing(spans, file.size, self._part)

    def _read(self, file: StoredFile, start: int, end: int | None) -> None:
        """Read one part; after a cut go on where it was, or from its beginning where that cannot be."""
        at, failed = start, 0
        while True:
            reached, cut = self._stream(file, at, end)
            if cut is None:
                break
            failed = 1 if reached > at and file.ranges else failed + 1
            self._flow.wait(cut, failed)
            if not file.ranges:
                self._flow.arrived(start - reached)
            at = reached if file.ranges else start
        if not file.ranges:
            self._journal.here(file, start, reached)

    def _stream(self, file: StoredFile, start: int, end: int | None) -> tuple[int, TransientError | None]:
        """Write what comes from `start` on. Up to where it came, and what cut it, if anything did."""
        at, noted, cut = start, start, None
        with _opened(self._path(file)) as target:
            try:
                for chunk in self._source.read(file, start, end):
                    if end is not None and at + len(chunk) > end:
                        raise ChangedError(f"{file.name} is longer than the {file.size} bytes it was listed with")
                    at = _write(target, chunk, at)
                    self._flow.arrived(len(chunk))
                    if at - noted >= NOTED:
                        noted = self._note(file, noted, at, target)
            except TransientError as error:
                cut = error
            finally:
                self._note(file, noted, at, target)
        if cut is None and end is not None and at < end:
            cut = TransientError(f"{file.name} was cut at byte {at} of {file.size}")
        return at, cut

    def _note(self, file: StoredFile, start: int, end: int, target: int) -> int:
        os.fsync(target)
        if file.ranges:
            self._journal.here(file, start, end)
        return end

    def _finish(self, file: StoredFile) -> None:
        if file.size is not None and not self._journal.is_complete(file):
            raise ChangedError(f"{file.name} did not come whole")
        try:
            self._source.check(file, self._path(file))
        except DigestMismatchError:
            self._journal.restart(file)
            raise

    def _path(self, file: StoredFile) -> Path:
        return self._folder / file.name


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    target = os.open(path, os.O_WRONLY)
    try:
        yield target
    finally:
        os.close(target)


def _write(target: int, chunk: bytes, at: int) -> int:
    """Write all of `chunk` at `at`; where it ends."""
    rest = memoryview(chunk)
    while rest:
        written = os.pwrite(target, rest, at)
        rest, at = rest[written:], at + written
    return at
