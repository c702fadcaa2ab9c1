"""Affinities between members of a pool that name nothing, or contradict each other: both of a pair are named."""

from collections.abc import Iterable, Iterator, Mapping

from argosy.api import Ensemble, InferenceModel
from argosy.api.values.base import Fault
from argosy.planning.adapters import AdapterModel
from argosy.planning.variants import Parts, shares_server
from argosy_common.wording import did_you_mean

Member = InferenceModel | Ensemble


def check_affinities(pool: str, members: Iterable[Member]) -> Iterator[tuple[Member, Fault]]:
    """Yield names that the pool does not have, and members that are kept apart from what shares their server."""
    every = {member.name: member for member in members if not isinstance(member, AdapterModel)}
    declared = [member for member in every.values() if not isinstance(member, Parts)]
    if not any(member.spec.affinity or member.spec.anti_affinity for member in declared):
        return
    roots = _roots(every)
    for member in declared:
        for field, names in _named(member).items():
            for index, name in enumerate(names):
                message = _wrong(member, name, every, pool)
                if not message and field == "antiAffinity" and roots[name] == roots[member.name]:
                    message = (
                        f"keeps {member.name!r} and {name!r} apart, and they share a server: by affinity, or as models "
                        "of one ensemble; remove one of the two"
                    )
                if message:
                    yield member, Fault(message, ("spec", field, index, "name"))


def _named(member: Member) -> dict[str, list[str]]:
    """Return the names of a member's affinities, by field."""
    return {
        "affinity": [term.name for term in member.spec.affinity],
        "antiAffinity": [term.name for term in member.spec.anti_affinity],
    }


def _wrong(member: Member, name: str, every: Mapping[str, Member], pool: str) -> str:
    if name == member.name:
        return "is this resource itself; name another one (replicas of one model are always on different servers)"
    if name in every and not isinstance(every[name], Parts):
        return ""
    hint = did_you_mean(name, sorted(one for one in every if one != member.name)) or "; add it, or remove this"
    return f"pool {pool!r} has no model or ensemble {name!r}{hint}"


def _roots(every: Mapping[str, Member]) -> dict[str, str]:
    """Return a name for each member that is the same for those that share a server."""
    root = {name: name for name in every}

    def find(name: str) -> str:
        while root[name] != name:
            name = root[name]
        return name

    for member in every.values():
        steps = member.spec.steps if isinstance(member, Ensemble) and shares_server(member) else ()
        for other in (*(term.name for term in member.spec.affinity), *(step.model for step in steps)):
            if other in root:
                first, second = sorted((find(member.name), find(other)))
                root[second] = first
    return {name: find(name) for name in every}
