"""Pieces of a block of memory, each lent until the last array or view over it is gone."""

from collections import deque
from typing import Any

import numpy as np


class _Piece(np.ndarray[Any, np.dtype[np.uint8]]):
    """A lent piece, whose end is noted."""

    begin = -1
    gone: "deque[int] | None" = None

    def __del__(self) -> None:
        # On any thread, in the midst of whatever it does.
        if self.gone is not None:
            self.gone.append(self.begin)


def lend(memory: memoryview, begin: int, size: int, gone: "deque[int]") -> memoryview:
    """Return the `size` bytes at an offset. Once nothing reads them any more, the offset is appended to `gone`."""
    piece = np.frombuffer(memory, np.uint8, size, begin).view(_Piece)
    piece.begin, piece.gone = begin, gone
    return piece.data
