"""Names of a pool's servers, `pool-0` and so on: which are free, and their natural order.

A running server keeps its name, and a new one gets the lowest number that is free.
"""

from collections.abc import Collection, Iterator
from itertools import count


def free_names(pool: str, taken: Collection[str]) -> Iterator[str]:
    """Yield the names of servers of a pool that are not taken, the lowest number first.

    `pool`: the name of the pool without its namespace.
    """
    return (name for number in count() if (name := f"{pool}-{number}") not in taken)


def natural(name: str) -> tuple[str, int, str]:
    """Return a sort key under which `pool-2` comes before `pool-10`."""
    base, _, number = name.rpartition("-")
    return (base, int(number), name) if number.isdecimal() else (name, 0, name)
