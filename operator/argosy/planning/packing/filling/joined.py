"""Servers of one node joined, where more are opened than there may be: they have more GPUs each, and no model moves."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from argosy.planning.nodes.slices import is_slice
from argosy.planning.packing.layout import Layout, Server


def joined(layout: Layout, most: int) -> Layout | None:
    """Return the layout with at most so many servers; None where too few may be joined.

    A server that runs stays as it is, since a further GPU takes a restart.
    """
    surplus = len(layout.servers) - most
    joins = dict[str, list[list[Server]]]()
    for server in layout.servers.values():
        if surplus <= 0:
            break
        if server.name not in layout.topology.running:
            surplus -= _joins(layout, joins.setdefault(server.node, []), server)
    return None if surplus > 0 else _applied(layout, (one for of_node in joins.values() for one in of_node))


def _joins(layout: Layout, of_node: list[list[Server]], server: Server) -> bool:
    """Add a server to the first of its node that it may be joined with. Return whether there is one."""
    for servers in of_node:
        if _may_be_one(layout, [*servers, server]):
            servers.append(server)
            return True
    of_node.append([server])
    return False


def _may_be_one(layout: Layout, servers: Sequence[Server]) -> bool:
    """Return whether one server may have what these have: replicas apart, the size of its documents, the number of its
    GPUs, and one slice alone. The first GPUs of a server remain the first.
    """
    facts = layout.topology.facts
    gpus = [gpu for server in servers for gpu in server.gpus]
    groups = [placed.replica.group for server in servers for placed in server.placed]
    names = {group.name for group in groups}
    if len(names) < len(groups) or any(not names.isdisjoint(group.not_on_server) for group in groups):
        return False
    if any(server.ordered for server in servers) or (len(gpus) > 1 and any(map(is_slice, gpus))):
        return False
    small = sum(server.size for server in servers) <= facts.placed_bytes
    return small and (facts.max_gpus_per_server is None or len(gpus) <= facts.max_gpus_per_server)


def _applied(layout: Layout, joins: Iterable[Sequence[Server]]) -> Layout:
    several = [servers for servers in joins if len(servers) > 1]
    gone = {server.name for servers in several for server in servers[1:]}
    left = {name: server for name, server in layout.servers.items() if name not in gone}
    return replace(layout, servers=left).with_servers(
        (servers[0], tuple(placed for server in servers for placed in server.placed)) for servers in several
    )
