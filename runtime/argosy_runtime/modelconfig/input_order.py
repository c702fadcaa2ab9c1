"""The order in which Triton looks at the inputs of a request: of several that are wrong it names the first in it.

It is that of a `std::unordered_map` of GCC's library, so it follows from the names and the order of the request.
"""

from collections.abc import Iterable
from typing import Final

_MUL: Final = 0xC6A4A7935BD1E995
_SEED: Final = 0xC70F6907
_MASK: Final = (1 << 64) - 1
_BUCKETS: Final = (13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273)


def input_order(names: Iterable[str]) -> list[str]:
    """Return the names of a request's inputs in Triton's order."""
    ordered: list[str] = []
    buckets: dict[str, int] = {}
    sizes = iter(_BUCKETS)
    size = next(sizes)
    for name in dict.fromkeys(names):
        if len(ordered) == size and (larger := next(sizes, 0)):
            size = larger
            before, ordered = ordered, []
            for former in before:
                buckets[former] = _hash(former) % size
                _insert(ordered, buckets, former)
        buckets[name] = _hash(name) % size
        _insert(ordered, buckets, name)
    return ordered


def _insert(ordered: list[str], buckets: dict[str, int], name: str) -> None:
    """Insert a name before the first of its bucket, at the front where it has none."""
    own = buckets[name]
    index = next((at for at, other in enumerate(ordered) if buckets[other] == own), 0)
    ordered.insert(index, name)


def _hash(name: str) -> int:
    """Return the hash of GCC's `std::hash<std::string>` on 64 bits: MurmurHash64A."""
    data = name.encode("utf-8", "surrogatepass")
    aligned = len(data) & ~7
    value = _SEED ^ (len(data) * _MUL & _MASK)
    for begin in range(0, aligned, 8):
        word = int.from_bytes(data[begin : begin + 8], "little")
        value = (value ^ (_mix(word * _MUL & _MASK) * _MUL & _MASK)) * _MUL & _MASK
    if aligned < len(data):
        value = (value ^ int.from_bytes(data[aligned:], "little")) * _MUL & _MASK
    return _mix(_mix(value) * _MUL & _MASK)


def _mix(value: int) -> int:
    return value ^ (value >> 47)


__all__ = ["input_order"]
