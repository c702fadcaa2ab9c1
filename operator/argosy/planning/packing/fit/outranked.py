"""Members that have, by a higher priority, the capacity that a replica lacks."""

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
    """The groups of one layout that outrank others, by the outranked group. `ordered`: all replicas, once sorted."""

    layout: Layout
    budget: Budget = field(default_factory=lambda: Budget(_TRIES))
    cache: dict[str, Group | None] = field(default_factory=dict)
    ordered: list[tuple[Server, PlacedReplica]] = field(default_factory=list)

    def words(self, replica: Replica) -> str:
        """Return a clause to begin a message with; empty where nothing of a higher priority is in the
        replica's place.
        """
        group = replica.group
        if group.name not in self.cache:
            self.cache[group.name] = next(self._outranking(replica), None)
        other = self.cache[group.name]
        if other is None:
            return ""
        return f"it gives way to {other.name}, whose priority is {other.priority} and not {group.priority}: "

    def _outranking(self, replica: Replica) -> Iterator[Group]:
        """Yield groups of a higher priority of which one replica less would free enough."""
        need = hardest(list(replica.group.demands)).footprint
        for server, placed in self._higher(replica.group.priority):
            if not self._frees_enough(server, placed, need):
                continue
            if not self.budget.spend():
                return
            if best(self.layout.without(placed.replica, server.name), replica) is not None:
                yield placed.replica.group

    def _higher(self, priority: int) -> Iterator[tuple[Server, PlacedReplica]]:
        """Yield replicas of a higher priority, first those of groups with the most replicas beyond their minimum."""
        if all(group.priority <= priority for group in self.layout.topology.facts.groups):
            return
        if not self.ordered:
            self.ordered.extend(self._in_order())
        yield from (item for item in self.ordered if item[1].replica.group.priority > priority)

    def _in_order(self) -> list[tuple[Server, PlacedReplica]]:
        replicas = [(server, placed) for server in self.layout.servers.values() for placed in server.placed]
        counts = Counter(placed.replica.group.name for _, placed in replicas)

        def order(item: tuple[Server, PlacedReplica]) -> tuple[object, ...]:
            group = item[1].replica.group
            return group.needed - counts[group.name], weight(group), item[1].replica.index

        return sorted(replicas, key=order)

    def _frees_enough(self, server: Server, placed: PlacedReplica, need: Footprint) -> bool:
        """Return whether a GPU of the placed replica could hold the other one without it: a quick no for most."""
        if self.layout.topology.cpu_only or need.on_cpu:
            return True
        others: Counter[int] = Counter()
        for other in server.placed:
            if other is not placed:
                for demand, gpus in zip(other.replica.group.demands, other.assignment, strict=True):
                    others.update(dict.fromkeys(gpus, demand.footprint.memory or 1))
        usable = self.layout.topology.usable[server.node]
        own = {gpu for gpus in placed.assignment for gpu in gpus}
        return any(usable[gpu] - others[gpu] >= need.memory and not (need.exclusive and others[gpu]) for gpu in own)
