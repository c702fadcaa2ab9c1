"""Allocation of pieces of a block of memory."""

from bisect import bisect_left
from typing import Final

# Pieces begin at multiples of this, a page, where any type can be read in place.
_GRAIN: Final = 4096


class Allocator:
    """Allocator of pieces of `size` bytes of memory, the lowest that fits: so the used part stays in the caches."""

    __slots__ = ("_free", "_taken")

    def __init__(self, size: int) -> None:
        self._free: list[tuple[int, int]] = [(0, size)]  # begin and end of each, in order, never two adjacent
        self._taken: dict[int, int] = {}

    @property
    def is_empty(self) -> bool:
        """True if nothing is allocated."""
        return not self._taken

    def allocate(self, size: int) -> int:
        """Allocate a piece. Return its offset; -1 where none is large enough."""
        need = max(1, size) + _GRAIN - 1 & -_GRAIN
        for index, (begin, end) in enumerate(self._free):
            if end - begin >= need:
                if end - begin == need:
                    del self._free[index]
                else:
                    self._free[index] = (begin + need, end)
                self._taken[begin] = begin + need
                return begin
        return -1

    def free(self, begin: int) -> bool:
        """Free the piece at an offset. Return whether there was one."""
        end = self._taken.pop(begin, -1)
        if end < 0:
            return False
        free = self._free
        index = bisect_left(free, (begin, end))
        if index < len(free) and free[index][0] == end:
            end = free.pop(index)[1]
        if index and free[index - 1][1] == begin:
            index -= 1
            begin = free.pop(index)[0]
        free.insert(index, (begin, end))
        return True
