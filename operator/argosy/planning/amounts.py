"""Amounts in messages: bytes as GiB, thousandths of a GPU as a percentage, counts with a noun, beginnings of lists."""

from collections.abc import Iterable

_GIB = 1 << 30
_MIB = 1 << 20


def gib(size: int) -> str:
    """Return bytes as `70 GiB` or `1.5 GiB`; below one GiB, as `512 MiB`."""
    if size < _GIB:
        return f"{size / _MIB:.4g} MiB"
    return f"{round(size / _GIB, 1):g} GiB"


def mebibytes(size: int, step: int = 64) -> str:
    """Return a quantity as a manifest has it, such as `6400Mi`, rounded up to a multiple of `step` MiB."""
    return f"{-(-size // (step * _MIB)) * step}Mi"


def kilobytes(size: int) -> str:
    """Return bytes as `1.3 KB` or `950 KB`: in thousands, as an object's limits are counted."""
    return f"{size / 1000:.4g} KB"


def percent(thousandths: int) -> str:
    """Return thousandths of a GPU as a percentage: 125 is `12.5 %`."""
    return f"{thousandths / 10:g} %"


def quantity(count: int, noun: str) -> str:
    """Return a number with its noun: `1 GPU`, `2 GPUs`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(items: Iterable[str], most: int = 5, separator: str = "; ") -> str:
    """Return `a; b`; of more than `most` the first, and how many more there are: `a; b; and 3 more`."""
    every = list(items)
    left = len(every) - most
    return separator.join(every if left <= 0 else [*every[:most], f"and {left} more"])
