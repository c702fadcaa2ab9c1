"""The journal of a copy: the bytes that are on disk, for the next try and for the next process.

One line of JSON per fact, appended: a line that was cut short is ignored. A span is written only when its bytes are on
the disk.
"""

import json
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from argosy_agent.transfer.stores.source import StoredFile

Span = tuple[int, int]


def merged(spans: Iterable[Span]) -> list[Span]:
    """Return the same bytes as the fewest spans, in order."""
    result: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result


def missing(spans: Iterable[Span], size: int, part: int) -> Iterator[Span]:
    """Yield the bytes of a file of `size` that are in none of `spans`, in parts of at most `part` bytes."""
    at = 0
    for start, end in [*merged(spans), (size, size)]:
        for first in range(at, min(start, size), part):
            yield first, min(first + part, start, size)
        at = max(at, end)


def length(spans: Iterable[Span]) -> int:
    """Return how many bytes these are."""
    return sum(end - start for start, end in merged(spans))


class Journal:
    """The journal of one partial copy. Any thread may call it. Raises OSError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._marks: dict[str, tuple[int | None, str]] = {}
        self._spans: dict[str, list[Span]] = {}
        for line in path.read_bytes().split(b"\n") if path.is_file() else ():
            self._replay(line)
        self._file = path.open("ab", buffering=0)
        self._file.write(b"\n")

    @property
    def size(self) -> int:
        """How many bytes are here."""
        with self._lock:
            return sum(length(spans) for spans in self._spans.values())

    def resume(self, file: StoredFile) -> list[Span]:
        """Return the spans of exactly this file. Where it has changed or cannot be resumed, start it over."""
        with self._lock:
            spans = self._spans.get(file.name, [])
            same = self._marks.get(file.name) == (file.size, file.mark) and bool(file.mark) and file.size is not None
            if same and (file.ranges or spans == [(0, file.size)]):
                return spans
            self._begin(file)
            return []

    def restart(self, file: StoredFile) -> None:
        """Start a file over."""
        with self._lock:
            self._begin(file)

    def here(self, file: StoredFile, start: int, end: int) -> None:
        """Record that the bytes from `start` to `end` of a file are on the disk."""
        if start < end:
            with self._lock:
                self._spans[file.name] = merged([*self._spans.get(file.name, []), (start, end)])
                self._append("here", file.name, start, end)

    def is_complete(self, file: StoredFile) -> bool:
        """Return whether every byte of a file is here."""
        with self._lock:
            return self._spans.get(file.name, []) == ([(0, file.size)] if file.size else [])

    def close(self) -> None:
        """Close the journal's file."""
        self._file.close()

    def _begin(self, file: StoredFile) -> None:
        self._marks[file.name] = (file.size, file.mark)
        self._spans[file.name] = []
        self._append("file", file.name, file.size, file.mark)

    def _append(self, *fact: Any) -> None:
        self._file.write(json.dumps(fact).encode() + b"\n")

    def _replay(self, line: bytes) -> None:
        try:
            fact = json.loads(line)
        except ValueError:
            return
        match fact:
            case ["file", str(name), size, str(mark)]:
                self._marks[name], self._spans[name] = (size, mark), []
            case ["here", str(name), int(start), int(end)] if name in self._marks:
                self._spans[name] = merged([*self._spans[name], (start, end)])
