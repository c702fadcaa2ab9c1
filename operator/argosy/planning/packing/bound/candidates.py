"""Memory for the candidates of rollouts, next to all that serves."""

from collections.abc import Sequence

from argosy.planning.facts import Group
from argosy.planning.packing.layout import Layout, Replica

_Servers = dict[tuple[str, int], str]
"""The server of each replica, by its key."""


def with_candidates(layout: Layout, replicas: Sequence[Replica]) -> Layout:
    """Return the layout with memory for the candidates of these replicas, where there is some; what has no place in the
    layout gets none.

    Those that are loaded come first, then those of the highest priority, then by name.
    """
    groups: dict[str, list[Replica]] = {}
    for replica in replicas:
        if replica.group.in_rollout:
            groups.setdefault(replica.group.name, []).append(replica)
    servers = _servers(layout) if groups else {}
    for of_group in sorted(groups.values(), key=lambda of_group: _claim(of_group[0].group)):
        layout = _with_candidate(layout, of_group, servers)
    return layout


def _servers(layout: Layout) -> _Servers:
    return {placed.replica.key: server.name for server in layout.servers.values() for placed in server.placed}


def _claim(group: Group) -> tuple[bool, int, str]:
    return not group.surging, -group.priority, group.name


def _with_candidate(layout: Layout, replicas: Sequence[Replica], servers: _Servers) -> Layout:
    """Return the layout with memory for the candidate on all of a group's servers: on none of them where one lacks it,
    unless it is loaded already.
    """
    reserved = layout
    for replica in replicas:
        if replica.key not in servers:
            continue  # it moves
        after = reserved.with_footprint(servers[replica.key], replica)
        if after is None and not replica.group.surging:
            return layout
        reserved = after or reserved
    return reserved
