"""One pool's plan next to what its servers report: what every status in the pool is made from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from argosy.api import ServingPool
from argosy.api.statusparts import PreemptionStatus
from argosy.planning.builds.build import ScheduledBuild
from argosy.planning.builds.pool import PoolEngines
from argosy.planning.demand.members import Members
from argosy.planning.explanation.remedies.find import Remedies
from argosy.planning.migration.bindings import Binding
from argosy.planning.migration.observed import Observed
from argosy.planning.migration.pool_migration import PoolMigration
from argosy.planning.migration.state import Note, PoolState
from argosy.planning.plan import PoolPlan, ServerPlan, Unplaced
from argosy.planning.variants import shares_server
from argosy.status.findings.loading import Loading
from argosy.status.rollout import measured_traffic


@dataclass(frozen=True, slots=True)
class PoolProgress:
    """The `state` of a pool, indexed for statuses.

    `pinned`: the versions of each model that ensembles name. `unplaced`: each model's replicas that fit nowhere.
    `engines`: those of the models that request some, by model; `builds` by name. `notes` say why a model or ensemble
    waits on a server. `remedies`: the change that gives a replica without a place one, by group. `lost_to`:
    what took the places of models and ensembles, by their names.
    """

    pool: ServingPool
    state: PoolState
    notes: Mapping[Binding, Note]
    servers: Mapping[str, ServerPlan]
    pinned: Mapping[str, frozenset[int]]
    unplaced: Mapping[str, tuple[Unplaced, ...]]
    engines: PoolEngines | None = None
    builds: Mapping[str, ScheduledBuild] = field(default_factory=dict)
    remedies: Mapping[str, str] = field(default_factory=dict)
    lost_to: Mapping[str, PreemptionStatus] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        pool: ServingPool,
        migration: PoolMigration,
        engines: PoolEngines | None = None,
        builds: Iterable[ScheduledBuild] = (),
        remedies: Remedies | None = None,
        lost_to: Mapping[str, PreemptionStatus] | None = None,
    ) -> "PoolProgress":
        """Return the progress of one pool."""
        plan, members = migration.state.plan, migration.state.members
        pinned: dict[str, set[int]] = {}
        for ensemble in members.ensembles.values():
            for step in ensemble.spec.steps:
                if step.version is not None:
                    pinned.setdefault(step.model, set()).add(step.version)
        unplaced: dict[str, list[Unplaced]] = {}
        for replica in plan.unplaced:
            for model in replica.models:
                unplaced.setdefault(model, []).append(replica)
        return cls(
            pool,
            migration.state,
            migration.notes,
            {server.name: server for server in plan.servers},
            {model: frozenset(versions) for model, versions in pinned.items()},
            {model: tuple(replicas) for model, replicas in unplaced.items()},
            engines,
            {build.name: build for build in builds},
            {
                group: of_group[0].text
                for (pool_key, group), of_group in (remedies or {}).items()
                if pool_key == plan.pool and of_group
            },
            lost_to or {},
        )

    @property
    def plan(self) -> PoolPlan:
        """The placement plan of the pool."""
        return self.state.plan

    @property
    def members(self) -> Members:
        """What the pool is to serve."""
        return self.state.members

    @property
    def observed(self) -> Observed:
        """What its servers report and have loaded."""
        return self.state.observed

    def servers_with(self, name: str) -> tuple[ServerPlan, ...]:
        """Return the planned servers of a model or an ensemble."""
        return tuple(self.servers[server] for server in self.state.bindings.servers.get(name, ()))

    def reason_of(self, unplaced: Unplaced) -> str:
        """Return why a replica has no place, with the change that gives it one, where one is known."""
        remedy = self.remedies.get(unplaced.group, "")
        return f"{unplaced.message.rstrip('.')}. It would fit with: {remedy}." if remedy else unplaced.message

    def unplaced_of(self, name: str) -> tuple[Unplaced, ...]:
        """Return the replicas of a model, or of the models that an ensemble runs, that fit nowhere."""
        models = self.members.models_of(name)
        replicas = (replica for model in models for replica in self.unplaced.get(model, ()))
        return tuple({id(replica): replica for replica in replicas}.values())

    def loading(self, name: str, versions: Iterable[int], servers: tuple[ServerPlan, ...]) -> Loading:
        """Return how far versions are that these servers are to have."""
        names = [server.name for server in servers]
        waiting = {(server, name): note for server in names if (note := self._waits(server, name)) is not None}
        served_name = self.members.served_names.get(name, name)
        loading = Loading.of(name, versions, names, self.observed, {**waiting, **self.notes}, served_name)
        rollout = self.members.rollouts.get(name)
        if rollout is None:
            return loading
        stable = rollout.state.stable
        return loading.proving(
            stable.version if stable is not None else None,
            rollout.action.keep - loading.declared,
            measured_traffic(rollout),
        )

    def _waits(self, server: str, name: str) -> Note | None:
        """Return why an ensemble keeps its former graph: a step of the declared one is not loaded yet."""
        ensemble = self.members.ensembles.get(name)
        if ensemble is None or (server, name) not in self.observed.outdated:
            return None
        here = self.state.bindings.names.get(server, frozenset())
        versions = {
            step.model: step.version or self.members.version(step.model)
            for step in ensemble.spec.steps
            if shares_server(ensemble) or step.model in here
        }
        missing = [
            model
            for model, version in sorted(versions.items())
            if version is None or not self.observed.is_ready(server, model, version)
        ]
        return Note(f"its former graph goes on serving until {', '.join(missing)} is loaded") if missing else None
