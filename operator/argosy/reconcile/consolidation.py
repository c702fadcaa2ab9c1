"""Consolidation in a round: moves that failed are taken back before packing, and those that begin change the plan."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from argosy.api import Resource, ServingPool
from argosy.api.consolidationstatus import ConsolidationStatus
from argosy.api.pool.packing import Consolidate
from argosy.api.status import ServingPoolStatus
from argosy.api.values.identity import PoolKey
from argosy.api.values.times import parse_time
from argosy.planning.consolidation.moves import Move, Step, applied
from argosy.planning.consolidation.pool_round import PoolConsolidation, PoolRound
from argosy.planning.consolidation.progress import Progress, progress_of, taken_back
from argosy.planning.consolidation.rest import fixed_groups, unrest
from argosy.planning.consolidation.search import StepLimits, find_steps
from argosy.planning.demand.members import Members
from argosy.planning.facts import PoolFacts
from argosy.planning.migration.observed import Observed
from argosy.planning.migration.pool_migration import PoolMigration
from argosy.planning.migration.revisions import revisions_by_server
from argosy.planning.nodes.reservations import reserved
from argosy.planning.packing.priorities import RankedPlan, pack_by_priority
from argosy.planning.plan import FleetPlan
from argosy.planning.rollouts.revision import revision_of
from argosy.snapshot import FleetSnapshot

Facts = Mapping[PoolKey, PoolFacts]


@dataclass(frozen=True, slots=True)
class Consolidations:
    """The consolidation of each pool that takes part. `ranked`: the plan with the moves that begin now, None where none
    does.
    """

    pools: Mapping[PoolKey, PoolConsolidation] = field(default_factory=dict)
    ranked: RankedPlan | None = None

    @property
    def begun(self) -> frozenset[PoolKey]:
        """The pools in which moves begin."""
        return frozenset(key for key, pool in self.pools.items() if pool.begins)


def with_progress(
    snapshot: FleetSnapshot, facts: Facts, now: datetime
) -> tuple[dict[PoolKey, PoolFacts], dict[PoolKey, Progress]]:
    """Return the facts in which moves that failed are taken back, and the progress of each pool's moves."""
    after, progress = dict(facts), dict[PoolKey, Progress]()
    for key, status in _statuses(snapshot).items():
        since = parse_time(status.moving_since)
        if key in facts and status.moving and since is not None:
            pool = snapshot.pool(key)
            observed = Observed.of(pool.reports, revisions_by_server(pool.repositories))
            progress[key] = progress_of(status.moving, since, facts[key], observed, now)
            after[key] = taken_back(facts[key], progress[key].back, observed)
    return after, progress


def consolidations(
    snapshot: FleetSnapshot,
    facts: Facts,
    ranked: RankedPlan,
    migrations: Mapping[PoolKey, PoolMigration],
    progress: Mapping[PoolKey, Progress],
    now: datetime,
) -> Consolidations:
    """Return the decision on each pool, in the order of their keys. Moves begin in one pool alone: the plan of others
    may depend on it.
    """
    planner = _Planner(snapshot, facts, ranked, migrations)
    statuses, decided = _statuses(snapshot), dict[PoolKey, PoolConsolidation]()
    changed = None
    for pool in sorted((one for one in snapshot.resources if isinstance(one, ServingPool)), key=lambda one: one.key):
        key = pool.key
        if key not in migrations or (key not in statuses and not takes_part(pool, facts[key])):
            continue
        busy = "another pool begins" if changed is not None else ""
        before, of_pool = statuses.get(key, ConsolidationStatus()), progress.get(key, Progress())
        one = planner.round_of(pool, before, of_pool, busy, now)
        decision = one.decide(partial(planner.steps, key))
        if one.takes_part or decision.status != ConsolidationStatus():
            decided[key] = decision
        if decision.begins:
            changed = planner.simulated(key, decision.begins)
    return Consolidations(decided, changed)


def recommended(
    resources: Iterable[Resource], facts: Iterable[PoolFacts], plan: FleetPlan
) -> dict[PoolKey, tuple[Step, ...]]:
    """Return what would be moved once a plan is carried out, of the pools in which something would come free.

    It is not confirmed by planning with it, and rollouts under way are not known here.
    """
    current = {one.pool: one.current for one in plan.pools}
    after = {one.pool: replace(one, current=current[one.pool]) for one in facts}
    steps: dict[PoolKey, tuple[Step, ...]] = {}
    for pool in (one for one in resources if isinstance(one, ServingPool) and one.key in after):
        budget = pool.spec.packing.consolidation_budget
        if takes_part(pool, after[pool.key]):
            steps[pool.key] = find_steps(
                _reserved(after, pool.key), (), StepLimits(budget.bytes_per_hour, budget.moves_per_hour)
            )
    return {key: of_pool for key, of_pool in steps.items() if of_pool}


