"""Eviction: one replica gets a place by those that come after it giving up theirs, as few as possible."""

from dataclasses import dataclass

from argosy.planning.packing.eviction.choices import choices
from argosy.planning.packing.eviction.victims import Placed, Victim, Victims
from argosy.planning.packing.gpu_assignment import Budget
from argosy.planning.packing.layout import Layout, Replica
from argosy.planning.packing.scoring import Slot, best

_TRIALS = 96
"""Trial placements for one replica."""


@dataclass(frozen=True, slots=True)
class Eviction:
    """A layout in which a replica has a place, without the victims that had it."""

    layout: Layout
    victims: Victims


def evict(placed: Placed, replica: Replica, budget: Budget) -> Eviction | None:
    """Return the layout with a replica in the place of the cheapest victims; None where none are enough.

    Each choice is tried by placing it. None of the victims could stay. A success costs one trial, however many it took.
    """
    if budget.left <= 0 or not placed.nodes(placed.rank(replica.group)):
        return None
    most = min(_TRIALS, budget.left)
    trials = budget.part(most)
    eviction = _evict(placed, replica, trials)
    budget.back(trials if eviction is None else Budget(most - 1))
    return eviction


def _evict(placed: Placed, replica: Replica, budget: Budget) -> Eviction | None:
    for victims, node in choices(placed, replica):
        if not budget.spend():
            return None
        if _trial(placed.layout, victims, replica, node) is not None:
            fewest = _fewest(placed, victims, replica, node)
            without = _without(placed.layout, fewest)
            slot = best(without, replica, on=node or None)
            return Eviction(slot.applied(without, replica), fewest) if slot is not None else None
    return None


def _fewest(placed: Placed, victims: Victims, replica: Replica, node: str) -> Victims:
    """Return the victims without those that may stay, the most valuable of them first."""
    retained = list(victims)
    for victim in sorted(victims, key=lambda victim: placed.price([victim]), reverse=True) if len(victims) > 1 else ():
        fewer = [one for one in retained if one is not victim]
        if fewer and _trial(placed.layout, fewer, replica, node) is not None:
            retained = fewer
    return tuple(retained)


def _trial(layout: Layout, victims: list[Victim] | Victims, replica: Replica, node: str) -> Slot | None:
    return best(_without(layout, victims), replica, on=node or None)


def _without(layout: Layout, victims: list[Victim] | Victims) -> Layout:
    for victim in victims:
        layout = layout.without(victim.replica, victim.server.name)
    return layout
