"""The decisions of a round, stage by stage: specs, amounts, places, and the next step of each server."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from argosy.api import Resource, ServingPool
from argosy.api.model.variantspecs import variant_name
from argosy.api.values.identity import PoolKey
from argosy.api.values.reuse import Reused, RoundCache
from argosy.autoscaling.decision import Allocation
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.pool.allocations import allocations, scaled_resources
from argosy.autoscaling.pool.policies import policies
from argosy.planning import variants
from argosy.planning.builds.scheduling import schedule_builds
from argosy.planning.demand.measured import MeasuredMemory, measured_memory
from argosy.planning.demand.members import Members
from argosy.planning.demand.pool_facts import pool_facts
from argosy.planning.explanation.remedies.find import OF_A_ROUND, find_remedies
from argosy.planning.facts import Device, Node, PoolFacts
from argosy.planning.migration.choices import VariantChoice, variant_choices
from argosy.planning.migration.observed import Observed
from argosy.planning.migration.pool_migration import DRAIN_PERIOD, PoolMigration
from argosy.planning.migration.revisions import revisions_by_server
from argosy.planning.nodes.pool_nodes import PoolNodes
from argosy.planning.nodes.reservations import devices
from argosy.planning.overlapping import with_overlap
from argosy.planning.packing.priorities import RankedPlan, pack_by_priority
from argosy.planning.plan import FleetPlan, PoolPlan
from argosy.planning.provisioning.fleet import provision_fleet, with_waits
from argosy.reconcile.consolidation import consolidations, with_progress
from argosy.reconcile.nodes import available_nodes, pool_cordons
from argosy.reconcile.specs import AcceptedSpecs, accepted_specs
from argosy.reconcile.strategies import rollout_strategies
from argosy.render.keys import RenderedKeys
from argosy.render.sizes import document_sizes
from argosy.round import DecidedRound
from argosy.snapshot import FleetSnapshot, PoolSnapshot
from argosy.status.measured.footprint import last_measured


def decide(
    snapshot: FleetSnapshot,
    now: datetime,
    drain_period: timedelta = DRAIN_PERIOD,
    last_packed: RankedPlan | None = None,
    cache: RoundCache | None = None,
) -> DecidedRound:
    """Return the decisions of a round: on specs, amounts, places, the next step of each server, and what follows.

    `last_packed`: the plan that an earlier round packed, taken again where it was made from the same; `cache`: values
    of the round before. No decision depends on either.
    """
    reused = cache or RoundCache()
    reused.next_round()
    cordons = pool_cordons(snapshot, now)
    nodes = available_nodes(snapshot, cordons, now)
    specs = accepted_specs(snapshot, nodes, now, reused)
    followed = policies(specs.accepted.valid, now)
    allocated = allocations(followed, snapshot.decisions, snapshot.scaling_statuses(specs.accepted.valid))
    members = _members(snapshot, specs, followed, allocated, now, reused)
    facts = {
        key: pool_facts(here, members[key], snapshot.pool(key).loaded_versions, reused.sort("groups"))
        for key, here in specs.pools.items()
    }
    facts, progress = with_progress(snapshot, facts, now)
    packed = pack_by_priority(list(facts.values()), snapshot.others, last_packed)
    provisioned = provision_fleet(packed, facts, _most_placeholders(specs)) if snapshot.placeholders else {}
    ranked = _with_overlap(with_waits(packed, provisioned), snapshot, facts, members, reused.sort("overlap"))

    def migration(plan: PoolPlan) -> PoolMigration:
        key = plan.pool
        return _migration(snapshot.pool(key), plan, facts[key], members[key], nodes, now, drain_period, reused)

    migrations = {plan.pool: migration(plan) for plan in ranked.plan.pools}
    consolidated = consolidations(snapshot, facts, packed, migrations, progress, now)
    if consolidated.ranked is not None:
        begins = with_waits(consolidated.ranked, provisioned)
        ranked = _with_overlap(begins, snapshot, facts, members, reused.sort("overlap"))
        begun = (plan for plan in ranked.plan.pools if plan.pool in consolidated.begun)
        migrations |= {plan.pool: migration(plan) for plan in begun}
    return DecidedRound(
        snapshot=snapshot,
        now=now,
        accepted=specs.accepted,
        ranked=ranked,
        packed=packed,
        migrations=migrations,
        engines=specs.engines,
        builds=schedule_builds(specs.engines, _reserved(snapshot, ranked.plan)),
        cordons=cordons,
        policies=followed,
        allocations=allocated,
        choices={key: _choices(migration, snapshot) for key, migration in migrations.items()},
        consolidations=consolidated.pools,
        rollouts=specs.rollouts.with_strategies(rollout_strategies(snapshot, migrations, ranked)),
        placeholders={key: of_pool.placeholders for key, of_pool in provisioned.items()},
        remedies=find_remedies(list(facts.values()), ranked.plan, OF_A_ROUND, others=snapshot.others),
    )


def _with_overlap(
    ranked: RankedPlan,
    snapshot: FleetSnapshot,
    facts: Mapping[PoolKey, PoolFacts],
    members: Mapping[PoolKey, Members],
    reused: Reused,
) -> RankedPlan:
    """Return the plan with the instances by which steps of ensembles overlap."""

    def of_pool(plan: PoolPlan) -> PoolPlan:
        if not members[plan.pool].ensembles:
            return plan
        running = snapshot.pool(plan.pool).repositories
        return with_overlap(plan, facts[plan.pool], members[plan.pool], running, reused)

    return replace(ranked, plan=FleetPlan(tuple(map(of_pool, ranked.plan.pools))))


def _most_placeholders(specs: AcceptedSpecs) -> dict[PoolKey, int]:
    """Return how many placeholders each valid pool may have."""
    return {key: here.pool.spec.node_autoscaling.max_placeholders for key, here in specs.pools.items()}


def _members(
    snapshot: FleetSnapshot,
    specs: AcceptedSpecs,
    followed: Mapping[str, Policy],
    allocated: Mapping[str, Allocation],
    now: datetime,
    cache: RoundCache,
) -> dict[PoolKey, Members]:
    """Return what each valid pool is to serve, with the amounts that scaling decided."""
    accepted, by_pool = specs.accepted, dict[PoolKey, list[Resource]]()
    for resource in accepted.valid:
        if not isinstance(resource, ServingPool):
            by_pool.setdefault(resource.pool_key, []).append(resource)
    broken = (*accepted.out, *snapshot.faulty)
    members = {
        key: Members.of(
            key,
            variants.serving(
                scaled_resources(of_pool.effective(by_pool.get(key, ())), followed, allocated, cache.sort("scaled")),
                of_pool.served.waiting,
            ),
            broken,
            snapshot.pool(key).moved,
            {**snapshot.shapes, **of_pool.shapes},
            of_pool.served,
            {name: not policy.bounds.fixed_by for name, policy in followed.items()},
            specs.rollouts.members,
        )
        for key, of_pool in specs.engines.items()
    }
    return {
        key: replace(
            of_pool,
            sizes=document_sizes(of_pool),
            measured=_measured(snapshot, specs.pools[key], of_pool, now),
        )
        for key, of_pool in members.items()
    }


def _measured(snapshot: FleetSnapshot, pool: PoolNodes, members: Members, now: datetime) -> dict[str, MeasuredMemory]:
    """Return what counts of what a pool's models were measured to use: in this process, or else by their statuses."""
    last = {model.identity: last_measured(snapshot, model) for model in members.models.values()}
    footprints = {name: footprint for name, footprint in last.items() if footprint is not None}
    return measured_memory(members.models.values(), footprints, pool.selected, pool.pool.spec.memory_headroom, now)


