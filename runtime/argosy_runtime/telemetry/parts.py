"""Metrics of many models, read some models at a time, so that requests go on between them.

The text has one family after the other, so it is complete only once the last model is read. The values of one model
are of one moment; those of two models may be of two, as those of two servers are.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Final, TypeVar

from .exposition import Family, exposition, head, lines

MODELS_AT_ONCE: Final = 4
"""So many take a few tenths of a millisecond, which a request may wait."""
PIECE_BYTES: Final = 1 << 17

Model = TypeVar("Model")


async def in_parts(
    models: Sequence[Model], families_of: Callable[[Sequence[Model]], list[Family]], rest: Callable[[], list[Family]]
) -> AsyncIterator[bytes]:
    """Yield the text, in pieces, of the families of all models, which are the same ones for any of them, and of the
    `rest`.

    Other tasks of the loop run between parts.
    """
    text = PartedText(families_of(()))
    for first in range(0, len(models), MODELS_AT_ONCE):
        text.add(families_of(models[first : first + MODELS_AT_ONCE]))
        await asyncio.sleep(0)
    for piece in text.pieces():
        yield piece
        await asyncio.sleep(0)
    if others := rest():
        yield exposition(others)


class PartedText:
    """The text of families that come in parts. `families`: all of them, with their first samples."""

    def __init__(self, families: Sequence[Family]) -> None:
        self._parts = [[_text([*head(family), *lines(family)])] for family in families]

    def add(self, families: Sequence[Family]) -> None:
        """Append samples of the same families."""
        for parts, family in zip(self._parts, families, strict=True):
            if family.samples:
                parts.append(_text(lines(family)))

    def pieces(self) -> Iterator[bytes]:
        """Yield the text, in pieces of about PIECE_BYTES."""
        gathered: list[bytes] = []
        size = 0
        for parts in self._parts:
            for part in parts:
                gathered.append(part)
                size += len(part)
                if size >= PIECE_BYTES:
                    yield b"".join(gathered)
                    gathered, size = [], 0
        if gathered:
            yield b"".join(gathered)


def _text(some: list[str]) -> bytes:
    return ("\n".join(some) + "\n").encode()
