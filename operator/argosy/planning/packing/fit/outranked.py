"""Members that have, because they come first, the capacity that a replica lacks."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from argosy.planning.amounts import listed
from argosy.planning.facts import Footprint, Group
from argosy.planning.packing.bound.replicas import weight
from argosy.planning.packing.fit.fit_limits import hardest
from argosy.planning.packing.gpu_assignment import Budget
from argosy.planning.packing.layout import Layout, PlacedReplica, Replica, Server
from argosy.planning.packing.scoring import best

_TRIES = 64
"""Replicas that may be thought away for all of one pool's unschedulable ones."""
_TRIES_OF_ONE = 8
"""Of these, for one replica."""
_NAMED = 2
"""Groups that a message names."""


@dataclass(frozen=True, slots=True)
class Outranked:
    """The groups of one layout that outrank others. `ordered`: all replicas, once sorted."""

    layout: Layout
    budget: Budget = field(default_factory=lambda: Budget(_TRIES))
    ordered: list[tuple[Server, PlacedReplica]] = field(default_factory=list)

    def words(self, replica: Replica) -> str:
        """Return a clause to begin a message with; empty where nothing that comes first is in the replica's place."""
        priority, optional = replica.group.priority, self._is_optional(replica)
        groups = [*islice(self._outranking(replica, optional), _NAMED)]
        if not groups:
            return ""
        if optional:
            names = listed((group.name for group in groups), separator=", ")
            return f"replicas beyond minReplicas give way to what comes first, such as {names}: "
        if len(groups) == 1:
            return f"it gives way to {groups[0].name}, whose priority is {groups[0].priority} and not {priority}: "
        names = listed((f"{group.name} ({group.priority})" for group in groups), separator=" and ")
        return f"it gives way to higher priorities than its {priority}, such as {names}: "

    def _is_optional(self, replica: Replica) -> bool:
        """Return whether a replica is beyond what its group must have, and is declared all the same."""
        has = len(self.layout.hosting(replica.group.name)) if replica.group.declared else 0
        return replica.group.needed <= has < replica.group.declared

    def _outranking(self, replica: Replica, optional: bool) -> Iterator[Group]:
        """Yield the groups that come first of which one replica less would free enough, each once."""
        need, left = hardest(list(replica.group.demands)).footprint, _TRIES_OF_ONE
        groups = {replica.group.name}
        for server, placed in self._first(replica.group.priority, optional):
            group = placed.replica.group
            if group.name in groups or not self._frees_enough(server, placed, need):
                continue
            if not left or not self.budget.spend():
                return
            left -= 1
            if best(self.layout.without(placed.replica, server.name), replica) is not None:
                groups.add(group.name)
                yield group

    def _first(self, priority: int, optional: bool) -> Iterator[tuple[Server, PlacedReplica]]:
        """Yield replicas of a higher priority, or of any that come before an optional one; first those of groups with
        the most replicas beyond their minimum.
        """
        if not optional and all(group.priority <= priority for group in self.layout.topology.facts.groups):
            return
        if not self.ordered:
            self.ordered.extend(self._in_order())
        for server, placed in self.ordered:
            if placed.replica.group.priority > priority or (optional and self._is_required(placed.replica)):
                yield server, placed

    def _is_required(self, replica: Replica) -> bool:
        group = replica.group
        return group.needed >= (len(self.layout.hosting(group.name)) if group.replicas > 1 else 1)

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
