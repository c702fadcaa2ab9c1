"""Numbers for sampling, which follow from a seed alone. Imports no torch."""

import hashlib
import itertools
import random
import secrets
import struct
from collections.abc import Iterator
from typing import Final

_LOW_32: Final = 0xFFFFFFFF
GREEDY: Final = 0
"""The key of a request that takes the likeliest token."""


class Seeds:
    """Seeds for requests that give none: random ones, or with the model's `random_seed` always the same series."""

    def __init__(self, random_seed: int) -> None:
        draw = random.Random(random_seed).getrandbits if random_seed >= 0 else secrets.randbits
        self._seeds: Iterator[int] = (draw(63) for _ in itertools.count())

    def next(self) -> int:
        """Return the next seed."""
        return next(self._seeds)


def key_of(seed: int, choice: int) -> int:
    """Return the key of one of the choices that a request with this seed asks for; it is never that of greedy ones."""
    return _digest(seed, choice) | 1


def number_at(key: int, position: int) -> int:
    """Return the number of a key at a position of its sequence: 32 bits with a sign, never 0."""
    number = _digest(key, position) & _LOW_32 or 1
    return number - 2**32 if number >= 2**31 else number


def _digest(first: int, second: int) -> int:
    words = struct.pack("<QQ", first & (2**64 - 1), second)
    return int.from_bytes(hashlib.blake2b(words, digest_size=7).digest(), "little")
