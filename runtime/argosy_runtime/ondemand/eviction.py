"""Which models give way to another one, least recently used first. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Resident:
    """A loaded model: its size in bytes, and when it was last used, on any clock.

    A model that is not `evictable` stays: a client has loaded it by its name, or it has open requests. `steps` are the
    models that an ensemble runs, which stay as long as it does.
    """

    name: str
    size: int
    last_used: int
    evictable: bool
    steps: frozenset[str] = frozenset()


def evictions(residents: Sequence[Resident], needed: int, limit: int) -> list[str] | None:
    """Return the models to unload, in this order, so that `needed` more bytes fit the limit; None if they cannot.

    The least recently used give way first, an ensemble before its steps. None gives way without need.
    """
    excess = sum(resident.size for resident in residents) + needed - limit
    retained = {resident.name: resident for resident in residents}
    victims: list[Resident] = []
    while excess > 0:
        victim = _next(retained)
        if victim is None:
            return None
        del retained[victim.name]
        victims.append(victim)
        excess -= victim.size
    for victim in reversed(victims):
        if victim.size + excess <= 0 and victim.steps.isdisjoint(one.name for one in victims):
            victims.remove(victim)
            excess += victim.size
    return [victim.name for victim in victims]


def _next(retained: dict[str, Resident]) -> Resident | None:
    """Return the least recently used model that may go and that no retained ensemble runs."""
    needed = frozenset[str]().union(*(resident.steps for resident in retained.values()))
    candidates = [one for one in retained.values() if one.evictable and one.name not in needed]
    return min(candidates, key=lambda resident: (resident.last_used, resident.name), default=None)
