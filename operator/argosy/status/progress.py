"""One pool's plan held against what its servers say: what every status in the pool is made from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from argosy.api import ServingPool
from argosy.planning.builds.plan import PlannedBuild
from argosy.planning.builds.pool import PoolEngines
from argosy.planning.demand.members import Members
from argosy.planning.migration.observed import Binding, Observed
from argosy.planning.migration.state import Note, Places, PoolState
from argosy.planning.plan import PoolPlan, ServerPlan, Unplaced
from argosy.planning.topology.deployment import Machine
from argosy.status.findings.loading import Loading


@dataclass(frozen=True, slots=True)
class PoolProgress:
    """`pinned`: the versions of each model that ensembles name. `unplaced`: each model's replicas without a place.
    `engines`: those of the models that ask for some, by model; `builds` by name.
    """

    pool: ServingPool
    plan: PoolPlan
    members: Members
    places: Places
    observed: Observed
    notes: Mapping[Binding, Note]
    servers: Mapping[str, ServerPlan]
    pinned: Mapping[str, frozenset[int]]
    unplaced: Mapping[str, tuple[Unplaced, ...]]
    machine: Machine | None = None
    engines: PoolEngines | None = None
    builds: Mapping[str, PlannedBuild] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        pool: ServingPool,
        state: PoolState,
        notes: Mapping[Binding, Note],
        engines: PoolEngines | None = None,
        builds: Mapping[str, PlannedBuild] | None = None,
    ) -> "PoolProgress":
        """Everything found once. `notes` say why a model or ensemble waits on a server."""
        plan, members = state.plan, state.members
        pinned: dict[str, set[int]] = {}
        for ensemble in members.ensembles.values():
            for step in ensemble.spec.steps:
                if step.version is not None:
                    pinned.setdefault(step.model, set()).add(step.version)
        unplaced: dict[str, list[Unplaced]] = {}
        for each in plan.unplaced:
            for model in each.models:
                unplaced.setdefault(model, []).append(each)
        return cls(
            pool,
            plan,
            members,
            state.places,
            state.observed,
            notes,
            {server.name: server for server in plan.servers},
            {model: frozenset(versions) for model, versions in pinned.items()},
            {model: tuple(found) for model, found in unplaced.items()},
            state.machine,
            engines,
            builds or {},
        )

    def servers_with(self, name: str) -> tuple[ServerPlan, ...]:
        """Return the planned servers of a model or an ensemble."""
        return tuple(self.servers[server] for server in self.places.servers.get(name, ()))

    def without_place(self, name: str) -> tuple[Unplaced, ...]:
        """Return the replicas of a model, or of what an ensemble runs, that found no place."""
        if name not in self.members.runs:
            return self.unplaced.get(name, ())
        found = (each for model in self.members.runs[name] for each in self.unplaced.get(model, ()))
        return tuple({id(each): each for each in found}.values())

    def loading(self, name: str, versions: Iterable[int], servers: tuple[ServerPlan, ...]) -> Loading:
        """Return what servers say of versions that these are to have."""
        names = [server.name for server in servers]
        held_up = {(server, name): note for server in names if (note := self._waits(server, name)) is not None}
        served_name = self.members.served_names.get(name, name)
        return Loading.of(name, versions, names, self.observed, {**held_up, **self.notes}, served_name)

    def _waits(self, server: str, name: str) -> Note | None:
        """Why an ensemble goes on with its former graph: a step of the declared one is not loaded yet."""
        ensemble = self.members.ensembles.get(name)
        if ensemble is None or (server, name) not in self.observed.outdated:
            return None
        versions = {step.model: step.version or self.members.version(step.model) for step in ensemble.spec.steps}
        missing = [
            model
            for model, version in sorted(versions.items())
            if version is None or not self.observed.is_ready(server, model, version)
        ]
        return Note(f"its former graph goes on serving until {', '.join(missing)} is loaded") if missing else None
