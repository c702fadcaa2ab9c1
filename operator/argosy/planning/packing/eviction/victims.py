"""Victims: the placed replicas that may give up their places to one that comes before them.

A replica below its group's minimum comes before every one beyond it; of both kinds, the higher priority comes first.
What is beyond a minimum gives way in every pool, and what is below it where the pool preempts lower priorities.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar, cast

from argosy.planning.facts import Group, Rank
from argosy.planning.packing.layout import Layout, PlacedReplica, Replica, Server


@dataclass(frozen=True, slots=True)
class Victim:
    """A placed replica that may give up its place, and the server that it is on."""

    placed: PlacedReplica
    server: Server

    @property
    def replica(self) -> Replica:
        """The replica."""
        return self.placed.replica

    @property
    def group(self) -> Group:
        """Its group."""
        return self.placed.replica.group

    @property
    def memory(self) -> int:
        """The bytes that it takes of all its GPUs."""
        seats = zip(self.group.demands, self.placed.assignment, strict=True)
        return sum(demand.footprint.settled * len(gpus) for demand, gpus in seats)

    @property
    def name(self) -> tuple[str, str]:
        """What tells it from every other victim, and orders those that are alike."""
        return self.group.name, self.server.name


T = TypeVar("T")
Victims = tuple[Victim, ...]


Price = tuple[list[tuple[bool, int]], int, list[tuple[str, str]]]


@dataclass(frozen=True)
class Placed:
    """What one layout has placed, as victims by the rank that they give way to. `lower_too`: those below their group's
    minimum give way to a higher priority. `cached`: what was worked out for each node, and holds until it changes.
    """

    layout: Layout
    lower_too: bool
    counts: Counter[str]  # the placed replicas of each group
    cached: dict[str, dict[object, object]] = field(default_factory=dict)

    @classmethod
    def of(cls, layout: Layout, lower_too: bool) -> "Placed":
        """Return what a layout has placed."""
        return cls(layout, lower_too, Counter(group.name for group in _groups(layout.servers.values())))

    def after(self, layout: Layout) -> "Placed":
        """Return what another layout has placed. What is known stays for the nodes on which nothing is different."""
        before = [one for name, one in self.layout.servers.items() if layout.servers.get(name) is not one]
        now = [one for name, one in layout.servers.items() if self.layout.servers.get(name) is not one]
        counts = self.counts.copy()
        counts.subtract(group.name for group in _groups(before))
        counts.update(group.name for group in _groups(now))
        changed = {server.node for server in (*before, *now)}
        for group in _groups((*before, *now)):
            if group.replicas > 1 and counts[group.name] != self.counts[group.name]:
                changed |= layout.nodes_with(group.name)
        cached = {node: facts for node, facts in self.cached.items() if node not in changed}
        return Placed(layout, self.lower_too, counts, cached)

    def once(self, node: str, key: object, work_out: Callable[[], T]) -> T:
        """Return what is known about a node under a key, worked out the first time."""
        cached = self.cached.setdefault(node, {})
        if key not in cached:
            cached[key] = work_out()
        return cast(T, cached[key])

    @cached_property
    def _servers(self) -> dict[str, list[Server]]:
        servers: dict[str, list[Server]] = {}
        for server in self.layout.servers.values():
            servers.setdefault(server.node, []).append(server)
        return servers

    def servers(self, node: str) -> Sequence[Server]:
        """Return the servers of a node."""
        return self._servers.get(node, ())

    def rank(self, group: Group) -> Rank:
        """Return the rank of a group's next replica."""
        return group.rank(self.counts[group.name])

    def nodes(self, winner: Rank) -> list[str]:
        """Return the nodes on which something may give way to a replica of this rank, in the order of names."""
        return [node for node in sorted(self._servers) if self.here(node, winner)]

    def here(self, node: str, winner: Rank) -> Victims:
        """Return what may give way on a node to a replica of this rank, in the order of names."""
        return self.once(node, ("victims", winner), lambda: self._here(node, winner))

    def _here(self, node: str, winner: Rank) -> Victims:
        every = (Victim(placed, server) for server in self.servers(node) for placed in server.placed)
        going = (victim for victim in every if self._gives_way(victim.group, winner))
        return tuple(sorted(going, key=lambda victim: victim.name))

    def _gives_way(self, group: Group, winner: Rank) -> bool:
        """Return whether one replica of a group, the last one that counts, gives way."""
        last = group.rank(self.counts[group.name] - 1)
        return winner < last and (last[0] or (self.lower_too and winner[1] < last[1]))

    def may_go(self, victims: Sequence[Victim], winner: Rank) -> bool:
        """Return whether all of these may go together: of some groups only those beyond the minimum."""
        required = self.lower_too and not winner[0]
        return all(
            n <= self._beyond(group) or (required and winner[1] < -group.priority) for group, n in _by_group(victims)
        )

    def _beyond(self, group: Group) -> int:
        return max(0, self.counts[group.name] - group.needed)

    def price(self, victims: Iterable[Victim]) -> Price:
        """Return how bad it is to lose these, as the objective of a plan has it: the highest ranks count most, then
        their number, then the memory.
        """
        every = tuple(victims)
        ranks = sorted((self._ranks(every)), reverse=True)
        return ranks, sum(victim.memory for victim in every), sorted(victim.name for victim in every)

    def _ranks(self, victims: Victims) -> Iterator[tuple[bool, int]]:
        """Yield for each of them whether it is below its group's minimum, and its priority."""
        for group, n in _by_group(victims):
            yield from ((at >= self._beyond(group), group.priority) for at in range(n))


def _groups(servers: Iterable[Server]) -> Iterator[Group]:
    return (placed.replica.group for server in servers for placed in server.placed)


def _by_group(victims: Iterable[Victim]) -> Iterator[tuple[Group, int]]:
    groups: dict[str, list[Group]] = {}
    for victim in victims:
        groups.setdefault(victim.group.name, []).append(victim.group)
    return ((same[0], len(same)) for same in groups.values())
