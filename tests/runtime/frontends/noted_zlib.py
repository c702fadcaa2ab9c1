"""A zlib that records how much each thread compresses and decompresses."""

import threading
import zlib
from typing import Any

import pytest


class Zlib:
    """Python's zlib, which notes what each thread makes, and holds up other threads than the loop's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, loop_thread: int) -> None:
        self.made: list[tuple[int, int]] = []
        self.waiting = threading.Event()
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self._loop_thread = loop_thread
        decompressobj, compressobj = zlib.decompressobj, zlib.compressobj
        monkeypatch.setattr(zlib, "decompressobj", lambda *args: _Noting(self, decompressobj(*args)))
        monkeypatch.setattr(zlib, "compressobj", lambda *args, **more: _Noting(self, compressobj(*args, **more)))

    def note(self, size: int) -> None:
        """Note that a thread is about to read or make so many bytes."""
        thread = threading.get_ident()
        self.made.append((thread, size))
        if thread != self._loop_thread:
            self.waiting.set()
            self.may_go_on.wait()

    @property
    def on_the_loop(self) -> int:
        """The most bytes at a time that the event loop's thread read or made."""
        return max([size for thread, size in self.made if thread == self._loop_thread], default=0)

    @property
    def in_threads(self) -> int:
        """The most bytes at a time that other threads read or made."""
        return max([size for thread, size in self.made if thread != self._loop_thread], default=0)


class _Noting:
    def __init__(self, noted: Zlib, stream: Any) -> None:
        self._noted, self._stream = noted, stream

    def decompress(self, data: bytes, most: int) -> Any:
        plain = self._stream.decompress(data, most)
        self._noted.note(max(len(data), len(plain)))
        return plain

    def compress(self, data: bytes) -> Any:
        self._noted.note(len(data))
        return self._stream.compress(data)

    def flush(self) -> Any:
        return self._stream.flush()

    @property
    def eof(self) -> bool:
        return bool(self._stream.eof)
