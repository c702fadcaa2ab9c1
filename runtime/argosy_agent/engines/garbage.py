"""Which of what a store holds may go. Pure; time is an argument."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .inventory import Half, Held


@dataclass(frozen=True, slots=True)
class Garbage:
    """Engines that nobody needs, and files that belong to none."""

    engines: tuple[Held, ...]
    halves: tuple[Half, ...]


def garbage(
    held: Iterable[Held], is_used: Callable[[Held], bool] | None, before: float, running_since: float
) -> Garbage:
    """Return what was last written or asked for before `before`, in seconds since 1970, and is of no use to anyone.

    An engine goes where `is_used` says that nobody refers to it, or where it is broken; without `is_used` it is not
    known who refers to what, and only what is broken goes. One that a newer release wrote stays. Of files that belong
    to no engine those stay that are younger: their build may be running, and finds its phases again. Nothing goes under
    a key of which a build said since `running_since` that it runs, however old its files are.
    """
    every = tuple(each for each in held if each.leased_at < running_since)
    return Garbage(
        tuple(each for each in every if _is_garbage(each, is_used) and each.used_at < before),
        tuple(half for each in every for half in each.halves if half.changed_at < before),
    )


def _is_garbage(held: Held, is_used: Callable[[Held], bool] | None) -> bool:
    if not held.is_engine or (held.problem and not held.broken):
        return False
    return held.broken or (is_used is not None and not is_used(held))
