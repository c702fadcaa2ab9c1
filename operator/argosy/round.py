"""What one round decides on a snapshot: all that statuses, rendering and scaling follow from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from argosy.api.documents import Resource
from argosy.api.servingpool import ServingPool
from argosy.api.values.identity import PoolKey
from argosy.autoscaling.decision import Allocation
from argosy.autoscaling.policy import Policy
from argosy.planning.builds.build import ScheduledBuild
from argosy.planning.builds.pool import PoolEngines
from argosy.planning.consolidation.pool_round import PoolConsolidation
from argosy.planning.demand.members import Members
from argosy.planning.explanation.remedies.find import Remedies
from argosy.planning.facts import CurrentServer
from argosy.planning.migration.choices import VariantChoice
from argosy.planning.migration.pool_migration import PoolMigration
from argosy.planning.nodes.cordons import Cordons
from argosy.planning.packing.priorities import RankedPlan
from argosy.planning.plan import FleetPlan
from argosy.planning.provisioning.placeholders import Placeholder
from argosy.planning.rollouts.rounds.rollouts import Rollouts
from argosy.planning.validation.accept import Accepted
from argosy.snapshot import FleetSnapshot


@dataclass(frozen=True, slots=True)
class DecidedRound:
    """The decisions of a round, which are all that other pools' rounds depend on.

    By the pool's key: `migrations` with the next step of each server, `engines` of its models, `builds` that they
    request, `cordons` of its GPUs, `choices` among variants that have servers of their own, `consolidations` of what
    may be repacked, `placeholders` for nodes that it lacks. By pool and group: `remedies` of what has no place. By a
    member's identity: `policies` and `allocations` of what scales, and `rollouts` of what is released in steps.
    `packed`: the plan before waits, overlapping instances and consolidation changed it, for the next round.
    """

    snapshot: FleetSnapshot
    now: datetime
    accepted: Accepted
    ranked: RankedPlan
    migrations: Mapping[PoolKey, PoolMigration]
    engines: Mapping[PoolKey, PoolEngines] = field(default_factory=dict)
    builds: Mapping[PoolKey, tuple[ScheduledBuild, ...]] = field(default_factory=dict)
    cordons: Mapping[PoolKey, Cordons] = field(default_factory=dict)
    policies: Mapping[str, Policy] = field(default_factory=dict)
    allocations: Mapping[str, Allocation] = field(default_factory=dict)
    choices: Mapping[PoolKey, Mapping[str, VariantChoice]] = field(default_factory=dict)
    consolidations: Mapping[PoolKey, PoolConsolidation] = field(default_factory=dict)
    rollouts: Rollouts = field(default_factory=Rollouts)
    placeholders: Mapping[PoolKey, tuple[Placeholder, ...]] = field(default_factory=dict)
    remedies: Remedies = field(default_factory=dict)
    packed: RankedPlan | None = None

    @property
    def plan(self) -> FleetPlan:
        """The placement plan of every pool."""
        return self.ranked.plan

    @property
    def members(self) -> dict[PoolKey, Members]:
        """The models and ensembles of each pool that takes part."""
        return {key: migration.state.members for key, migration in self.migrations.items()}

    @property
    def resources(self) -> tuple[Resource, ...]:
        """All resources that get a status, each with the spec that is acted upon."""
        acted = {resource.identity: resource for resource in self.accepted.valid}
        every = (*self.snapshot.resources, *self.snapshot.faulty)
        return tuple({resource.identity: acted.get(resource.identity, resource) for resource in every}.values())

    def is_undecided(self, pool: ServingPool) -> bool:
        """Return whether a pool has no valid spec and servers that go on as they are."""
        unreadable = any(resource.identity == pool.identity for resource in self.snapshot.faulty)
        return unreadable and bool(self.snapshot.pool(pool.key).servers)

    def servers(self, pool: PoolKey) -> tuple[CurrentServer, ...]:
        """Return the servers there should be in a pool, draining ones included."""
        migration = self.migrations.get(pool)
        return tuple(step.plan.current for step in migration.steps) if migration is not None else ()
