"""Placing by rank: where a higher rank lacks a place that a lower one has got, the higher ones are placed before it."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from argosy.planning.facts import Rank
from argosy.planning.packing.eviction.settling import Settled
from argosy.planning.packing.filling.missing import absent
from argosy.planning.packing.layout import Layout, Replica
from argosy.planning.packing.scoring import best

Fill = Callable[[Layout, Sequence[Replica]], Settled]
"""Returns a layout with these replicas in addition, as far as they have places."""
_AGAIN = 16
"""Ranks that are placed once more together with all before them, the highest first: each time is a whole plan."""
_LAST: Rank = (True, 1 << 63)
"""A rank after all others."""
Lack = tuple[tuple[bool, int, int, int], ...]


def fill_by_rank(start: Layout, fill: Fill) -> Settled:
    """Return the layout with all replicas in addition to those of `start`.

    All are placed together first, which takes the fewest GPUs. Where a higher rank is left out that has a place without
    the lower ones, one rank is placed after another. What leaves out less of the highest ranks is taken.
    """
    todo = absent(start)
    together = fill(start, todo)
    first = _first_left_out(start, together)
    if first is None:
        return together
    ranks = sorted({replica.rank for replica in todo if replica.rank >= first})
    # The last turn has all that lacks a place: what gave way may be of a lower rank than all that was to be placed.
    return min(together, _in_turn(start, [*ranks[:-1], _LAST], fill), key=lack)


def _first_left_out(start: Layout, together: Settled) -> Rank | None:
    """Return the highest rank that lacks a place while a lower one has got one. What has no place next to what stays
    does not count.
    """
    staying = {one.replica.key for server in start.servers.values() for one in server.placed}
    new = (
        one.replica.rank
        for server in together.layout.servers.values()
        for one in server.placed
        if one.replica.key not in staying
    )
    lowest = max(new, default=None)
    if lowest is None:
        return None
    outranking = (replica for replica in together.unschedulable if replica.rank < lowest)
    return min((replica.rank for replica in outranking if best(start, replica) is not None), default=None)


def _in_turn(start: Layout, ranks: Sequence[Rank], fill: Fill) -> Settled:
    """Return the layout with one rank after another: each next to those before it, or together with them where that
    leaves out less. The first one brings along all that are higher.
    """
    settled, again = fill(start, _up_to(start, ranks[0])), _AGAIN
    for before, rank in pairwise(ranks):
        after = fill(settled.layout, _up_to(settled.layout, rank))
        after = replace(after, lost=(*settled.lost, *after.lost))
        if again and lack(after, rank) > lack(settled, before):
            again -= 1
            after = min(after, fill(start, _up_to(start, rank)), key=lambda one: lack(one, rank))
        settled = after
    return settled


def _up_to(layout: Layout, rank: Rank) -> list[Replica]:
    return [replica for replica in absent(layout) if replica.rank <= rank]


def lack(settled: Settled, rank: Rank = _LAST) -> Lack:
    """Return what has no place, down to a rank: the highest first, the groups without any replica, and the replicas."""
    counts = Counter(one.replica.group.name for server in settled.layout.servers.values() for one in server.placed)
    replicas, down = Counter[Rank](), Counter[Rank]()
    for group in settled.layout.topology.facts.groups:
        placed = counts[group.name]
        missing = [group.rank(n) for n in range(placed, group.replicas)]
        replicas.update(missing)
        if missing and not placed:
            down[missing[0]] += 1
    ranks = sorted(one for one in replicas if one <= rank)
    return tuple((not one[0], -one[1], down[one], replicas[one]) for one in ranks)
