"""Why a replica may be on no server that has room: what it is kept apart from, and where that is."""

from dataclasses import replace

from argosy.api import Reason
from argosy.planning.amounts import listed
from argosy.planning.packing.fit.fit_limits import Diagnosis
from argosy.planning.packing.layout import Layout, Replica
from argosy.planning.packing.scoring import fits

_NAMED = 3
"""Nodes that a message names."""


def in_the_way(layout: Layout, replica: Replica) -> Diagnosis | None:
    """Diagnose a replica that would fit if its group were kept apart from nothing."""
    group, nothing = replica.group, frozenset[str]()
    if not group.separated:
        return None
    if not fits(layout, Replica(replace(group, not_on_server=nothing, not_on_node=nothing), replica.index)):
        return None
    others = [
        f"{name} (level {level}, on {listed(sorted(set(nodes)), _NAMED, ', ')})"
        for level, names in (("Server", group.not_on_server), ("Node", group.not_on_node))
        for name in sorted(names)
        if (nodes := layout.hosting(name))
    ]
    return Diagnosis(
        Reason.ANTI_AFFINITY,
        f"{group.name} fits only where antiAffinity keeps it away from {listed(others)}. Add a node or a GPU, free one "
        "elsewhere, or change antiAffinity of one of them.",
    )
