"""The garbage of an engine cache. Pure; time is an argument."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .inventory import Half, StoredEngine


@dataclass(frozen=True, slots=True)
class Garbage:
    """Engines that are not used, and files that belong to none."""

    engines: tuple[StoredEngine, ...]
    halves: tuple[Half, ...]


def garbage(
    entries: Iterable[StoredEngine], is_used: Callable[[StoredEngine], bool] | None, before: float, running_since: float
) -> Garbage:
    """Return what was last written or requested before `before`, in seconds since 1970, and is of no use.

    An engine goes where `is_used` returns False, or where it is broken; without `is_used` its use is not known, and
    only broken ones go. An engine that a newer release wrote stays. Files that belong to no engine stay while they are
    younger: their build may be running, and would resume its phases. Nothing goes under a key whose lease a build
    renewed since `running_since`, however old its files are.
    """
    unleased = tuple(entry for entry in entries if entry.leased_at < running_since)
    return Garbage(
        tuple(entry for entry in unleased if _is_garbage(entry, is_used) and entry.used_at < before),
        tuple(half for entry in unleased for half in entry.halves if half.changed_at < before),
    )


def _is_garbage(entry: StoredEngine, is_used: Callable[[StoredEngine], bool] | None) -> bool:
    if not entry.is_engine or (entry.problem and not entry.broken):
        return False
    return entry.broken or (is_used is not None and not is_used(entry))
