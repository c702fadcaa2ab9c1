"""The page-locked memory of this process's models, within the bytes of `--pinned-memory-pool-byte-size`."""

import threading
import weakref
from typing import Final

from argosy_runtime.messages import Array

_DEFAULT_BYTES: Final = 256 << 20


class PinnedPool:
    """How much page-locked memory models may have together, and have. Methods may be called on any thread."""

    def __init__(self, total: int = _DEFAULT_BYTES) -> None:
        self.total = total
        self.used = 0
        self._lock = threading.Lock()

    def reserve(self, size: int) -> bool:
        """Reserve bytes. Return False where so many are not left."""
        with self._lock:
            if self.used + size > self.total:
                return False
            self.used += size
            return True

    def free(self, size: int) -> None:
        """Free reserved bytes."""
        with self._lock:
            self.used -= size

    def free_with(self, buffer: Array, size: int) -> None:
        """Free reserved bytes once a buffer is gone."""
        weakref.finalize(buffer, self.free, size).atexit = False


PINNED_POOL: Final = PinnedPool()
"""The pool of this process. A model in a process of its own has one of the default size there."""
