"""A budget for bytes whose number is not known before they come."""

import threading
from collections.abc import Callable

STEP = 2**20
SHARE = 16
"""Room is asked for at each further MiB, and of much at each further sixteenth: so much may be written unasked."""
BLOCK = 4096
"""Bytes that the smallest file takes of a disk."""
Ask = Callable[[int, int], None]
"""Called with (bytes wanted on the disk, bytes on the disk). Raises StorageError where there is no room for them."""


class Budget:
    """Counts bytes before they are written. Thread-safe."""

    def __init__(self, ask: Ask = lambda size, here: None) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._taken = self._granted = 0

    def take(self, count: int) -> None:
        """Reserve `count` more bytes; a negative number where some are written again. Raises StorageError."""
        with self._lock:
            here, self._taken = self._taken, self._taken + count
            if self._taken > self._granted:
                self._ask(self._taken, here)
                self._granted = self._taken + max(STEP, self._taken // SHARE)

    def take_file(self, size: int) -> None:
        """Reserve a file of `size` bytes. Raises StorageError."""
        self.take(max(-(-size // BLOCK), 1) * BLOCK)
