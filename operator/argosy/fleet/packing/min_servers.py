"""`minServers`: servers kept running with nothing on them, so that the next model finds one."""

from collections.abc import Iterator, Sequence

from argosy.fleet.packing.layout import Layout
from argosy.fleet.packing.server_names import natural
from argosy.fleet.plan import ServerPlan


def with_idle_servers(layout: Layout, servers: Sequence[ServerPlan]) -> tuple[ServerPlan, ...]:
    """`servers`, filled up to the pool's minimum: those that run already first, then one free GPU each on the
    emptiest node.
    """
    facts = layout.terrain.facts
    limit = facts.min_servers if facts.max_servers is None else min(facts.min_servers, facts.max_servers)
    missing = max(0, limit - len(servers))
    free = {node: list(gpus) for node, gpus in layout.free.items()}
    opens = [node for node in free if layout.terrain.nodes[node].schedulable]
    names = {server.name for server in servers}
    idle: list[ServerPlan] = []
    if missing and free:
        spare = (server for server in sorted(facts.current, key=lambda s: natural(s.name)) if server.name not in names)
        kept = [server for server in spare if server.node in free and set(server.gpus) <= set(free[server.node])]
        idle += [_held(free, server.name, server.node, server.gpus[:1]) for server in kept[:missing]]
        fresh = _fresh_names(layout, names | {server.name for server in idle})
        for _ in range(missing - len(idle) if opens else 0):
            node = min(opens, key=lambda name: (-len(free[name]), name))
            idle.append(_held(free, next(fresh), node, tuple(free[node][:1])))
    return tuple(sorted([*servers, *idle], key=lambda server: natural(server.name)))


def _held(free: dict[str, list[int]], name: str, node: str, gpus: tuple[int, ...]) -> ServerPlan:
    free[node] = [gpu for gpu in free[node] if gpu not in gpus]
    return ServerPlan(name, node, gpus, ())


def _fresh_names(layout: Layout, taken: set[str]) -> Iterator[str]:
    base = layout.terrain.facts.pool.rpartition("/")[2]
    used = taken | layout.terrain.taken
    return (
        name
        for name in (f"{base}-{n}" for n in range(len(used) + layout.terrain.facts.min_servers))
        if name not in used
    )
