"""What of a server's planned models has to be loaded, and what of them is loaded now."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum

from argosy.planning.demand.members import Members
from argosy.planning.migration.memory.occupancy import Occupant, node_gpus
from argosy.planning.migration.observed import Observed
from argosy.planning.migration.revisions import Form
from argosy.planning.plan import Placement, ServerPlan
from argosy_agent.contract import LoadState, VersionSource


class Priority(IntEnum):
    """Who is first where not all can be loaded at once."""

    BEGUN = 0
    UPDATE = 1
    NEW = 2
    FAILED = 3


@dataclass(frozen=True, slots=True)
class Change:
    """A planned model that is not there as it should be.

    `coming` is what has to be loaded of it, beside what is there: `before`, or None; `versions` are those of `before`.
    `in_place`: no more than further instances of what is there.
    """

    placement: Placement
    coming: Occupant
    priority: Priority
    before: Occupant | None = None
    versions: frozenset[int] = frozenset()
    in_place: bool = False


@dataclass(frozen=True, slots=True)
class ServerChanges:
    """`loaded`: what one server has of what it is to have, by model; `changes`: what it lacks."""

    loaded: Mapping[str, Occupant]
    changes: tuple[Change, ...]

    @classmethod
    def of(
        cls,
        server: ServerPlan,
        held: Mapping[str, Form],
        targets: Mapping[str, Form],
        members: Members,
        observed: Observed,
    ) -> "ServerChanges":
        """`held` is what it has loaded, `targets` what it is to load next, by name."""
        there: dict[str, Occupant] = {}
        changes: list[Change] = []
        for placement in server.placements:
            name = placement.model
            loaded, form = held.get(name), targets[name]
            if loaded is None:
                coming, more = Occupant.of(name, form.versions.values(), placement.gpus, members), True
            else:
                coming, more = _coming(loaded, form, placement, members)
                there[name] = _loaded(loaded, form, placement, server, members)
            if more:
                priority = _priority(server.name, placement, name in there, observed)
                versions = frozenset(loaded.versions) if loaded else frozenset()
                in_place = loaded is not None and not fresh_versions(loaded, form)
                changes.append(Change(placement, coming, priority, there.get(name), versions, in_place))
        return cls(there, tuple(changes))


def fresh_versions(loaded: Form, form: Form) -> dict[int, VersionSource]:
    """Return the versions that a server loads anew to come from one form to another."""
    known = loaded.versions if form.stays_loaded(loaded) else {}
    return {
        version: source
        for version, source in form.versions.items()
        if version not in known or known[version].files != source.files
    }


def _staying(loaded: Form, form: Form) -> dict[int, VersionSource]:
    """The versions that stay loaded, as they are declared by now."""
    fresh = fresh_versions(loaded, form)
    return {version: form.versions[version] for version in loaded.versions if version in form.versions.keys() - fresh}


def _coming(loaded: Form, form: Form, placement: Placement, members: Members) -> tuple[Occupant, bool]:
    """What is to be loaded beside what is there, and whether that is anything: new versions, further instances."""
    name, fresh = loaded.name, fresh_versions(loaded, form)
    more = form.instances - loaded.instances if loaded.instances else 0
    grown = 0
    if more > 0:
        grown = Occupant.of(name, _staying(loaded, form).values(), placement.gpus, members).memory
        grown = grown * more // form.instances
    coming = Occupant.of(name, fresh.values(), placement.gpus, members)
    if not fresh:
        coming = replace(coming, alone=placement.whole)
    return replace(coming, memory=coming.memory + grown), bool(fresh or grown)


def _loaded(loaded: Form, form: Form, placement: Placement, server: ServerPlan, members: Members) -> Occupant:
    """What is there. Of a version that stays as it is the size may have been declared anew, for each instance."""
    gpus = node_gpus(loaded, server.gpus) if loaded.gpus != form.gpus else placement.gpus
    staying = _staying(loaded, form)
    stays = Occupant.of(loaded.name, staying.values(), gpus, members)
    leaving = [source for version, source in loaded.versions.items() if version not in staying]
    leaves = Occupant.of(loaded.name, leaving, gpus, members)
    memory = stays.memory
    if loaded.instances and form.instances:
        memory = memory * loaded.instances // form.instances
    return replace(stays, memory=memory + leaves.memory, alone=stays.alone or leaves.alone)


def _priority(server: str, placement: Placement, there: bool, observed: Observed) -> Priority:
    said = observed.on(placement.model).get(server, ())
    states = {each.state for each in said if each.version == placement.version}
    if LoadState.LOADING in states:
        return Priority.BEGUN
    if not there:
        return Priority.NEW
    return Priority.FAILED if LoadState.UNAVAILABLE in states else Priority.UPDATE
