"""Resources, nodes and what servers say become what there should be: the one function that every shell calls. Pure.

It is called again whenever anything changes, with what its last answer led to, and each answer is one step: a
new version beside the old one, then the ensembles over to it, then the old one gone. It has two halves: `decide`, which
pools that share nodes do one after another, and `conclude`, which needs nothing but what was decided.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from argosy.api.documents import Resource
from argosy.api.problems import Problem
from argosy.api.servingpool import RuntimeName, ServingPool
from argosy.api.status import EngineStatus, EnsembleStatus, InferenceModelStatus, ScalingStatus, ServingPoolStatus
from argosy.api.values.identity import PoolKey
from argosy.autoscaling.decision import Allocation
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.pool.forms import allocations, policies, scaled_forms
from argosy.autoscaling.pool.room import Grant, grants, hopes
from argosy.planning.builds.architectures import PoolNodes
from argosy.planning.builds.engines import EngineFacts
from argosy.planning.builds.forms import held_back, pool_engines
from argosy.planning.builds.plan import PlannedBuild
from argosy.planning.builds.pool import PoolEngines
from argosy.planning.builds.scheduling import plan_builds, withhold
from argosy.planning.demand.members import Members
from argosy.planning.demand.pool_facts import LoadedVersions, pool_facts
from argosy.planning.facts import CurrentServer, Device, Node, PoolFacts
from argosy.planning.migration.disruption import Disruption, limited
from argosy.planning.migration.migrate import DRAIN_PERIOD, migrate
from argosy.planning.migration.next_step import ServerStep, server_steps
from argosy.planning.migration.observed import Observed
from argosy.planning.migration.state import Migration, Places, PoolState
from argosy.planning.migration.versions import outdated_forms, target_forms
from argosy.planning.nodes.cordons import Cordons, cordons, with_cordons
from argosy.planning.nodes.readiness import next_change, standing
from argosy.planning.nodes.reservations import devices
from argosy.planning.nodes.selection import closed
from argosy.planning.packing.priorities import RankedPlan, pack_by_priority
from argosy.planning.plan import FleetPlan, PoolPlan
from argosy.planning.topology.deployment import Machine
from argosy.planning.validation.accept import Accepted, accept
from argosy.render.config.configrules import check_together
from argosy.render.forms import OF_ARGOSY, OF_TRITON, RenderedKeys, forms_by_server
from argosy.render.repositories import RenderedServer, rendered_servers
from argosy.render.sizes import document_sizes
from argosy.snapshot import FleetSnapshot, PoolSnapshot
from argosy.status.statuses import Situation, Status, statuses


@dataclass(frozen=True, slots=True)
class Outcome:
    """What there should be: the plan, the next step of each pool's servers, every resource's status.

    `facts` are what the plan was made from. `valid` is the form of each resource that is acted upon, by identity.
    `builds` are those that each pool's models ask for. By identity: `allocations` are what each model and ensemble that
    scales was to have, `grants` what the plan gave each, and the room that it leaves. `wake` is when to ask again
    though nothing changes. `cordons` are those of each pool, with the device errors that count towards further ones.
    """

    plan: FleetPlan
    facts: tuple[PoolFacts, ...]
    steps: Mapping[PoolKey, tuple[RenderedServer, ...]]
    statuses: Mapping[str, Status]
    problems: tuple[Problem, ...] = ()
    valid: Mapping[str, Resource] = field(default_factory=dict)
    wake: datetime | None = None
    builds: Mapping[PoolKey, tuple[PlannedBuild, ...]] = field(default_factory=dict)
    grants: Mapping[str, Grant] = field(default_factory=dict)
    allocations: Mapping[str, Allocation] = field(default_factory=dict)
    cordons: Mapping[PoolKey, Cordons] = field(default_factory=dict)

    def servers(self, pool: PoolKey) -> tuple[CurrentServer, ...]:
        """Return the servers there should be in a pool, those that drain too."""
        return tuple(step.plan.current for step in self.steps.get(pool, ()))

    def after(self, snapshot: FleetSnapshot) -> FleetSnapshot:
        """Return the snapshot with what was decided in it; what servers say and hold is to be observed again."""
        pools = {
            key: replace(
                snapshot.pool(key),
                servers=self.servers(key),
                drain_since={(step.plan.name, name): at for step in steps for name, at in step.drain_since.items()},
                device_errors=self.cordons[key].errors,
            )
            for key, steps in self.steps.items()
        }
        return replace(snapshot, pools=pools, statuses=self.statuses, valid=self.valid)


@dataclass(frozen=True, slots=True)
class DecidedRound:
    """What a round decides: the plan, the builds, and the next step of each pool's servers.

    That is all that other pools' rounds depend on. What is told of it follows later, from this value alone.
    `engines`, `members`, `states`, `migrations`, `disruptions`, `cordons` and `steps` are by the pool's key, `follows`
    and `allocated` by the resource's identity.
    """

    snapshot: FleetSnapshot
    now: datetime
    accepted: Accepted
    engines: Mapping[PoolKey, PoolEngines]
    follows: Mapping[str, Policy]
    allocated: Mapping[str, Allocation]
    members: Mapping[PoolKey, Members]
    ranked: RankedPlan
    states: Mapping[PoolKey, PoolState]
    migrations: Mapping[PoolKey, Migration]
    disruptions: Mapping[PoolKey, Disruption]
    cordons: Mapping[PoolKey, Cordons]
    steps: Mapping[PoolKey, tuple[ServerStep, ...]]
    builds: Mapping[PoolKey, tuple[PlannedBuild, ...]]

    @property
    def plan(self) -> FleetPlan:
        """The plan of every pool."""
        return self.ranked.plan

    def servers(self, pool: PoolKey) -> tuple[CurrentServer, ...]:
        """Return the servers there should be in a pool, those that drain too."""
        return tuple(step.plan.current for step in self.steps.get(pool, ()))


def reconcile(snapshot: FleetSnapshot, now: datetime, drain_period: timedelta = DRAIN_PERIOD) -> Outcome:
    """Return one step. `now` has a time zone.

    Problems between resources are found here, and take a resource out of the plan.
    """
    return conclude(decide(snapshot, now, drain_period))


def decide(snapshot: FleetSnapshot, now: datetime, drain_period: timedelta = DRAIN_PERIOD) -> DecidedRound:
    """Return what a round decides. `now` has a time zone."""
    cordoned = _cordons(snapshot, now)
    nodes = _nodes(snapshot, cordoned, now)
    check = partial(check_together, excluded={problem.resource for problem in snapshot.problems})
    declared = accept(snapshot.resources, snapshot.problems, snapshot.valid, check)
    engine_facts = _engine_facts(snapshot, declared, nodes)
    accepted = held_back(declared, snapshot.valid, engine_facts, check)
    engines = pool_engines(declared, accepted, engine_facts)
    follows = policies(accepted.valid, now)
    allocated = allocations(follows, snapshot.decisions, _recalled(snapshot, accepted))
    members = _members(snapshot, accepted, engines, follows, allocated)
    facts = _facts(snapshot, accepted, members, nodes)
    ranked = pack_by_priority(list(facts.values()), snapshot.claimed)
    states = _states(snapshot, ranked.plan, facts, members, nodes, follows)
    migrations = {
        key: Migration() if facts[key].suspended else migrate(state, snapshot.pool(key).drain_since, now, drain_period)
        for key, state in states.items()
    }
    disruptions = _disruptions(states, migrations, facts)  # what is held back, these migrations leave as it is
    return DecidedRound(
        snapshot=snapshot,
        now=now,
        accepted=accepted,
        engines=engines,
        follows=follows,
        allocated=allocated,
        members=members,
        ranked=ranked,
        states=states,
        migrations=migrations,
        disruptions=disruptions,
        cordons=cordoned,
        steps={
            key: server_steps(state, migrations[key], _keys(state.members, facts[key])) for key, state in states.items()
        },
        builds=plan_builds(engines, _devices(snapshot, ranked.plan)),
    )


def conclude(decided: DecidedRound) -> Outcome:
    """Return all that follows from what a round decided: statuses, models' configurations, and what room is left."""
    snapshot, ranked, members = decided.snapshot, decided.ranked, decided.members
    drains = (each.wake for each in decided.migrations.values())
    return Outcome(
        plan=ranked.plan,
        facts=ranked.facts,
        statuses=statuses(_situation(decided), decided.now),
        steps={
            key: rendered_servers(each, members[key], snapshot.pool(key).repositories)
            for key, each in decided.steps.items()
        },
        problems=decided.accepted.problems,
        valid={each.identity: each for each in decided.accepted.valid},
        wake=_earliest(next_change(snapshot.nodes, decided.now), *drains),
        builds=decided.builds,
        grants=grants(ranked, _hoped(snapshot, ranked, members, decided.follows), members),
        allocations=decided.allocated,
        cordons=decided.cordons,
    )


