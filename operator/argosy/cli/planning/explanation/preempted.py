"""What lost its place to a higher priority: as lines for people, and as plain values."""

from typing import Any

from argosy.planning.plan import FleetPlan


def preempted_lines(plan: FleetPlan) -> list[str]:
    """Return a line for each replica that lost its place, with what took it, and both priorities."""
    several = len(plan.pools) > 1
    return [
        f"{one.group} (priority {one.priority}) loses its place on {one.server}{f' of pool {pool.pool}' * several} to "
        f"{one.winner} (priority {one.winner_priority}){f' of pool {one.other_pool}' if one.other_pool else ''}"
        for pool in plan.pools
        for one in pool.lost
    ]


def preempted_document(plan: FleetPlan) -> list[dict[str, Any]]:
    """Return what lost its place as plain values."""
    return [
        {
            "pool": str(pool.pool),
            "group": one.group,
            "server": one.server,
            "priority": one.priority,
            "preemptedBy": {
                "group": one.winner,
                "priority": one.winner_priority,
                **({"pool": str(one.other_pool)} if one.other_pool else {}),
            },
        }
        for pool in plan.pools
        for one in pool.lost
    ]
