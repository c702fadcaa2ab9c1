"""Who has, by a higher priority, the place that a replica lacks."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from argosy.fleet.facts import Group
from argosy.fleet.packing.gpu_assignment import Budget
from argosy.fleet.packing.layout import Layout, Replica
from argosy.fleet.packing.scoring import best

_TRIES = 64
"""Replicas that may be thought away for all of one pool's unschedulable ones."""


@dataclass(frozen=True, slots=True)
class Outranked:
    """What is found out about one layout: by group, who outranks it."""

    layout: Layout
    budget: Budget = field(default_factory=lambda: Budget(_TRIES))
    found: dict[str, Group | None] = field(default_factory=dict)

    def words(self, replica: Replica) -> str:
        """A clause to begin a message with; empty where nothing of a higher priority is in the replica's place."""
        group = replica.group
        if group.name not in self.found:
            self.found[group.name] = next(self._outranking(replica), None)
        other = self.found[group.name]
        if other is None:
            return ""
        return f"it gives way to {other.name}, whose priority is {other.priority} and not {group.priority}: "

    def _outranking(self, replica: Replica) -> Iterator[Group]:
        """Groups of a higher priority of which one replica less would make room: those first that have the most beyond
        what they have to have, since these are there for their load alone.
        """
        placed = [each.replica for server in self.layout.servers.values() for each in server.placed]
        counts = Counter(each.group.name for each in placed)
        higher = [each for each in placed if each.group.priority > replica.group.priority]
        higher.sort(key=lambda each: (each.group.needed - counts[each.group.name], *each.key))
        for each in higher:
            if not self.budget.spend():
                return
            if best(self.layout.without(each), replica) is not None:
                yield each.group