def _migration(
    pool: PoolSnapshot,
    plan: PoolPlan,
    facts: PoolFacts,
    members: Members,
    nodes: tuple[Node, ...],
    now: datetime,
    drain_period: timedelta,
    cache: RoundCache,
) -> PoolMigration:
    """Return the next step of one pool's servers towards their plan."""
    keys = RenderedKeys(members.served_names, facts.runtime)
    loaded = revisions_by_server(pool.repositories, cache.sort("loaded"))
    served = revisions_by_server(pool.served, cache.sort("served"))
    observed = Observed.of(pool.reports, loaded, served, pool.drain_since)
    return PoolMigration.of(plan, facts, members, observed, nodes, keys, now, drain_period, cache)


def _choices(migration: PoolMigration, snapshot: FleetSnapshot) -> dict[str, VariantChoice]:
    """Return the servers that requests go to for models whose variants have servers of their own, by name."""
    routed = (member for member in migration.state.members.ensembles.values() if member.identity in snapshot.regimes)
    desired = {model.name: variant_name(model.name, snapshot.regimes[model.identity].variant) for model in routed}
    return variant_choices(migration.state, desired)


def _reserved(snapshot: FleetSnapshot, plan: FleetPlan) -> set[Device]:
    """Return the GPUs that no build gets: servers have them or are to have them, or other pools claim them."""
    planned = (server.current for pool in plan.pools for server in pool.servers)
    return devices([*planned, *snapshot.servers]) | snapshot.others.claims.keys()
