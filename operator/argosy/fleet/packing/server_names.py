"""Names of servers: one that runs keeps its own; new ones take the lowest free numbers, in the order of nodes
and GPUs.
"""

from collections.abc import Iterable
from dataclasses import replace

from argosy.fleet.facts import CurrentServer
from argosy.fleet.packing.layout import Layout
from argosy.fleet.plan import ServerPlan


def settled_names(layout: Layout, servers: Iterable[ServerPlan]) -> tuple[ServerPlan, ...]:
    """The servers in order of name, each new one renamed independently of the order it was opened in.

    One whose GPUs a server has that runs and got nothing to do is that server.
    """
    terrain = layout.terrain
    base = terrain.facts.pool.rpartition("/")[2]
    kept = [server for server in servers if server.name in terrain.running]
    new = [server for server in servers if server.name not in terrain.running]
    new.sort(key=lambda server: (server.node, server.gpus, [(p.group, p.model) for p in server.placements]))
    idle = [each for each in terrain.facts.current if each.name not in {server.name for server in kept}]
    taken = terrain.taken
    free = (name for name in (f"{base}-{n}" for n in range(len(taken) + len(new))) if name not in taken)
    named = [replace(server, name=_taken_over(server, idle) or next(free)) for server in new]
    return tuple(sorted([*kept, *named], key=lambda server: natural(server.name)))


def _taken_over(server: ServerPlan, idle: list[CurrentServer]) -> str:
    """The name of an idle server with the fewest GPUs that has those of `server`; it is idle no longer."""
    able = [each for each in idle if each.node == server.node and set(each.gpus) >= set(server.gpus)]
    able = [each for each in able if bool(each.gpus) == bool(server.gpus)]
    found = min(able, key=lambda each: (len(each.gpus), natural(each.name)), default=None)
    if found is None:
        return ""
    idle.remove(found)
    return found.name


def natural(name: str) -> tuple[str, int, str]:
    """Sort key under which `pool-2` comes before `pool-10`."""
    base, _, number = name.rpartition("-")
    return (base, int(number), name) if number.isdecimal() else (name, 0, name)
