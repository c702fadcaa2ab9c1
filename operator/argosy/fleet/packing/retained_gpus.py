"""A server that runs keeps its GPUs: to take one away would restart it, and interrupt all else that it serves."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from argosy.fleet.facts import CurrentServer
from argosy.fleet.plan import FleetPlan, PoolPlan, ServerPlan

_Devices = set[tuple[str, int]]


def retained(plan: FleetPlan, current: Mapping[str, Sequence[CurrentServer]]) -> FleetPlan:
    """The plan, in which a server that lost models keeps GPUs it no longer needs until another server takes one.

    `current` are each pool's servers as they are, by the pool's key.
    """
    taken = {(server.node, gpu) for pool in plan.pools for server in pool.servers for gpu in server.gpus}
    return FleetPlan(tuple(_of_pool(pool, current.get(pool.pool, ()), taken) for pool in plan.pools))


def _of_pool(plan: PoolPlan, current: Sequence[CurrentServer], taken: _Devices) -> PoolPlan:
    running = {server.name: server for server in current}
    servers = tuple(_of_server(server, running.get(server.name), taken) for server in plan.servers)
    return replace(plan, servers=servers, gpus_used=sum(len(server.gpus) for server in servers))


def _of_server(server: ServerPlan, before: CurrentServer | None, taken: _Devices) -> ServerPlan:
    if before is None or before.node != server.node or not server.placements or not set(server.gpus) < set(before.gpus):
        return server
    spare = {(server.node, gpu) for gpu in set(before.gpus) - set(server.gpus)}
    return server if spare & taken else replace(server, gpus=tuple(sorted(before.gpus)))
