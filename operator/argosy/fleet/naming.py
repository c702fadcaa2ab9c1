"""Names of servers: one that runs keeps its own; new ones take the lowest free numbers, in the order of nodes
and GPUs.
"""

from collections.abc import Iterable
from dataclasses import replace

from argosy.fleet.layout import Layout
from argosy.fleet.plan import ServerPlan


def settled_names(layout: Layout, servers: Iterable[ServerPlan]) -> tuple[ServerPlan, ...]:
    """The servers in order of name, each new one renamed independently of the order it was opened in."""
    terrain = layout.terrain
    base = terrain.facts.pool.rpartition("/")[2]
    kept = [server for server in servers if server.name in terrain.running]
    new = [server for server in servers if server.name not in terrain.running]
    new.sort(key=lambda server: (server.node, server.gpus, [(p.group, p.model) for p in server.placements]))
    free = (
        name for name in (f"{base}-{n}" for n in range(len(terrain.running) + len(new))) if name not in terrain.running
    )
    named = [replace(server, name=name) for server, name in zip(new, free, strict=False)]
    return tuple(sorted([*kept, *named], key=lambda server: natural(server.name)))


def natural(name: str) -> tuple[str, int, str]:
    """Sort key under which `pool-2` comes before `pool-10`."""
    base, _, number = name.rpartition("-")
    return (base, int(number), name) if number.isdecimal() else (name, 0, name)
