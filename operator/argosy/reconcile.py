"""Reconciles resources, nodes and servers' reports: the one function that every shell calls. Pure.

It is called whenever an input changes, and each outcome is one step: a new version is loaded next to the old one, then
the ensembles change to it, then the old one is unloaded. It has two parts: `decide`, which runs for pools that share
nodes one after another, and `conclude`, which only needs the decisions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from argosy.api import Ensemble, InferenceModel, Member
from argosy.api.documents import Resource
from argosy.api.model.variantspecs import variant_name
from argosy.api.problems import Problem
from argosy.api.servingpool import RuntimeName, ServingPool
from argosy.api.status import EnsembleStatus, InferenceModelStatus, ServingPoolStatus, Status
from argosy.api.values.identity import PoolKey
from argosy.autoscaling.decision import Allocation
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.pool.allocations import allocations, scaled_resources
from argosy.autoscaling.pool.grants import Grant, grants, unmet
from argosy.autoscaling.pool.policies import may_be_queued, policies
from argosy.planning import variants
from argosy.planning.builds.build import ScheduledBuild
from argosy.planning.builds.engines import EngineFacts
from argosy.planning.builds.pool import PoolEngines, defer_unbuilt, pool_engines
from argosy.planning.builds.scheduling import schedule_builds, withhold
from argosy.planning.demand.members import Members
from argosy.planning.demand.pool_facts import pool_facts
from argosy.planning.facts import CurrentServer, Device, Node, PoolFacts
from argosy.planning.migration.choices import VariantChoice, variant_choices
from argosy.planning.migration.observed import Observed
from argosy.planning.migration.pool_migration import DRAIN_PERIOD, PoolMigration
from argosy.planning.migration.revisions import revisions_by_server
from argosy.planning.migration.strategies import chosen_strategies
from argosy.planning.nodes.cordons import Cordons, cordons, with_cordons
from argosy.planning.nodes.pool_nodes import PoolNodes
from argosy.planning.nodes.reservations import devices
from argosy.planning.nodes.selection import next_readiness_change, with_readiness
from argosy.planning.packing.priorities import RankedPlan, pack_by_priority, replicas_of
from argosy.planning.plan import FleetPlan, PoolPlan
from argosy.planning.rollouts.facts import LoadedRevisions
from argosy.planning.rollouts.member import takes_part
from argosy.planning.rollouts.memory import RolloutMemory
from argosy.planning.rollouts.revision import revision_of
from argosy.planning.rollouts.rounds.advance import advance_rollouts
from argosy.planning.rollouts.rounds.rollouts import Rollouts
from argosy.planning.rollouts.strategy import ChosenStrategy
from argosy.planning.rollouts.unraised import unraised_versions
from argosy.planning.validation.accept import Accepted, accept
from argosy.planning.validation.graph import Invalid
from argosy.planning.validation.releases import release_in
from argosy.render.config.configrules import check_together
from argosy.render.keys import RenderedKeys
from argosy.render.repositories import RenderedServer, rendered_servers
from argosy.render.sizes import document_sizes
from argosy.rollout.statuses import from_status
from argosy.round import DecidedRound
from argosy.snapshot import FleetSnapshot, PoolSnapshot
from argosy.status.statuses import statuses


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a round: the placement plan, the next step of each pool's servers, every resource's status.

    `facts`: the inputs of the plan. `valid`: each resource with the spec that is acted upon, by identity. `builds`: the
    requests of each pool's models. By identity: `allocations`, the requested allocation of each member that scales,
    and `grants`, the replicas that the plan placed with the spare capacity. `wake`: when to reconcile again without
    any event. `cordons`: those of each pool, with the device errors that count towards further ones. `choices`: of each
    pool, the servers that requests go to for models whose variants have servers of their own, by name. `rollouts`: of
    members whose new versions are released in steps; their specs in `valid` are the declared ones.
    """

    plan: FleetPlan
    facts: tuple[PoolFacts, ...]
    steps: Mapping[PoolKey, tuple[RenderedServer, ...]]
    statuses: Mapping[str, Status]
    problems: tuple[Problem, ...] = ()
    valid: Mapping[str, Resource] = field(default_factory=dict)
    wake: datetime | None = None
    builds: Mapping[PoolKey, tuple[ScheduledBuild, ...]] = field(default_factory=dict)
    grants: Mapping[str, Grant] = field(default_factory=dict)
    allocations: Mapping[str, Allocation] = field(default_factory=dict)
    cordons: Mapping[PoolKey, Cordons] = field(default_factory=dict)
    choices: Mapping[PoolKey, Mapping[str, VariantChoice]] = field(default_factory=dict)
    rollouts: Rollouts = field(default_factory=Rollouts)

    def servers(self, pool: PoolKey) -> tuple[CurrentServer, ...]:
        """Return the servers there should be in a pool, draining ones included."""
        return tuple(step.plan.current for step in self.steps.get(pool, ()))

    def after(self, snapshot: FleetSnapshot) -> FleetSnapshot:
        """Return the snapshot with the decisions of this round. Servers' reports must be observed again."""
        pools = {
            key: replace(
                snapshot.pool(key),
                servers=self.servers(key),
                drain_since={(step.plan.name, name): at for step in steps for name, at in step.drain_since.items()},
                device_errors=self.cordons[key].errors,
            )
            for key, steps in self.steps.items()
        }
        declared = {resource.identity for resource in (*snapshot.resources, *snapshot.faulty)}
        former = {name: memory for name, memory in snapshot.rollouts.items() if name in declared}
        rollouts = {**former, **self.rollouts.memory}
        return replace(snapshot, pools=pools, statuses=self.statuses, valid=self.valid, rollouts=rollouts)


