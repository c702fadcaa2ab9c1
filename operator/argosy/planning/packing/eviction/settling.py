"""Settling what has no place: replicas move, and where that is not enough, those that come last give way."""

from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from argosy.api.pool.packing import Preemption
from argosy.planning.facts import Rank
from argosy.planning.packing.bound.replicas import BoundReplica
from argosy.planning.packing.equivalence import Shape, shape
from argosy.planning.packing.eviction.evict import evict
from argosy.planning.packing.eviction.victims import Placed, Victims
from argosy.planning.packing.gpu_assignment import Budget
from argosy.planning.packing.layout import Layout, Replica
from argosy.planning.packing.rearrangement import RearrangementBudget, rearrange
from argosy.planning.packing.scoring import best
from argosy.planning.plan import LostPlacement

_TRIALS = 2000
_TRIALS_PER_REPLICA = 2
"""Trial placements for all replicas of one pool together, and more for each that it has."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The layout with as much as possible, what has no place in it, and what lost one."""

    layout: Layout
    unschedulable: tuple[Replica, ...]
    lost: tuple[LostPlacement, ...] = ()


def settle(layout: Layout, unschedulable: Sequence[Replica], bound: Sequence[BoundReplica]) -> Settled:
    """Return the layout in which replicas moved or gave way for unschedulable ones, where that helps.

    What gives way gets another place if there is one. `unschedulable` has what comes first at the front.
    """
    if not unschedulable:
        return Settled(layout, ())
    ordered = [((one.rank, at), one) for at, one in enumerate(unschedulable)]
    search = _Search(layout, {one.replica.key: one for one in bound}, sorted(ordered, key=_last_first))
    search.run()
    return Settled(search.layout, search.unschedulable, tuple(search.lost.values()))


_Entry = tuple[tuple[Rank, int], Replica]


def _last_first(entry: _Entry) -> tuple[int, int, int]:
    ((beyond, opposite), at), _ = entry
    return -beyond, -opposite, -at


class _Search:
    """Gives each replica a place in turn, if there is a way to; what gives way waits for its own turn."""

    def __init__(self, layout: Layout, bound: Mapping[tuple[str, int], BoundReplica], todo: list[_Entry]) -> None:
        self.layout, self.lost, self._evictions = layout, dict[tuple[str, int], LostPlacement](), 0
        self._still = list[_Entry]()
        self._bound, self._todo, self._count = bound, todo, len(todo)
        self._placed = Placed.of(layout, layout.topology.facts.preemption is Preemption.LOWER_PRIORITY)
        self._moves = RearrangementBudget()
        self._trials = Budget(_TRIALS + _TRIALS_PER_REPLICA * (self._placed.counts.total() + len(todo)))
        self._possible = dict[Shape, bool]()
        self._tried, self._evicted = set[Shape](), set[tuple[str, int]]()

    def run(self) -> None:
        """Take the replicas in turn, those that come first before the others; all again where some gave way, for what
        got another place may give that up, too.
        """
        before = -1
        while self._todo and before < self._evictions:
            before = self._evictions
            self._pass()
            self._todo = sorted(self._still, key=_last_first)
            self._evicted |= {replica.key for _, replica in self._still}

    @property
    def unschedulable(self) -> tuple[Replica, ...]:
        """What has no place in the end."""
        return tuple(replica for _, replica in self._still)

    def _pass(self) -> None:
        self._still = []
        self._tried.clear()
        while self._todo:
            entry = self._todo.pop()
            if shape(entry[1]) in self._tried or not self._settles(entry[1]):
                self._tried.add(shape(entry[1]))
                self._still.append(entry)
            else:
                self.lost.pop(entry[1].key, None)

    def _settles(self, replica: Replica) -> bool:
        free = best(self.layout, replica) if replica.key in self._evicted else None
        if free is not None:
            self._change(free.applied(self.layout, replica))
            return True
        if not self._is_possible(replica):
            return False
        roomier = rearrange(self.layout, replica, self._bound, self._moves)
        if roomier is not None:
            self._change(roomier)
            return True
        return self._evicts(replica)

    def _is_possible(self, replica: Replica) -> bool:
        """Return whether a replica has a place in an empty pool."""
        needs = shape(replica)
        if needs not in self._possible:
            empty = Layout.empty(self.layout.topology).without_leaving
            self._possible[needs] = best(empty, replica) is not None
        return self._possible[needs]

    def _evicts(self, replica: Replica) -> bool:
        eviction = evict(self._placed, replica, self._trials)
        if eviction is None:
            return False
        ranks = self._ranks(eviction.victims)
        self._change(eviction.layout)
        self._evictions += 1
        for victim, own in zip(eviction.victims, ranks, strict=True):
            group = victim.group
            winner, key = replica.group, victim.replica.key
            self.lost[key] = LostPlacement(group.name, victim.server.name, group.priority, winner.name, winner.priority)
            self._evicted.add(key)
            self._count += 1
            insort(self._todo, ((own, self._count), victim.replica.without_candidate), key=_last_first)
        return True

    def _ranks(self, victims: Victims) -> list[Rank]:
        """Return the rank of each victim once all of them are gone: those of one group one after another."""
        left = self._placed.counts.copy()
        ranks = []
        for victim in victims:
            left[victim.group.name] -= 1
            ranks.append(victim.group.rank(left[victim.group.name]))
        return ranks

    def _change(self, layout: Layout) -> None:
        self.layout = layout
        self._placed = self._placed.after(layout)
        self._tried.clear()


def still_lost(settled: Settled, layout: Layout, unschedulable: Sequence[Replica]) -> tuple[LostPlacement, ...]:
    """Return the lost places in the end: of groups that lack replicas, on servers that do not have them again."""
    lacking = {replica.group.name for replica in unschedulable}
    hosts = {(one.replica.group.name, server.name) for server in layout.servers.values() for one in server.placed}
    lost = (one for one in settled.lost if one.group in lacking and (one.group, one.server) not in hosts)
    return tuple(sorted(set(lost), key=lambda one: (one.group, one.server, one.winner)))
