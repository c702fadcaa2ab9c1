"""The changes of a server: planned models that have to be loaded, and the revisions of them that are loaded now."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum

from argosy.api.inferencemodel import InferenceModel
from argosy.api.model.modelformat import OPENED_BY_PATH
from argosy.planning.demand.members import Members
from argosy.planning.migration.memory.occupancy import Occupant, node_gpus
from argosy.planning.migration.observed import Observed
from argosy.planning.migration.revisions import ModelRevision
from argosy.planning.plan import Placement, ServerPlan, Unreserved
from argosy_agent.contract import LoadState, VersionSource


class Priority(IntEnum):
    """The order in which models are loaded where not all fit at once."""

    BEGUN = 0
    UPDATE = 1
    NEW = 2
    FAILED = 3


@dataclass(frozen=True, slots=True)
class ModelChange:
    """A planned model whose loaded revision differs from the desired one.

    `before`: the loaded revision, or None; `versions`: its versions. `coming`: the part to load in addition to it.
    `inplace`: only more instances are added. `one_path`: its server opens one engine for all versions, by its path.
    `coming_versions`: the versions of `coming`. `leaving`: bytes on each GPU of loaded versions that are unloaded while
    others stay.
    """

    placement: Placement
    coming: Occupant
    priority: Priority
    before: Occupant | None = None
    versions: frozenset[int] = frozenset()
    inplace: bool = False
    one_path: bool = False
    coming_versions: frozenset[int] = frozenset()
    leaving: int = 0

    @property
    def unreserved(self) -> Unreserved | None:
        """Why the plan has no memory for it, if it loads a candidate."""
        is_candidate = bool(self.coming_versions - {self.placement.version})
        return self.placement.unreserved if is_candidate else None

    @property
    def apart(self) -> bool:
        """Whether the loaded revision has to leave before this one comes, whatever memory there is."""
        return self.one_path and self.before is not None and not self.inplace


@dataclass(frozen=True, slots=True)
class ServerChanges:
    """The planned models of one server: those that are `loaded`, and the `changes` still to make, by model."""

    loaded: Mapping[str, Occupant]
    changes: tuple[ModelChange, ...]

    @classmethod
    def of(
        cls,
        server: ServerPlan,
        loaded_revisions: Mapping[str, ModelRevision],
        targets: Mapping[str, ModelRevision],
        members: Members,
        observed: Observed,
    ) -> "ServerChanges":
        """Return the changes of one server, from its loaded revisions to its targets, both by name."""
        there: dict[str, Occupant] = {}
        changes: list[ModelChange] = []
        for placement in server.placements:
            name = placement.model
            loaded, target = loaded_revisions.get(name), targets[name]
            if loaded is None:
                coming, more = Occupant.of(name, target.versions.values(), placement.gpus, members), True
            else:
                coming, more = _coming(loaded, target, placement, members)
                there[name] = _loaded(loaded, target, placement, server, members)
            if more:
                priority = _priority(server.name, placement, name in there, observed)
                versions = frozenset(loaded.versions) if loaded else frozenset()
                fresh = fresh_versions(loaded, target) if loaded is not None else target.versions
                inplace, one_path = not fresh, _opens_one_engine(members.models[name])
                before = there.get(name)
                leaving = _leaving(loaded, target, placement, members) if loaded is not None else 0
                changes.append(
                    ModelChange(
                        placement, coming, priority, before, versions, inplace, one_path, frozenset(fresh), leaving
                    )
                )
        return cls(there, tuple(changes))


def _opens_one_engine(model: InferenceModel) -> bool:
    return model.spec.backend in OPENED_BY_PATH and len(model.spec.declared_versions) == 1


def fresh_versions(loaded: ModelRevision, target: ModelRevision) -> dict[int, VersionSource]:
    """Return the versions that a server has to load to come from one revision to another."""
    return {version: source for version, source in target.versions.items() if not target.retains(loaded, version)}


def _staying(loaded: ModelRevision, target: ModelRevision) -> dict[int, VersionSource]:
    """Return the versions that stay loaded, as they are declared by now."""
    fresh = fresh_versions(loaded, target)
    return {
        version: target.versions[version] for version in loaded.versions if version in target.versions.keys() - fresh
    }


def _coming(
    loaded: ModelRevision, target: ModelRevision, placement: Placement, members: Members
) -> tuple[Occupant, bool]:
    """Return the part to load in addition, and whether there is any: new versions, or more instances."""
    name, fresh = loaded.name, fresh_versions(loaded, target)
    more = target.instances - loaded.instances if loaded.instances else 0
    grown = 0
    if more > 0:
        grown = Occupant.of(name, _staying(loaded, target).values(), placement.gpus, members).memory
        grown = grown * more // target.instances
    coming = Occupant.of(name, fresh.values(), placement.gpus, members)
    if not fresh:
        coming = replace(coming, alone=placement.exclusive)
    return replace(coming, memory=coming.memory + grown), bool(fresh or grown)


def without_leaving(loaded: ModelRevision, target: ModelRevision) -> ModelRevision | None:
    """Return the target with those of its versions alone that are loaded, to which a server comes by unloading others;
    None where it is not so.
    """
    staying = {version: source for version, source in target.versions.items() if target.retains(loaded, version)}
    return replace(target, versions=staying) if staying and loaded.versions.keys() - target.versions.keys() else None


def _leaving(loaded: ModelRevision, target: ModelRevision, placement: Placement, members: Members) -> int:
    """Return bytes on each GPU of the versions that a server unloads while others of the model stay."""
    if without_leaving(loaded, target) is None:
        return 0
    gone = [source for version, source in loaded.versions.items() if version not in target.versions]
    return Occupant.of(loaded.name, gone, placement.gpus, members).memory


def _loaded(
    loaded: ModelRevision, target: ModelRevision, placement: Placement, server: ServerPlan, members: Members
) -> Occupant:
    """Return what is loaded. The size of a version that stays may be declared differently by now, for each instance."""
    gpus = node_gpus(loaded, server.gpus) if loaded.gpus != target.gpus else placement.gpus
    staying = _staying(loaded, target)
    stays = Occupant.of(loaded.name, staying.values(), gpus, members)
    leaving = [source for version, source in loaded.versions.items() if version not in staying]
    leaves = Occupant.of(loaded.name, leaving, gpus, members)
    memory = stays.memory
    if loaded.instances and target.instances:
        memory = memory * loaded.instances // target.instances
    return replace(stays, memory=memory + leaves.memory, alone=stays.alone or leaves.alone)


def _priority(server: str, placement: Placement, there: bool, observed: Observed) -> Priority:
    reported = observed.on(placement.model).get(server, ())
    states = {model.state for model in reported if model.version == placement.version}
    if LoadState.LOADING in states:
        return Priority.BEGUN
    if not there:
        return Priority.NEW
    return Priority.FAILED if LoadState.UNAVAILABLE in states else Priority.UPDATE
