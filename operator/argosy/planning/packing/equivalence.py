"""Replicas that need the same: where one of them finds no place, in a layout that only fills up, none of them does."""

from dataclasses import dataclass, field, replace

from argosy.planning.packing.layout import Layout, Replica
from argosy.planning.packing.scoring import best

Shape = tuple[object, ...]


def shape(replica: Replica) -> Shape:
    """Return a value that is the same for equivalent replicas. Those of a group with several stay apart, so they are
    like no other group's, and so is a group that is spread in any case.
    """
    group = replica.group
    own = group.replicas > 1 or group.separated or group.spread_required
    return (*_needs(replica), group.priority, group.name if own else "")


def explained_shape(replica: Replica) -> Shape:
    """Return a value that is the same for equivalent replicas of which the same is said but for their names."""
    own = ((one.instances, one.versions, one.divisible, one.splittable) for one in replica.group.demands)
    return (shape(replica), *own)


@dataclass(slots=True)
class Hopeless:
    """The shapes for which a layout has no place, however full it gets."""

    shapes: set[Shape] = field(default_factory=set)

    def __contains__(self, replica: Replica) -> bool:
        return shape(replica) in self.shapes or _needs(replica) in self.shapes

    def add(self, layout: Layout, replica: Replica) -> None:
        """Record that a replica fits nowhere in this layout.

        Where that is not because its group's replicas stay apart, nothing that needs the same fits either.
        """
        self.shapes.add(shape(replica))
        alone = replica.group.replicas == 1 and not replica.group.spread_required
        if alone or best(layout, _stranger(replica)) is None:
            self.shapes.add(_needs(replica))


@dataclass(slots=True)
class FreeSlots:
    """Whether a layout has a slot for a replica with given needs: searched once for equal needs."""

    layout: Layout
    cache: dict[Shape, bool] = field(default_factory=dict)

    def has(self, replica: Replica) -> bool:
        """Return whether the layout has a slot for a replica with the same needs."""
        needs = _needs(replica)
        if needs not in self.cache:
            self.cache[needs] = best(self.layout, _stranger(replica)) is not None
        return self.cache[needs]


def _stranger(replica: Replica) -> Replica:
    """Return a replica with the same needs that has to be apart from nothing."""
    return Replica(replace(replica.group, name=f"{replica.group.name} ", replicas=1), 0)


def _needs(replica: Replica) -> Shape:
    group = replica.group
    return (
        group.size,
        group.not_on_server,
        group.not_on_node,
        *((d.footprint, d.architectures, d.requires) for d in group.demands),
    )