def _reserved(facts: Facts, key: PoolKey) -> PoolFacts:
    """Return the facts of a pool, on whose nodes the GPUs of other pools' servers are withheld."""
    others = {other: facts[other].current for other in facts if other != key}
    return replace(facts[key], nodes=reserved(facts[key].nodes, facts[key].current, others))


def takes_part(pool: ServingPool, facts: PoolFacts) -> bool:
    """Return whether something can be consolidated in a pool: it has several servers with GPUs."""
    is_on = pool.spec.packing.consolidate is not Consolidate.OFF and not facts.suspended
    return is_on and sum(bool(server.gpus) for server in facts.current) > 1


@dataclass(frozen=True, slots=True)
class _Planner:
    snapshot: FleetSnapshot
    facts: Facts
    ranked: RankedPlan
    migrations: Mapping[PoolKey, PoolMigration]

    def round_of(
        self, pool: ServingPool, before: ConsolidationStatus, progress: Progress, busy: str, now: datetime
    ) -> PoolRound:
        """Return the inputs of a pool's round. `busy`: why nothing may begin in it, whatever it does."""
        key, written = pool.key, self.snapshot.status(pool)
        facts, migration = self.facts[key], self.migrations[key]
        able = takes_part(pool, facts)
        if able and not busy:
            busy = unrest(facts, migration, self.short(key))
        is_changed = written is not None and written.observed_generation != pool.metadata.generation
        revisions = _revisions(before, facts, migration.state.members)
        return PoolRound(pool.spec.packing, before, progress, busy, is_changed, now, able, revisions)

    def short(self, key: PoolKey) -> set[str]:
        """Return the groups of a pool that lack optional replicas."""
        return {group for pool, group in self.ranked.shortfalls if pool == key}

    def steps(self, key: PoolKey, limits: StepLimits) -> tuple[Step, ...]:
        """Return the steps of a pool that the planner confirms: all of them, or the first alone."""
        fixed = fixed_groups(self.facts[key], self.migrations[key].state.members)
        steps = find_steps(_reserved(self.facts, key), fixed, limits)
        if not steps or self.simulated(key, steps[0].moves) is None:
            return ()
        every = [move for step in steps for move in step.moves]
        return steps if len(steps) == 1 or self.simulated(key, every) is not None else steps[:1]

    def simulated(self, key: PoolKey, moves: Sequence[Move]) -> RankedPlan | None:
        """Return the plan of all pools with these moves; None where the planner would have it otherwise."""
        moved = applied(self.facts[key], moves)
        ranked = pack_by_priority([*{**self.facts, key: moved}.values()], self.snapshot.others)
        expected = {server.name: dict(server.placed) for server in moved.current if server.placed}
        before = {plan.pool: plan for plan in self.ranked.plan.pools}
        for plan in ranked.plan.pools:
            if plan.pool != key and plan != before[plan.pool]:
                return None
            placed = {server.name: dict(server.current.placed) for server in plan.servers if server.placements}
            if plan.pool == key and (plan.unplaced or placed != expected or plan.gpus_used > before[key].gpus_used):
                return None
        return ranked


def _revisions(status: ConsolidationStatus, facts: PoolFacts, members: Members) -> dict[str, str]:
    """Return the revisions of the models of each declared group that moves, or of which a move has failed."""
    names = {move.name for move in status.moving} | {one.name for one in status.failed}
    specs = members.models
    return {
        group.name: " ".join(revision_of(specs[one.model]).name for one in group.demands if one.model in specs)
        for group in facts.groups
        if group.name in names
    }


def _statuses(snapshot: FleetSnapshot) -> dict[PoolKey, ConsolidationStatus]:
    """Return what the pools' statuses say of their consolidation, by pool."""
    written = ((one.key, snapshot.status(one)) for one in snapshot.resources if isinstance(one, ServingPool))
    return {
        key: status.consolidation
        for key, status in written
        if isinstance(status, ServingPoolStatus) and status.consolidation is not None
    }