def _cordons(snapshot: FleetSnapshot, now: datetime) -> dict[PoolKey, Cordons]:
    """The cordons of each pool, by what its servers report and by its status."""
    found: dict[PoolKey, Cordons] = {}
    for pool in snapshot.resources:
        if isinstance(pool, ServingPool):
            known, before = snapshot.pool(pool.key), snapshot.statuses.get(pool.identity) or pool.status
            errors = known.device_errors.after(known.servers, known.reports, now)
            status = before if isinstance(before, ServingPoolStatus) else None
            found[pool.key] = cordons(pool, status, errors, snapshot.nodes, now)
    return found


def _nodes(snapshot: FleetSnapshot, cordoned: Mapping[PoolKey, Cordons], now: datetime) -> tuple[Node, ...]:
    """The nodes as they count now, without the GPUs that builds hold and those that are cordoned."""
    builds = [build for pool in snapshot.pools.values() for build in pool.builds.values()]
    gone = {(gpu.node, gpu.gpu) for each in cordoned.values() for gpu in each.gpus} | snapshot.cordoned
    return with_cordons(withhold(standing(snapshot.nodes, now), builds, _servers(snapshot)), gone)


def _engine_facts(snapshot: FleetSnapshot, accepted: Accepted, nodes: tuple[Node, ...]) -> dict[PoolKey, EngineFacts]:
    """What the engines of each pool are told from."""
    found: dict[PoolKey, EngineFacts] = {}
    before = ((each.identity, snapshot.statuses.get(each.identity) or each.status) for each in accepted.valid)
    entries: dict[str, tuple[EngineStatus, ...]] = {
        name: each.engines for name, each in before if isinstance(each, InferenceModelStatus)
    }
    for pool in accepted.valid:
        if isinstance(pool, ServingPool):
            known = snapshot.pool(pool.key)
            here = PoolNodes.of(pool, nodes, _running(pool, nodes, known), known.servers)
            found[pool.key] = EngineFacts(pool, here, known.builds, entries, snapshot.build_image)
    return found


