"""The GPUs that a pool's plan gives up to other pools, by what it would lose.

Replicas beyond a minimum give way to what must serve in any pool. What must serve gives way to a higher priority of
another pool only where its own pool preempts lower priorities: by a number in its spec alone, no pool empties another.
A server gives way as a whole, so that nothing is restarted for something that comes after it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from argosy.api.pool.packing import Preemption
from argosy.planning.facts import Device, Group, Node, PoolFacts, PreemptibleGpu, Rank
from argosy.planning.nodes.holders import pool_holder
from argosy.planning.plan import PoolPlan, ServerPlan

_NOTHING: Rank = (True, 1 << 63)


def preemptible_gpus(facts: PoolFacts, plan: PoolPlan, new_too: bool = False) -> dict[Device, PreemptibleGpu]:
    """Return the GPUs that what comes before takes from a plan. `new_too`: those of servers on which nothing runs yet,
    whatever the pool's setting.
    """
    is_lower_too = facts.preemption is Preemption.LOWER_PRIORITY
    if not (is_lower_too or new_too or any(group.replicas > group.needed for group in facts.groups)):
        return {}
    ranks = _ranks({group.name: group for group in facts.groups}, plan.servers)
    running = {server.name: server.placed for server in facts.current}
    gpus: dict[Device, PreemptibleGpu] = {}
    for server in plan.servers:
        losses = tuple(sorted((ranks[server.name, group], group) for group in server.groups))
        is_new = new_too and not any(one.model in running.get(server.name, ()) for one in server.placements)
        if losses and (losses[0][0][0] or is_lower_too or is_new):
            memory = sum(one.memory * len(one.gpus) for one in server.placements)
            lost = PreemptibleGpu(facts.pool, server.name, losses, memory)
            gpus |= {(server.node, gpu): lost for one in server.placements for gpu in one.gpus}
    return gpus


def protected_gpus(facts: PoolFacts, plan: PoolPlan) -> dict[Device, PreemptibleGpu]:
    """Return the GPUs that higher priorities would take from a plan if its pool let them."""
    if facts.preemption is Preemption.LOWER_PRIORITY:
        return {}
    return preemptible_gpus(replace(facts, preemption=Preemption.LOWER_PRIORITY), plan)


def servers_giving_way(
    nodes: Iterable[Node], preemptible: Mapping[Device, PreemptibleGpu], rank: Rank
) -> list[dict[Device, PreemptibleGpu]]:
    """Return the GPUs of each server of other pools on these nodes that gives way to a rank, the least that is lost
    first.
    """
    servers: dict[tuple[str, str], dict[Device, PreemptibleGpu]] = {}
    for node in nodes:
        for gpu in node.gpus:
            lost = preemptible.get((node.name, gpu.index))
            if lost is not None and rank < lost.rank and gpu.withheld_by == pool_holder(lost.pool):
                servers.setdefault((lost.pool, lost.server), {})[node.name, gpu.index] = lost
    return sorted(servers.values(), key=lambda gpus: next(iter(gpus.values())).price)


def _ranks(groups: Mapping[str, Group], servers: Iterable[ServerPlan]) -> dict[tuple[str, str], Rank]:
    """Return the rank of each replica, by server and group. The replicas beyond a minimum are those next to what comes
    last.
    """
    hosts: dict[str, list[ServerPlan]] = {}
    for server in servers:
        for group in server.groups:
            hosts.setdefault(group, []).append(server)
    ranks: dict[tuple[str, str], Rank] = {}
    for name, on in hosts.items():
        for at, server in enumerate(_first_to_stay(name, on, groups)):
            ranks[server.name, name] = groups[name].rank(at)
    return ranks


def _first_to_stay(name: str, on: Sequence[ServerPlan], groups: Mapping[str, Group]) -> Sequence[ServerPlan]:
    if len(on) == 1 or groups[name].needed in (0, len(on)):
        return on

    def order(server: ServerPlan) -> tuple[Rank, str]:
        return min((groups[other].rank(0) for other in server.groups if other != name), default=_NOTHING), server.name

    return sorted(on, key=order)
