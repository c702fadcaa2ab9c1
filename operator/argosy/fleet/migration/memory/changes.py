"""What of a server's planned models has to be loaded, and what of them is loaded now."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from argosy.fleet.demand.members import Members
from argosy.fleet.migration.forms import Form
from argosy.fleet.migration.memory.occupancy import Occupant, node_gpus
from argosy.fleet.migration.observed import Observed
from argosy.fleet.plan import Placement, ServerPlan
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
    """

    placement: Placement
    coming: Occupant
    priority: Priority
    before: Occupant | None = None
    versions: frozenset[int] = frozenset()


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
            fresh = form.versions if loaded is None else _fresh(loaded, form)
            if loaded is not None:
                there[name] = _loaded(loaded, form, fresh, placement, server, members)
            if fresh:
                coming = Occupant.of(name, fresh.values(), placement.gpus, members)
                priority = _priority(server.name, placement, name in there, observed)
                versions = frozenset(loaded.versions) if loaded else frozenset()
                changes.append(Change(placement, coming, priority, there.get(name), versions))
        return cls(there, tuple(changes))


def _fresh(loaded: Form, form: Form) -> dict[int, VersionSource]:
    """The versions that a server loads anew to come from one form to another."""
    known = loaded.versions if loaded.reload_key == form.reload_key else {}
    return {
        version: source
        for version, source in form.versions.items()
        if version not in known or known[version].files != source.files
    }


def _loaded(
    loaded: Form,
    form: Form,
    fresh: Mapping[int, VersionSource],
    placement: Placement,
    server: ServerPlan,
    members: Members,
) -> Occupant:
    """What is there. Of a version that stays as it is the size may have been declared anew."""
    stays = {version: source for version, source in form.versions.items() if version not in fresh}
    sources = [stays.get(version, source) for version, source in loaded.versions.items()]
    gpus = node_gpus(loaded, server.gpus) if loaded.gpus != form.gpus else placement.gpus
    return Occupant.of(loaded.name, sources, gpus, members)


def _priority(server: str, placement: Placement, there: bool, observed: Observed) -> Priority:
    said = observed.on(placement.model).get(server, ())
    states = {each.state for each in said if each.version == placement.version}
    if LoadState.LOADING in states:
        return Priority.BEGUN
    if not there:
        return Priority.NEW
    return Priority.FAILED if LoadState.UNAVAILABLE in states else Priority.UPDATE
