"""What of a server's planned models has to be loaded, and what of them is loaded now."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from argosy.fleet.demand.members import Members
from argosy.fleet.migration.observed import Observed
from argosy.fleet.migration.occupancy import Occupant, seats
from argosy.fleet.plan import Placement, ServerPlan
from argosy_runtime.agent.contract import LoadState, RenderedModel, VersionSource
from argosy_runtime.modelconfig import parse_text


class Turn(IntEnum):
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
    turn: Turn
    before: Occupant | None = None
    versions: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Present:
    """What one server has of what it is to have, by model, and what it lacks."""

    there: Mapping[str, Occupant]
    changes: tuple[Change, ...]

    @classmethod
    def of(
        cls,
        server: ServerPlan,
        held: Mapping[str, RenderedModel],
        forms: Mapping[str, RenderedModel],
        members: Members,
        observed: Observed,
    ) -> "Present":
        """`held` is what it has loaded, `forms` what it is to load next, by name."""
        there: dict[str, Occupant] = {}
        changes: list[Change] = []
        for placement in server.placements:
            name = placement.model
            loaded, form = held.get(name), forms[name]
            fresh = form.versions if loaded is None else _fresh(loaded, form)
            if loaded is not None:
                there[name] = _loaded(loaded, form, fresh, placement, server, members)
            if fresh:
                coming = Occupant.of(name, fresh.values(), placement.gpus, members)
                turn = _turn(server.name, placement, name in there, observed)
                versions = frozenset(loaded.versions) if loaded else frozenset()
                changes.append(Change(placement, coming, turn, there.get(name), versions))
        return cls(there, tuple(changes))


def _fresh(loaded: RenderedModel, form: RenderedModel) -> dict[int, VersionSource]:
    """The versions that a server loads anew to come from one form to another."""
    known = loaded.versions if _alike(loaded.config_text, form.config_text) else {}
    return {
        version: source
        for version, source in form.versions.items()
        if version not in known or known[version].files != source.files
    }


def _loaded(
    loaded: RenderedModel,
    form: RenderedModel,
    fresh: Mapping[int, VersionSource],
    placement: Placement,
    server: ServerPlan,
    members: Members,
) -> Occupant:
    """What is there. Of a version that stays as it is the size may have been declared anew."""
    stays = {version: source for version, source in form.versions.items() if version not in fresh}
    sources = [stays.get(version, source) for version, source in loaded.versions.items()]
    moves = loaded.config_text != form.config_text and seats(loaded, server.gpus) != seats(form, server.gpus)
    gpus = seats(loaded, server.gpus) if moves else placement.gpus
    return Occupant.of(loaded.name, sources, gpus, members)


def _turn(server: str, placement: Placement, there: bool, observed: Observed) -> Turn:
    said = observed.on(placement.model).get(server, ())
    states = {each.state for each in said if each.version == placement.version}
    if LoadState.LOADING in states:
        return Turn.BEGUN
    if not there:
        return Turn.NEW
    return Turn.FAILED if LoadState.UNAVAILABLE in states else Turn.UPDATE


def _alike(one: str, other: str) -> bool:
    """Whether two configs differ in nothing that a server loads a model anew for."""
    return one == other or _without_policy(one) == _without_policy(other)


@lru_cache(maxsize=4096)
def _without_policy(config_text: str) -> bytes:
    config = parse_text(config_text)
    config.ClearField("version_policy")
    return bytes(config.SerializeToString(deterministic=True))
