"""The replicas that have no place in a layout: which they are, and what counts against a layout for them."""

from argosy.planning.packing.layout import Layout, Replica

Filled = tuple[Layout, tuple[Replica, ...]]
"""A layout, and the replicas that have no place in it, as those of the stable revision."""


def absent(layout: Layout) -> list[Replica]:
    """Return the replicas that have no place in a layout."""
    placed = {one.replica.key for server in layout.servers.values() for one in server.placed}
    every = (Replica(group, n) for group in layout.topology.facts.groups for n in range(group.replicas))
    return [replica for replica in every if replica.key not in placed]


def cost(filled: Filled) -> tuple[int, int, int]:
    """Return what counts against a layout: groups without any replica, replicas without a place, and GPUs."""
    layout, missing = filled
    served = {placed.replica.group.name for server in layout.servers.values() for placed in server.placed}
    down = {replica.group.name for replica in missing} - served
    return len(down), len(missing), layout.gpus_used
