"""Replicas that need the same: where one of them finds no place, in a layout that only fills up, none of them does."""

from dataclasses import dataclass, field, replace

from argosy.planning.packing.layout import Layout, Replica
from argosy.planning.packing.scoring import best

Shape = tuple[object, ...]


def shape(replica: Replica) -> Shape:
    """Return a value that is the same for equivalent replicas. Those of a group with several stay apart, so they are
    like no other group's.
    """
    group = replica.group
    return (*_needs(replica), group.priority, group.name if group.replicas > 1 else "")


@dataclass(slots=True)
class Hopeless:
    """The shapes for which a layout has no place, however full it gets."""

    shapes: set[Shape] = field(default_factory=set)

    def __contains__(self, replica: Replica) -> bool:
        return shape(replica) in self.shapes or _needs(replica) in self.shapes

    def add(self, layout: Layout, replica: Replica) -> None:
        """It found no place in this layout. Where that is not because its group's replicas stay apart, nothing that
        needs the same finds one.
        """
        self.shapes.add(shape(replica))
        if replica.group.replicas == 1 or best(layout, _stranger(replica)) is None:
            self.shapes.add(_needs(replica))


@dataclass(slots=True)
class Room:
    """Whether a layout has a place for something that needs as much as a replica does: looked for once."""

    layout: Layout
    found: dict[Shape, bool] = field(default_factory=dict)

    def has(self, replica: Replica) -> bool:
        """For one more of its like."""
        needs = _needs(replica)
        if needs not in self.found:
            self.found[needs] = best(self.layout, _stranger(replica)) is not None
        return self.found[needs]


def _stranger(replica: Replica) -> Replica:
    """One that needs the same, and that nothing has to be apart from."""
    return Replica(replace(replica.group, name=f"{replica.group.name} ", replicas=1), 0)


def _needs(replica: Replica) -> Shape:
    return replica.group.size, *((demand.footprint, demand.architectures) for demand in replica.group.demands)
