"""Replicas of groups, and where they sit on a server."""

from dataclasses import dataclass

from argosy.planning.facts import Footprint, Group, Rank, without_candidate, without_surge

# One tuple of device indexes per demand of the group, in the group's order; () is the server's CPU.
Assignment = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Replica:
    """The `index`-th copy of a group."""

    group: Group
    index: int

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from every other replica."""
        return self.group.name, self.index

    @property
    def rank(self) -> Rank:
        """Its rank: those below the minimum first, and of both the higher priority first."""
        return self.group.rank(self.index)

    @property
    def without_candidate(self) -> "Replica":
        """The replica of the stable revision alone."""
        return Replica(self.group.with_footprints(without_candidate), self.index) if self.group.in_rollout else self

    @property
    def without_surge(self) -> "Replica":
        """The replica with memory for one of its revisions at a time."""
        return Replica(self.group.with_footprints(without_surge), self.index) if self.group.in_rollout else self


@dataclass(frozen=True, slots=True)
class PlacedReplica:
    """A replica that has a place."""

    replica: Replica
    assignment: Assignment

    @property
    def on_cpu(self) -> list[Footprint]:
        """The footprints of its models that have no GPU."""
        placed = zip(self.replica.group.demands, self.assignment, strict=True)
        return [demand.footprint for demand, gpus in placed if not gpus]
