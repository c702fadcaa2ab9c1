"""The view of a layout in which a replica finds no place: what is free, and what would be without other holders."""

from dataclasses import dataclass, replace
from functools import cached_property

from argosy.planning.facts import Group, PoolFacts
from argosy.planning.nodes.reservations import withheld
from argosy.planning.packing.layout import Layout, Topology

_NAMED = 3
"""How many holders of GPUs a message names."""


@dataclass(frozen=True)
class FitView:
    """A layout. `full`: the same with the GPUs that others hold as if they were free; `holders`: how many each
    holds.
    """

    layout: Layout
    full: Layout
    holders: dict[str, int]

    @classmethod
    def of(cls, layout: Layout) -> "FitView":
        """Return the view of a layout."""
        holders = withheld(layout.topology.nodes.values())
        return cls(layout, _without_holders(layout, layout.topology.facts) if holders else layout, holders)

    @cached_property
    def bare(self) -> Layout:
        """The full layout with nothing placed."""
        return Layout.empty(self.full.topology)

    def for_engines(self, group: Group) -> "FitView":
        """Return the same of those nodes alone that the group has engines for."""
        nodes = self.layout.topology.nodes
        return self.of_nodes(frozenset(name for name, node in nodes.items() if group.has_engines_for(node)))

    def of_nodes(self, nodes: frozenset[str]) -> "FitView":
        """Return the same of these nodes alone."""
        if len(nodes) == len(self.layout.topology.nodes):
            return self
        layout, full = (view.restricted(nodes) for view in (self.layout, self.full))
        return FitView(layout, full, withheld(layout.topology.nodes.values()))

    @property
    def by_others(self) -> str:
        """The holders of GPUs of the pool's nodes, in words."""
        ordered = sorted(self.holders.items(), key=lambda item: (-item[1], item[0]))
        counts = ", ".join(f"{count} by {holder}" for holder, count in ordered[:_NAMED])
        rest = ordered[_NAMED:]
        return counts + (f", {sum(count for _, count in rest)} by {len(rest)} others" if rest else "")


def _without_holders(layout: Layout, facts: PoolFacts) -> Layout:
    nodes = tuple(
        replace(node, gpus=tuple(replace(gpu, withheld_by="", reclaimable=False) for gpu in node.gpus))
        for node in facts.nodes
    )
    topology = Topology.of(replace(facts, nodes=nodes))
    free = {
        name: tuple(sorted({*layout.unallocated[name], *(usable.keys() - layout.topology.usable[name].keys())}))
        for name, usable in topology.usable.items()
    }
    return Layout(topology, layout.servers, free)
