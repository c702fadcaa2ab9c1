"""Nodes, or groups of linked GPUs, by the number of their empty GPUs: an index for those with the fewest to spare."""

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from typing import TypeVar

_Result = TypeVar("_Result")


class Shelves:
    """Numbers of nodes or domains, by kind and by how many of their GPUs are empty."""

    def __init__(self, kinds: Sequence[int], counts: Sequence[int]) -> None:
        self._kinds, self.counts = kinds, list(counts)
        most, rows = max(counts, default=0) + 1, max(kinds, default=-1) + 1
        self._rows: list[list[list[int]]] = [[[] for _ in range(most)] for _ in range(rows)]
        for number, count in enumerate(counts):
            self._rows[kinds[number]][count].append(number)

    def add(self, number: int, change: int) -> None:
        """Change the number of empty GPUs of one of them."""
        row, count = self._rows[self._kinds[number]], self.counts[number]
        del row[count][bisect_left(row[count], number)]
        self.counts[number] = count + change
        insort(row[count + change], number)

    def first(self, least: int, find: Callable[[int], _Result | None]) -> list[_Result]:
        """Return, for each kind, what `find` makes of the first that it takes, of those with at least `least` empty
        GPUs; those with the fewest come first.
        """
        result = (self._first_of(row, least, find) for row in self._rows)
        return [one for one in result if one is not None]

    def _first_of(self, row: list[list[int]], least: int, find: Callable[[int], _Result | None]) -> _Result | None:
        for numbers in row[least:]:
            for number in numbers:
                result = find(number)
                if result is not None:
                    return result
        return None
