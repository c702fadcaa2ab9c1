"""Rest: whether a pool is as its plan says, so that something may be moved, and which groups stay all the same."""

from collections.abc import Collection, Iterator

from argosy.planning.amounts import listed
from argosy.planning.demand.members import Members
from argosy.planning.facts import CurrentServer, PoolFacts
from argosy.planning.migration.pool_migration import PoolMigration
from argosy.planning.migration.state import PoolState
from argosy.planning.plan import PoolPlan
from argosy.rollout.state import Phase


def unrest(facts: PoolFacts, migration: PoolMigration, short: Collection[str]) -> str:
    """Return what a pool is busy with, as a clause; empty where it is at rest.

    At rest everything has its place and is reached there, and every server has reported so lately. `short`: the groups
    with optional replicas that have no place.
    """
    return next(_reasons(facts, migration, short), "")


def fixed_groups(facts: PoolFacts, members: Members) -> frozenset[str]:
    """Return the groups of which a rollout is under way: none of their replicas moves."""
    busy = {name for name, rollout in members.rollouts.items() if rollout.state.phase is not Phase.STABLE}
    models = {model for name in busy for model in members.models_of(name)}
    return frozenset(group.name for group in facts.groups if any(demand.model in models for demand in group.demands))


def _reasons(facts: PoolFacts, migration: PoolMigration, short: Collection[str]) -> Iterator[str]:
    state = migration.state
    plan = state.plan
    missing = {*(unplaced.group for unplaced in plan.unplaced), *(model.model for model in facts.waiting), *short}
    if missing:
        yield f"{listed(sorted(missing), separator=', ')} has no place for every replica"
    if plan.claims:
        yield "the pool waits for GPUs of another pool"
    if _placed(plan.current) != _placed(facts.current):
        yield "the plan changes"
    if migration.notes or migration.disruption or migration.wake or state.draining_servers() or state.surplus():
        yield "models are being moved or changed"
    yield from _silent(facts, state)
    yield from _unreached(plan, state)


def _placed(servers: Collection[CurrentServer]) -> dict[str, tuple[object, ...]]:
    return {server.name: (server.node, server.gpus, dict(server.placed)) for server in servers}


def _silent(facts: PoolFacts, state: PoolState) -> Iterator[str]:
    nodes = {node.name: node for node in facts.nodes}
    for server in facts.current:
        node, report = nodes.get(server.node), state.observed.reports.get(server.name)
        if node is None or not node.ready or node.stale or node.lost:
            yield f"node {server.node} of {server.name} is not ready"
        elif report is None or not report.ready or report.expired or not report.settled:
            yield f"{server.name} is not ready"


def _unreached(plan: PoolPlan, state: PoolState) -> Iterator[str]:
    """Yield where a model or ensemble of the plan is not reached in the version that is declared.

    Of one in a rollout it is enough that the stable version is reached: the rollout may wait for a long time.
    """
    observed, members = state.observed, state.members
    for server in plan.servers:
        for name in sorted(state.bindings.names[server.name]):
            version = members.version(name)
            ready = version is not None and observed.is_ready(server.name, name, version)
            if not observed.reachable(server.name, name) or not (ready or name in members.rollouts):
                yield f"{name} is not reached on {server.name}"
