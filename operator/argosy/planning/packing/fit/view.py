"""The view of a layout in which a replica finds no place: what is free, and what would be without other holders."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from argosy.planning.facts import Group, PoolFacts
from argosy.planning.nodes.holders import is_held
from argosy.planning.nodes.reservations import withheld
from argosy.planning.packing.layout import Layout, Topology

_NAMED = 3
"""Holders of GPUs, and reasons why some cannot be used, that a message names."""


@dataclass(frozen=True)
class FitView:
    """A layout. `full`: the same with the GPUs that others hold as if they were free; `holders`: how many each
    holds, or are withheld for a reason of their own.
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
        layout, full = (
            view.part(view.topology.part(nodes, view.topology.facts.groups)) for view in (self.layout, self.full)
        )
        return FitView(layout, full, withheld(layout.topology.nodes.values()))

    @property
    def out_of_reach(self) -> str:
        """What others hold of the pool's GPUs, and what cannot be used of them, in words; empty where all are free."""
        held, unusable = (
            sorted(
                ((reason, count) for reason, count in self.holders.items() if is_held(reason) is so),
                key=lambda item: (-item[1], item[0]),
            )
            for so in (True, False)
        )
        clauses = [f"others hold {_counts(held, 'by')}"] if held else []
        clauses += [f"{_counts(unusable, 'for', ' cannot be used')}"] if unusable else []
        return " and ".join(clauses)

    @property
    def way_out(self) -> str:
        """What to do about what is out of reach, as the beginning of a sentence."""
        held = [is_held(reason) for reason in self.holders]
        return "Free them" if all(held) else "Free them, make them usable" if any(held) else "Make them usable"


def _counts(ordered: Sequence[tuple[str, int]], word: str, verb: str = "") -> str:
    """Return how many there are in all and for each of the first reasons, as `3: 2 by Pod a/x, 1 by Pod a/y`."""
    counts = ", ".join(f"{count} {word} {reason}" for reason, count in ordered[:_NAMED])
    rest, total = ordered[_NAMED:], sum(count for _, count in ordered)
    more = f", {sum(count for _, count in rest)} {word} {len(rest)} others" if rest else ""
    return f"{total}{verb}: {counts}{more}"


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
