"""Who has, by a higher priority, the place that a replica lacks."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from argosy.planning.facts import Footprint, Group
from argosy.planning.packing.bound.replicas import weight
from argosy.planning.packing.fit.fit_limits import hardest
from argosy.planning.packing.gpu_assignment import Budget
from argosy.planning.packing.layout import Layout, PlacedReplica, Replica, Server
from argosy.planning.packing.scoring import best

_TRIES = 64
"""Replicas that may be thought away for all of one pool's unschedulable ones."""


@dataclass(frozen=True, slots=True)
class Outranked:
    """What is found out about one layout: by group, who outranks it."""

    layout: Layout
    budget: Budget = field(default_factory=lambda: Budget(_TRIES))
    found: dict[str, Group | None] = field(default_factory=dict)

    def words(self, replica: Replica) -> str:
        """Return a clause to begin a message with; empty where nothing of a higher priority is in the
        replica's place.
        """
        group = replica.group
        if group.name not in self.found:
            self.found[group.name] = next(self._outranking(replica), None)
        other = self.found[group.name]
        if other is None:
            return ""
        return f"it gives way to {other.name}, whose priority is {other.priority} and not {group.priority}: "

    def _outranking(self, replica: Replica) -> Iterator[Group]:
        """Groups of a higher priority of which one replica less would make room."""
        need = hardest(list(replica.group.demands)).footprint
        for server, each in self._higher(replica.group.priority):
            if not self._frees_enough(server, each, need):
                continue
            if not self.budget.spend():
                return
            if best(self.layout.without(each.replica, server.name), replica) is not None:
                yield each.replica.group

    def _higher(self, priority: int) -> list[tuple[Server, PlacedReplica]]:
        """Replicas of a higher priority. First those of groups with the most beyond what they have to have: these are
        there for their load alone.
        """
        placed = [(server, each) for server in self.layout.servers.values() for each in server.placed]
        counts = Counter(each.replica.group.name for _, each in placed)

        def order(found: tuple[Server, PlacedReplica]) -> tuple[object, ...]:
            group = found[1].replica.group
            return group.needed - counts[group.name], weight(group), found[1].replica.index

        return sorted((found for found in placed if found[1].replica.group.priority > priority), key=order)

    def _frees_enough(self, server: Server, placed: PlacedReplica, need: Footprint) -> bool:
        """Whether a GPU of the replica's would have room without it: a quick no for most."""
        if self.layout.topology.cpu_only or need.on_cpu:
            return True
        beside: Counter[int] = Counter()
        for each in server.placed:
            if each is not placed:
                for demand, gpus in zip(each.replica.group.demands, each.assignment, strict=True):
                    beside.update(dict.fromkeys(gpus, demand.footprint.memory or 1))
        usable = self.layout.topology.usable[server.node]
        own = {gpu for gpus in placed.assignment for gpu in gpus}
        return any(usable[gpu] - beside[gpu] >= need.memory and not (need.whole and beside[gpu]) for gpu in own)
