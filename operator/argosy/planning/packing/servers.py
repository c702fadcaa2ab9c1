"""The servers of a packed layout: their names, and the idle servers that `minServers` requires.

A running server keeps its name; new ones get the lowest free numbers, in the order of nodes and GPUs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from argosy.planning.facts import CurrentServer, Group
from argosy.planning.packing.fit.unreserved import unreserved
from argosy.planning.packing.layout import Layout, PlacedReplica, Server
from argosy.planning.plan import Placement, ServerPlan
from argosy.planning.server_names import free_names, natural


def server_plans(layout: Layout) -> tuple[ServerPlan, ...]:
    """Return the plan of each server of a layout, under the names that it has there."""
    requested = {group.name: group for group in layout.topology.facts.groups}
    return tuple(
        ServerPlan(
            name=server.name,
            node=server.node,
            gpus=server.gpus,
            placements=tuple(
                placement
                for placed_replica in sorted(server.placed, key=lambda placed_replica: placed_replica.replica.key)
                for placement in _placements(layout, server, placed_replica, requested)
            ),
        )
        for server in layout.servers.values()
    )


def _placements(
    layout: Layout, server: Server, placed: PlacedReplica, requested: Mapping[str, Group]
) -> list[Placement]:
    group, assignment = placed.replica.group, placed.assignment
    return [
        Placement(
            model=demand.model,
            version=demand.version,
            group=group.name,
            gpus=gpus,
            instances=demand.instances,
            memory=demand.footprint.memory,
            compute=demand.footprint.compute,
            exclusive=demand.footprint.exclusive,
            surge=demand.footprint.surge,
            unreserved=unreserved(layout, server, placed, desired),
            shares=demand.footprint.shares,
            misplaced=_misplaced(group, requested[group.name]),
        )
        for demand, desired, gpus in zip(group.demands, requested[group.name].demands, assignment, strict=True)
    ]


def _misplaced(placed: Group, requested: Group) -> bool:
    """Return whether a group was left where it is without what it requires of its node."""
    apart = (placed.spread, placed.not_on_server, placed.not_on_node)
    requires = [demand.requires for demand in placed.demands]
    return (apart, requires) != (
        (requested.spread, requested.not_on_server, requested.not_on_node),
        [demand.requires for demand in requested.demands],
    )


def settled_names(layout: Layout, servers: Iterable[ServerPlan]) -> tuple[ServerPlan, ...]:
    """Return the servers in order of name, each new one renamed independently of the order it was opened in.

    One whose GPUs a server has that runs and got nothing to do is that server.
    """
    topology = layout.topology
    running = [server for server in servers if server.name in topology.running]
    new = [server for server in servers if server.name not in topology.running]
    new.sort(key=lambda server: (server.node, server.gpus, [(p.group, p.model) for p in server.placements]))
    named = {server.name for server in running}
    idle = [server for server in topology.facts.current if server.name not in named]
    free = free_names(topology.facts.pool.name, topology.taken)
    settled = [replace(server, name=_taken_over(server, idle) or next(free)) for server in new]
    return tuple(sorted([*running, *settled], key=lambda server: natural(server.name)))


def _taken_over(server: ServerPlan, idle: list[CurrentServer]) -> str:
    """Return the name of an idle server with the fewest GPUs that has those of `server`; it is idle no longer."""
    able = [one for one in idle if one.node == server.node and set(one.gpus) >= set(server.gpus)]
    able = [one for one in able if bool(one.gpus) == bool(server.gpus)]
    best_match = min(able, key=lambda one: (len(one.gpus), natural(one.name)), default=None)
    if best_match is None:
        return ""
    idle.remove(best_match)
    return best_match.name


def with_idle_servers(layout: Layout, servers: Sequence[ServerPlan]) -> tuple[ServerPlan, ...]:
    """Return `servers`, filled up to the pool's minimum: those that run already first, then one free GPU each on the
    emptiest node.
    """
    facts = layout.topology.facts
    limit = facts.min_servers if facts.max_servers is None else min(facts.min_servers, facts.max_servers)
    missing = max(0, limit - len(servers))
    free = {node: list(gpus) for node, gpus in layout.unallocated.items()}
    opens = [node for node in free if layout.topology.nodes[node].schedulable]
    names = {server.name for server in servers}
    idle: list[ServerPlan] = []
    if missing and free:
        spare = (server for server in sorted(facts.current, key=lambda s: natural(s.name)) if server.name not in names)
        stays = {node for node in free if not opens or not layout.topology.nodes[node].lost}
        retained = [server for server in spare if server.node in stays and set(server.gpus) <= set(free[server.node])]
        idle += [_in_use(free, server.name, server.node, server.gpus[:1]) for server in retained[:missing]]
        free_name = free_names(facts.pool.name, names | {server.name for server in idle} | layout.topology.taken)
        for _ in range(missing - len(idle) if opens else 0):
            node = min(opens, key=lambda name: (-len(free[name]), name))
            idle.append(_in_use(free, next(free_name), node, tuple(free[node][:1])))
    return tuple(sorted([*servers, *idle], key=lambda server: natural(server.name)))


def _in_use(free: dict[str, list[int]], name: str, node: str, gpus: tuple[int, ...]) -> ServerPlan:
    free[node] = [gpu for gpu in free[node] if gpu not in gpus]
    return ServerPlan(name, node, gpus, ())