def _devices(snapshot: FleetSnapshot, plan: FleetPlan) -> set[Device]:
    """The GPUs that no build gets: servers have them, are to have them, or other pools ask for them."""
    planned = (each.current for pool in plan.pools for each in pool.servers)
    return devices([*planned, *_servers(snapshot)]) | snapshot.claimed


def _servers(snapshot: FleetSnapshot) -> list[CurrentServer]:
    return [server for pool in snapshot.pools.values() for server in pool.servers]


def _members(
    snapshot: FleetSnapshot,
    accepted: Accepted,
    engines: Mapping[PoolKey, PoolEngines],
    follows: Mapping[str, Policy],
    allocated: Mapping[str, Allocation],
) -> dict[PoolKey, Members]:
    """What each valid pool is to serve, with what was decided of it."""
    broken = (*accepted.out, *snapshot.faulty)
    found = {
        key: Members.of(
            key,
            scaled_forms(each.effective(accepted.valid), follows, allocated),
            broken,
            snapshot.pool(key).elsewhere,
            {**snapshot.shapes, **each.shapes},
            each.served,
        )
        for key, each in engines.items()
    }
    return {key: replace(members, sizes=document_sizes(members)) for key, members in found.items()}


def _recalled(snapshot: FleetSnapshot, accepted: Accepted) -> dict[str, ScalingStatus]:
    """By identity, what statuses tell of earlier decisions."""
    before = ((each.identity, snapshot.statuses.get(each.identity) or each.status) for each in accepted.valid)
    members = ((name, each) for name, each in before if isinstance(each, InferenceModelStatus | EnsembleStatus))
    return {name: each.scaling for name, each in members if each.scaling is not None}


def _hoped(
    snapshot: FleetSnapshot, ranked: RankedPlan, members: Mapping[PoolKey, Members], follows: Mapping[str, Policy]
) -> RankedPlan | None:
    """The plan with all replicas that are wanted of what lacked the room for them; None where nothing did."""
    wanted = hopes(ranked, snapshot.decisions, members, follows)
    return pack_by_priority(ranked.with_more(wanted), snapshot.claimed) if wanted else None


def _facts(
    snapshot: FleetSnapshot, accepted: Accepted, members: Mapping[PoolKey, Members], nodes: tuple[Node, ...]
) -> dict[PoolKey, PoolFacts]:
    """What each pool's solver is asked."""
    found: dict[PoolKey, PoolFacts] = {}
    for pool in accepted.valid:
        if isinstance(pool, ServingPool):
            known = snapshot.pool(pool.key)
            current = _running(pool, nodes, known)
            found[pool.key] = pool_facts(pool, members[pool.key], nodes, current, known.servers, _loaded(known))
    return found


