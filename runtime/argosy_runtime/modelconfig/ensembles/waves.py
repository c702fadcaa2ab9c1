"""The one topological order: what can go at once, what after that, and so on."""

from collections.abc import Callable, Collection, Iterable, Set
from typing import TypeVar

Item = TypeVar("Item")


def waves(
    items: Iterable[Item],
    needs: Callable[[Item], Set[str]],
    gives: Callable[[Item], Set[str]],
    given: Collection[str],
) -> tuple[tuple[Item, ...], ...]:
    """Items by the wave in which they can go at the earliest, each in the order of `items`.

    An item can go when all that it needs is `given` or has been given by earlier waves. What never can, for a need that
    nobody meets or that goes round in a circle, is left out.
    """
    ready = set(given)
    waiting = list(items)
    found: list[tuple[Item, ...]] = []
    while wave := tuple(item for item in waiting if needs(item) <= ready):
        waiting = [item for item in waiting if not needs(item) <= ready]
        found.append(wave)
        ready.update(*map(gives, wave))
    return tuple(found)