def reconcile(snapshot: FleetSnapshot, now: datetime, drain_period: timedelta = DRAIN_PERIOD) -> Outcome:
    """Return the outcome of one round. `now` has a time zone.

    Problems between resources are found here, and take a resource out of the plan.
    """
    return conclude(decide(snapshot, now, drain_period))


def decide(snapshot: FleetSnapshot, now: datetime, drain_period: timedelta = DRAIN_PERIOD) -> DecidedRound:
    """Return the decisions of a round. `now` has a time zone."""
    cordoned = _cordons(snapshot, now)
    nodes = _available_nodes(snapshot, cordoned, now)
    invalid = Invalid({problem.resource for problem in snapshot.problems}, is_error=True)
    before = _before(snapshot)

    def check(resources: Sequence[Resource]) -> list[Problem]:
        return [*check_together(resources, invalid=invalid), *unraised_versions(resources, before)]

    declared = _expanded(accept(snapshot.resources, snapshot.problems, snapshot.valid, check), snapshot)
    pools = _pool_nodes(snapshot, declared, nodes)
    engine_facts = _engine_facts(snapshot, declared, pools)
    last: dict[str, Resource] = {resource.identity: resource for resource in variants.expanded(snapshot.valid.values())}
    built = defer_unbuilt(declared, last, engine_facts, check)
    loaded = {key: LoadedRevisions.of(pool.reports, pool.repositories) for key, pool in snapshot.pools.items()}
    rollouts = advance_rollouts(built, before, snapshot.evidence, loaded, now)
    accepted = rollouts.acted_upon(built, last, check)
    pools = pools if accepted is declared else _pool_nodes(snapshot, accepted, nodes)
    engines = pool_engines(declared, accepted, engine_facts)
    followed = policies(accepted.valid, now)
    allocated = allocations(followed, snapshot.decisions, snapshot.scaling_statuses(accepted.valid))
    members = _members(snapshot, accepted, engines, followed, allocated, rollouts)
    facts = {key: pool_facts(here, members[key], snapshot.pool(key).loaded_versions) for key, here in pools.items()}
    ranked = pack_by_priority(list(facts.values()), snapshot.claimed)
    migrations = {
        plan.pool: _migration(
            snapshot.pool(plan.pool), plan, facts[plan.pool], members[plan.pool], nodes, now, drain_period
        )
        for plan in ranked.plan.pools
    }
    rollouts = rollouts.with_strategies(_strategies(snapshot, migrations, ranked))
    return DecidedRound(
        snapshot=snapshot,
        now=now,
        accepted=accepted,
        ranked=ranked,
        migrations=migrations,
        engines=engines,
        builds=schedule_builds(engines, _reserved(snapshot, ranked.plan)),
        cordons=cordoned,
        policies=followed,
        allocations=allocated,
        choices={key: _choices(migration, snapshot) for key, migration in migrations.items()},
        rollouts=rollouts,
    )


