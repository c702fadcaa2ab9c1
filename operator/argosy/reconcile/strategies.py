"""The strategies of rollouts, chosen by the memory of servers and by free GPUs."""

from collections.abc import Mapping
from functools import partial

from argosy.api import Ensemble, InferenceModel
from argosy.api.values.identity import PoolKey
from argosy.autoscaling.pool.policies import may_be_queued
from argosy.planning.migration.pool_migration import PoolMigration
from argosy.planning.migration.strategies import chosen_strategies
from argosy.planning.packing.priorities import RankedPlan, pack_by_priority, replicas_of, servers_of
from argosy.planning.rollouts.strategy import ChosenStrategy
from argosy.snapshot import FleetSnapshot


def rollout_strategies(
    snapshot: FleetSnapshot, migrations: Mapping[PoolKey, PoolMigration], ranked: RankedPlan
) -> dict[str, ChosenStrategy]:
    """Return how the candidate of each rollout replaces the stable revision, by the member's identity."""
    chosen: dict[str, ChosenStrategy] = {}
    for key, migration in migrations.items():
        members = migration.state.members
        every: dict[str, InferenceModel | Ensemble] = {**members.models, **members.ensembles}
        holds = snapshot.pool(key).holds
        queued = {
            name for name, one in members.rollouts.items() if holds and may_be_queued(one.declared, has_activator=True)
        }
        finds_gpus = partial(_finds_gpus, snapshot, ranked, key)
        of_pool = chosen_strategies(migration.state, queued, finds_gpus)
        chosen |= {every[name].identity: strategy for name, strategy in of_pool.items()}
    return chosen


def _finds_gpus(snapshot: FleetSnapshot, ranked: RankedPlan, pool: PoolKey, name: str) -> bool:
    """Return whether a further replica of a member would be placed next to all that are planned."""
    facts = next(facts for facts in ranked.facts if facts.pool == pool)
    group = next((one for one in facts.groups if name in {one.name, *(demand.model for demand in one.demands)}), None)
    if group is None:
        return False
    larger = pack_by_priority(ranked.with_more({(pool, group.name): 0}), snapshot.others)
    if replicas_of(larger.plan, pool, group.name) <= replicas_of(ranked.plan, pool, group.name):
        return False
    there = set(servers_of(ranked.plan, pool, group.name))
    further = (server for at, server in servers_of(larger.plan, pool, group.name).items() if at not in there)
    lacks = (placement.unreserved for server in further for placement in server.placements)
    return all(lack is None or lack.alone for lack in lacks)
