"""A part of a layout: some of its nodes with all that is there, which replicas are added to."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from argosy.planning.packing.layout import Layout, Replica, Topology


def part_of(layout: Layout, nodes: Collection[str], todo: Sequence[Replica]) -> Layout:
    """Return the part of these nodes, for replicas whose domains count over the whole pool."""
    all_nodes = layout.topology
    groups = {replica.group.name: replica.group for replica in todo}
    facts = replace(
        all_nodes.facts,
        nodes=tuple(node for node in all_nodes.facts.nodes if node.name in nodes),
        groups=tuple(groups[name] for name in sorted(groups)),
        current=tuple(server for server in all_nodes.facts.current if server.node in nodes),
    )
    limits = {name: all_nodes.limits[name] for name in groups if name in all_nodes.limits}
    topology = replace(Topology.of(facts), cpu_only=all_nodes.cpu_only, limits=limits)
    servers = {name: layout.servers[name] for name in sorted(layout.servers) if layout.servers[name].node in nodes}
    return Layout(topology, servers, {name: layout.unallocated[name] for name in topology.nodes})


def with_part(layout: Layout, before: Layout, after: Layout) -> Layout:
    """Return the layout in which a part is as it is `after`. New servers get names that none of the layout has."""
    servers = {**layout.servers, **{name: after.servers[name] for name in before.servers}}
    merged = Layout(layout.topology, servers, {**layout.unallocated, **after.unallocated})
    for name in sorted(after.servers.keys() - before.servers.keys()):
        server = replace(after.servers[name], name=next(merged.free_names()))
        merged = replace(merged, servers={**merged.servers, server.name: server})
    return merged