def conclude(decided: DecidedRound) -> Outcome:
    """Return all that follows from a round's decision: statuses, models' configurations, and the spare capacity."""
    snapshot, migrations = decided.snapshot, decided.migrations
    runtimes = {facts.pool: facts.runtime for facts in decided.ranked.facts}
    wakes = (
        next_readiness_change(snapshot.nodes, decided.now),
        decided.rollouts.wake,
        *(migration.wake for migration in migrations.values()),
    )
    return Outcome(
        plan=decided.plan,
        facts=decided.ranked.facts,
        statuses=statuses(decided),
        steps={
            key: rendered_servers(
                migration.steps,
                migration.state.members,
                (*snapshot.pool(key).served, *snapshot.pool(key).repositories),
                runtimes[key],
            )
            for key, migration in migrations.items()
        },
        problems=decided.accepted.problems,
        valid={
            resource.identity: resource
            for resource in variants.declared(decided.rollouts.declared(decided.accepted.valid))
        },
        wake=min((wake for wake in wakes if wake is not None), default=None),
        builds=decided.builds,
        grants=grants(decided.ranked, _larger(decided), decided.members),
        allocations=decided.allocations,
        cordons=decided.cordons,
        choices=decided.choices,
        rollouts=decided.rollouts,
    )


def _strategies(
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
    larger = pack_by_priority(ranked.with_more({(pool, group.name): 0}), snapshot.claimed)
    return replicas_of(larger.plan, pool, group.name) > replicas_of(ranked.plan, pool, group.name)


def _choices(migration: PoolMigration, snapshot: FleetSnapshot) -> dict[str, VariantChoice]:
    """Return the servers that requests go to for models whose variants have servers of their own, by name."""
    routed = (member for member in migration.state.members.ensembles.values() if member.identity in snapshot.regimes)
    desired = {model.name: variant_name(model.name, snapshot.regimes[model.identity].variant) for model in routed}
    return variant_choices(migration.state, desired)


def _expanded(accepted: Accepted, snapshot: FleetSnapshot) -> Accepted:
    """Return what is accepted, each model with variants as planning sees it."""
    return replace(
        accepted,
        valid=variants.expanded(accepted.valid, snapshot.statuses),
        out=variants.expanded(accepted.out, snapshot.statuses),
    )


def _cordons(snapshot: FleetSnapshot, now: datetime) -> dict[PoolKey, Cordons]:
    """Return the cordons of each pool, from what its servers report and from its status."""
    cordons_of: dict[PoolKey, Cordons] = {}
    for pool in snapshot.resources:
        if isinstance(pool, ServingPool):
            observed, status = snapshot.pool(pool.key), snapshot.status(pool)
            errors = observed.device_errors.after(observed.servers, observed.reports, now)
            before = status if isinstance(status, ServingPoolStatus) else None
            cordons_of[pool.key] = cordons(pool, before, errors, snapshot.nodes, now)
    return cordons_of


def _available_nodes(snapshot: FleetSnapshot, cordoned: Mapping[PoolKey, Cordons], now: datetime) -> tuple[Node, ...]:
    """Return the nodes as they count now: GPUs of running builds and cordoned GPUs are withheld."""
    builds = [build for pool in snapshot.pools.values() for build in pool.builds.values()]
    gone = {(gpu.node, gpu.gpu) for of_pool in cordoned.values() for gpu in of_pool.gpus} | snapshot.cordoned
    return with_cordons(withhold(with_readiness(snapshot.nodes, now), builds, snapshot.servers), gone)


def _pool_nodes(snapshot: FleetSnapshot, accepted: Accepted, nodes: tuple[Node, ...]) -> dict[PoolKey, PoolNodes]:
    """Return the nodes and servers of each valid pool."""
    return {
        pool.key: PoolNodes.of(pool, nodes, snapshot.pool(pool.key).servers, snapshot.pool(pool.key).answering)
        for pool in accepted.valid
        if isinstance(pool, ServingPool)
    }


def _before(snapshot: FleetSnapshot) -> dict[str, RolloutMemory]:
    """Return what is known of each rollout, by identity: of this process, or else of its status and its last valid
    spec.
    """
    return {member.identity: _memory(member, snapshot) for member in snapshot.resources if takes_part(member)}


def _memory(member: Member, snapshot: FleetSnapshot) -> RolloutMemory:
    memory = snapshot.rollouts.get(member.identity, RolloutMemory())
    if memory.state is not None:
        return memory
    status, last = snapshot.status(member), snapshot.valid.get(member.identity)
    written = status.rollout if isinstance(status, InferenceModelStatus | EnsembleStatus) else None
    if written is not None:
        chosen = ChosenStrategy.restored(written.strategy, written.strategy_message)
        return replace(memory, state=from_status(written), chosen=chosen)
    if not isinstance(last, Member) or last.metadata.uid != member.metadata.uid:
        return memory
    revision = revision_of(last)
    return RolloutMemory(revisions={**memory.revisions, revision.name: last}, last=revision)


def _engine_facts(
    snapshot: FleetSnapshot, accepted: Accepted, pools: Mapping[PoolKey, PoolNodes]
) -> dict[PoolKey, EngineFacts]:
    """Return the inputs of the decisions on each pool's engines."""
    entries = snapshot.engine_statuses(accepted.valid)
    return {
        key: EngineFacts(
            nodes, snapshot.pool(key).builds, entries, snapshot.build_images, _engine_release(nodes.pool, snapshot)
        )
        for key, nodes in pools.items()
    }


def _engine_release(pool: ServingPool, snapshot: FleetSnapshot) -> str:
    """Return the release of TensorRT-LLM in a pool's server. The bundled server's image builds engines, too."""
    runtime = pool.spec.runtime
    if runtime.name is not RuntimeName.TRITON:
        return ""
    return release_in(runtime.image or snapshot.engine_image)


def _members(
    snapshot: FleetSnapshot,
    accepted: Accepted,
    engines: Mapping[PoolKey, PoolEngines],
    followed: Mapping[str, Policy],
    allocated: Mapping[str, Allocation],
    rollouts: Rollouts,
) -> dict[PoolKey, Members]:
    """Return what each valid pool is to serve, with the amounts that scaling decided."""
    broken = (*accepted.out, *snapshot.faulty)
    members = {
        key: Members.of(
            key,
            variants.serving(
                scaled_resources(of_pool.effective(accepted.valid), followed, allocated), of_pool.served.waiting
            ),
            broken,
            snapshot.pool(key).moved,
            {**snapshot.shapes, **of_pool.shapes},
            of_pool.served,
            followed,
            rollouts.members,
        )
        for key, of_pool in engines.items()
    }
    return {key: replace(of_pool, sizes=document_sizes(of_pool)) for key, of_pool in members.items()}


def _migration(
    pool: PoolSnapshot,
    plan: PoolPlan,
    facts: PoolFacts,
    members: Members,
    nodes: tuple[Node, ...],
    now: datetime,
    drain_period: timedelta,
) -> PoolMigration:
    """Return the next step of one pool's servers towards their plan."""
    keys = RenderedKeys(members.served_names, facts.runtime)
    loaded, served = revisions_by_server(pool.repositories), revisions_by_server(pool.served)
    observed = Observed.of(pool.reports, loaded, served, pool.drain_since)
    return PoolMigration.of(plan, facts, members, observed, nodes, keys, now, drain_period)


def _reserved(snapshot: FleetSnapshot, plan: FleetPlan) -> set[Device]:
    """Return the GPUs that no build gets: servers have them or are to have them, or other pools claim them."""
    planned = (server.current for pool in plan.pools for server in pool.servers)
    return devices([*planned, *snapshot.servers]) | snapshot.claimed


def _larger(decided: DecidedRound) -> RankedPlan | None:
    """Return the plan with more replicas of the groups that lacked GPUs; None if there are none."""
    snapshot, ranked = decided.snapshot, decided.ranked
    replicas = unmet(ranked, snapshot.decisions, decided.members, decided.policies)
    return pack_by_priority(ranked.with_more(replicas), snapshot.claimed) if replicas else None
