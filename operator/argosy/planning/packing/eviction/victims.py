"""Victims: the placed replicas that may give up their places to one that comes before them.

A replica below its group's minimum comes before every one beyond it; of both kinds, the higher priority comes first.
What is beyond a minimum gives way in every pool, and what is below it where the pool preempts lower priorities.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

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


Victims = tuple[Victim, ...]


@dataclass(frozen=True)
class Placed:
    """What one layout has placed, as victims by the rank that they give way to. `lower_too`: those below their group's
    minimum give way to a higher priority.
    """

    layout: Layout
    lower_too: bool
    cache: dict[Rank, dict[str, Victims]] = field(default_factory=dict)

    @cached_property
    def counts(self) -> Counter[str]:
        """The placed replicas of each group."""
        return Counter(one.group.name for one in self._every)

    @cached_property
    def _every(self) -> Victims:
        return tuple(Victim(placed, server) for server in self.layout.servers.values() for placed in server.placed)

    @cached_property
    def servers(self) -> dict[str, list[Server]]:
        """The servers of each node that has some."""
        servers: dict[str, list[Server]] = {}
        for server in self.layout.servers.values():
            servers.setdefault(server.node, []).append(server)
        return servers

    def rank(self, group: Group) -> Rank:
        """Return the rank of a group's next replica."""
        return group.rank(self.counts[group.name])

    def by_node(self, winner: Rank) -> dict[str, Victims]:
        """Return what may give way to a replica of this rank, by node, in the order of names."""
        if winner not in self.cache:
            nodes: dict[str, list[Victim]] = {}
            for victim in self._every:
                if self._gives_way(victim.group, winner):
                    nodes.setdefault(victim.server.node, []).append(victim)
            self.cache[winner] = {
                node: tuple(sorted(nodes[node], key=lambda victim: victim.name)) for node in sorted(nodes)
            }
        return self.cache[winner]

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

    def price(self, victims: Iterable[Victim]) -> tuple[object, ...]:
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


def _by_group(victims: Iterable[Victim]) -> Iterator[tuple[Group, int]]:
    groups: dict[str, list[Group]] = {}
    for victim in victims:
        groups.setdefault(victim.group.name, []).append(victim.group)
    return ((same[0], len(same)) for same in groups.values())
