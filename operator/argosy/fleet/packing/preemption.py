"""When the first attempt leaves a replica without a place: move as little as possible to make room for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from argosy.fleet.packing.bound_replicas import Pin, pinned, weight
from argosy.fleet.packing.budget import Budget
from argosy.fleet.packing.layout import Layout, Replica, Terrain
from argosy.fleet.packing.scoring import best, candidates

_EXHAUSTIVE_REPLICAS = 9
_EXHAUSTIVE_STEPS = 4000


@dataclass(frozen=True, slots=True)
class Effort:
    """How much may be tried for all the homeless of one pool together."""

    evictions: Budget = field(default_factory=lambda: Budget(400))
    steps: Budget = field(default_factory=lambda: Budget(3 * _EXHAUSTIVE_STEPS))


def make_room(layout: Layout, homeless: Replica, pins: Sequence[Pin], effort: Effort) -> Layout | None:
    """A layout with everything that is in `layout`, and `homeless` too; None if none was found.

    A small pool is searched whole, fewest moves first, so that None means there is none. In a large one, only
    single moves are tried.
    """
    by_key = {pin.replica.key: pin for pin in pins}
    moved_one = _evict_one(layout, homeless, by_key, effort.evictions)
    if moved_one is not None and not by_key:
        return moved_one
    replicas = [tenant.replica for server in layout.servers.values() for tenant in server.tenants]
    if len(replicas) >= _EXHAUSTIVE_REPLICAS:
        return moved_one
    budget = effort.steps.part(_EXHAUSTIVE_STEPS)
    found = _search_all(layout.terrain, [*replicas, homeless], pins, budget)
    effort.steps.back(budget)
    return found or moved_one


def _evict_one(layout: Layout, homeless: Replica, pins: Mapping[tuple[str, int], Pin], budget: Budget) -> Layout | None:
    """Move one placed replica elsewhere: the lightest that does not run yet, else the lightest that does."""
    placed = [tenant.replica for server in layout.servers.values() for tenant in server.tenants]
    placed.sort(key=lambda replica: (replica.key in pins, _lightness(replica), replica.key))
    for victim in placed:
        if not budget.spend():
            return None
        without = layout.without(victim)
        seat = best(without, homeless)
        if seat is None:
            continue
        seated = seat.applied(without, homeless)
        elsewhere = best(seated, victim)
        if elsewhere is not None:
            return elsewhere.applied(seated, victim)
    return None


def _lightness(replica: Replica) -> tuple[int, int, int]:
    whole, memory, compute = weight(replica.group)[0]
    return -whole, -memory, -compute


def _search_all(terrain: Terrain, replicas: Sequence[Replica], pins: Sequence[Pin], budget: Budget) -> Layout | None:
    """The layout of all `replicas` that gives up the fewest pins, and of those the one with the fewest GPUs."""
    wanted = {replica.key for replica in replicas}
    placed = [pin for pin in pins if pin.replica.key in wanted]
    for moves in range(len(placed) + 1):
        if budget.left <= 0:
            return None
        found = [
            layout
            for given_up in combinations(placed, moves)
            if (layout := _search_around([p for p in placed if p not in given_up], terrain, replicas, budget))
        ]
        if found:
            return min(found, key=lambda layout: layout.gpus_used)
    return None


def _search_around(kept: Sequence[Pin], terrain: Terrain, replicas: Sequence[Replica], budget: Budget) -> Layout | None:
    """A layout in which the `kept` pins hold, and every other replica goes where it may."""
    layout = pinned(Layout.empty(terrain), kept)
    if sum(len(server.tenants) for server in layout.servers.values()) < len(kept):
        return None
    settled = {pin.replica.key for pin in kept}
    todo = [replica for replica in replicas if replica.key not in settled]
    return _search(layout, sorted(todo, key=lambda replica: (weight(replica.group), replica.index)), budget)


def _search(layout: Layout, todo: Sequence[Replica], budget: Budget) -> Layout | None:
    """Depth-first over every place of every replica, the best first."""
    if not todo:
        return layout
    for candidate in sorted(candidates(layout, todo[0], tries=64), key=lambda candidate: candidate.cost):
        if not budget.spend():
            return None
        found = _search(candidate.applied(layout, todo[0]), todo[1:], budget)
        if found is not None:
            return found
    return None
