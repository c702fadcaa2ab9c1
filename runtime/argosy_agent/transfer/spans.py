"""Which bytes of a file are here. Pure. A span is (first byte, byte after the last)."""

from collections.abc import Iterable, Iterator

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
