"""A plan that was carried out is where things sit now: what the next plan starts from."""

from argosy.fleet.facts import CurrentServer
from argosy.fleet.plan import PoolPlan


def current_servers(plan: PoolPlan) -> tuple[CurrentServer, ...]:
    """The plan's servers, as the facts of the next one give them."""
    return tuple(
        CurrentServer(server.name, server.node, server.gpus, {p.model: p.gpus for p in server.placements})
        for server in plan.servers
    )