def _loaded(known: PoolSnapshot) -> LoadedVersions:
    return {
        each.server: {model.declared_name: model.versions.keys() for model in each.models if not model.is_ensemble}
        for each in known.repositories
    }


def _running(pool: ServingPool, nodes: tuple[Node, ...], known: PoolSnapshot) -> tuple[CurrentServer, ...]:
    """The pool's servers that have a place. One that does not answer, on a closed node, ended and finds none there."""
    shut = closed(pool, nodes)
    answering = {report.name for report in known.reports if report.ready}
    return tuple(each for each in known.servers if each.node not in shut or each.name in answering)


def _keys(members: Members, facts: PoolFacts) -> RenderedKeys:
    return RenderedKeys(members.served_names, OF_TRITON if facts.runtime is RuntimeName.TRITON else OF_ARGOSY)


def _states(
    snapshot: FleetSnapshot,
    plan: FleetPlan,
    facts: Mapping[PoolKey, PoolFacts],
    members: Mapping[PoolKey, Members],
    nodes: tuple[Node, ...],
    follows: Collection[str],
) -> dict[PoolKey, PoolState]:
    """The plan of each pool, and what stands there."""
    return {
        each.pool: _state(each, facts[each.pool], members[each.pool], snapshot.pool(each.pool), nodes, follows)
        for each in plan.pools
    }


def _disruptions(
    states: Mapping[PoolKey, PoolState], migrations: Mapping[PoolKey, Migration], facts: Mapping[PoolKey, PoolFacts]
) -> dict[PoolKey, Disruption]:
    """Of each pool where more servers would go at once than it allows, what is held back."""
    running = {key: state for key, state in states.items() if not facts[key].suspended}
    found = {key: limited(state, migrations[key], facts[key].max_disruption) for key, state in running.items()}
    return {key: each for key, each in found.items() if each}


def _state(
    plan: PoolPlan,
    facts: PoolFacts,
    members: Members,
    known: PoolSnapshot,
    nodes: tuple[Node, ...],
    follows: Collection[str],
) -> PoolState:
    """The plan, and what stands there."""
    places, keys = Places.of(plan, members), _keys(members, facts)
    observed = Observed.of(known.reports, forms_by_server(known.repositories), forms_by_server(known.served))
    scaled = {name for name, model in members.models.items() if model.identity in follows}
    observed = replace(observed, outdated=outdated_forms(plan.servers, members, places, observed, keys, scaled))
    return PoolState(
        plan=plan,
        members=members,
        places=places,
        observed=observed,
        current={each.name: each for each in facts.current},
        nodes={node.name: node for node in nodes if node.ready},
        machine=Machine.best_of(facts.nodes, facts.headroom),
        targets={each.name: target_forms(each, members, places, observed, keys) for each in plan.servers},
    )


def _situation(decided: DecidedRound) -> Situation:
    """What the statuses are made from: every resource, in the form that is acted upon."""
    snapshot, accepted = decided.snapshot, decided.accepted
    forms = {each.identity: each for each in accepted.valid}
    every = {each.identity: forms.get(each.identity, each) for each in (*snapshot.resources, *snapshot.faulty)}
    return Situation(
        resources=tuple(every.values()),
        problems=accepted.problems,
        still=accepted.still,
        states=decided.states,
        notes={key: each.notes for key, each in decided.migrations.items()},
        previous=snapshot.statuses,
        refusals=snapshot.refusals,
        urls=snapshot.urls,
        holding=frozenset(key for key, each in snapshot.pools.items() if each.holds),
        grpc_addresses=snapshot.grpc_addresses,
        selectors=snapshot.selectors,
        engines=decided.engines,
        builds={key: {each.name: each for each in found} for key, found in decided.builds.items()},
        bottlenecks=snapshot.bottlenecks,
        decisions=snapshot.decisions,
        allocations=decided.allocated,
        disruptions=decided.disruptions,
        cordons={key: each.gpus for key, each in decided.cordons.items()},
        undecided=frozenset(
            each.key for each in snapshot.faulty if isinstance(each, ServingPool) and snapshot.pool(each.key).servers
        ),
    )


def _earliest(*due: datetime | None) -> datetime | None:
    return min((each for each in due if each is not None), default=None)
