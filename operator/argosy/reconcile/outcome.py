"""The outcome of a round: all that follows from its decisions."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from argosy.api.documents import Resource
from argosy.api.problems import Problem
from argosy.api.status import Status
from argosy.api.values.identity import PoolKey
from argosy.api.values.reuse import RoundCache
from argosy.autoscaling.decision import Allocation
from argosy.autoscaling.pool.grants import Grant, grants, unmet
from argosy.planning import variants
from argosy.planning.builds.build import ScheduledBuild
from argosy.planning.facts import CurrentServer, PoolFacts
from argosy.planning.migration.choices import VariantChoice
from argosy.planning.nodes.cordons import Cordons
from argosy.planning.nodes.selection import next_readiness_change
from argosy.planning.packing.priorities import RankedPlan, pack_by_priority
from argosy.planning.plan import FleetPlan
from argosy.planning.provisioning.placeholders import Placeholder
from argosy.planning.rollouts.rounds.rollouts import Rollouts
from argosy.render.repositories import RenderedServer, rendered_servers
from argosy.round import DecidedRound
from argosy.snapshot import FleetSnapshot
from argosy.status.statuses import statuses


@dataclass(frozen=True, slots=True)
class RoundOutcome:
    """The result of a round: the placement plan, the next step of each pool's servers, every resource's status.

    `facts`: the inputs of the plan. `valid`: each resource with the spec that is acted upon, by identity. `builds`: the
    requests of each pool's models. By identity: `allocations`, the requested allocation of each member that scales,
    and `grants`, the replicas of these that the plan placed with the spare capacity. `wake`: when to reconcile again
    without any event. `cordons`: those of each pool, with the device errors that count towards further ones. `choices`:
    of each pool, the servers that requests go to for models whose variants have servers of their own, by name.
    `rollouts`: of members whose new versions are released in steps; their specs in `valid` are the declared ones.
    `placeholders`: of each pool, the Pods that ask node autoscalers for nodes.
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
    placeholders: Mapping[PoolKey, tuple[Placeholder, ...]] = field(default_factory=dict)

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


def conclude(decided: DecidedRound, cache: RoundCache | None = None) -> RoundOutcome:
    """Return all that follows from a round's decision: statuses, models' configurations, and the spare capacity.

    `cache`: that of the decision.
    """
    snapshot, migrations = decided.snapshot, decided.migrations
    runtimes = {facts.pool: facts.runtime for facts in decided.ranked.facts}
    wakes = (
        next_readiness_change(snapshot.nodes, decided.now),
        decided.rollouts.wake,
        *(migration.wake for migration in migrations.values()),
        *(one.wake for one in decided.consolidations.values()),
    )
    return RoundOutcome(
        plan=decided.plan,
        facts=decided.ranked.facts,
        statuses=statuses(decided, cache),
        steps={
            key: rendered_servers(
                migration.steps,
                migration.state.members,
                (*snapshot.pool(key).served, *snapshot.pool(key).repositories),
                runtimes[key],
                cache.sort("rendered") if cache is not None else None,
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
        grants=grants(decided.ranked, _larger(decided), decided.members, decided.policies),
        allocations=decided.allocations,
        cordons=decided.cordons,
        choices=decided.choices,
        rollouts=decided.rollouts,
        placeholders=decided.placeholders,
    )


def _larger(decided: DecidedRound) -> RankedPlan | None:
    """Return the plan with more replicas of the groups that lacked GPUs; None if there are none."""
    snapshot, ranked = decided.snapshot, decided.ranked
    replicas = unmet(ranked, snapshot.decisions, decided.members, decided.policies)
    return pack_by_priority(ranked.with_more(replicas), snapshot.others) if replicas else None
