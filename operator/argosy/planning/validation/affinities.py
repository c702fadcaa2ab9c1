"""Affinities between members of a pool that name nothing, or contradict each other: both of a pair are named."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from argosy.api import Ensemble, InferenceModel
from argosy.api.values.base import Fault
from argosy.planning.adapters import AdapterModel
from argosy.planning.validation.graph import NONE_INVALID, Invalid
from argosy.planning.variants import Parts, shares_server
from argosy_common.wording import did_you_mean

Member = InferenceModel | Ensemble


@dataclass(frozen=True, slots=True)
class Namespace:
    """What affinities may name by mistake: `pools` of the namespace's members by name, and those that are `invalid`."""

    pools: Mapping[str, str] = field(default_factory=dict)
    invalid: Invalid = NONE_INVALID


def check_affinities(
    pool: str, members: Iterable[Member], namespace: Callable[[], Namespace]
) -> Iterator[tuple[Member, Fault]]:
    """Yield names that the pool does not have, and members that are kept apart from what shares their server.

    `namespace` is called for names that the pool does not have.
    """
    every = {member.name: member for member in members if not isinstance(member, AdapterModel)}
    declared = {name: member for name, member in every.items() if not isinstance(member, Parts)}
    if not any(member.spec.affinity or member.spec.anti_affinity for member in declared.values()):
        return
    roots = _roots(every)
    for member in declared.values():
        for kind, names in _named(member).items():
            for index, name in enumerate(names):
                message = _wrong(member, name, declared, pool, namespace)
                if not message and kind == "antiAffinity" and name in roots and roots[name] == roots[member.name]:
                    message = (
                        f"keeps {member.name!r} and {name!r} apart, and they share a server: by affinity, or as models "
                        "of one ensemble; remove one of the two"
                    )
                if message:
                    yield member, Fault(message, ("spec", kind, index, "name"))


def _named(member: Member) -> dict[str, list[str]]:
    """Return the names of a member's affinities, by field."""
    return {
        "affinity": [term.name for term in member.spec.affinity],
        "antiAffinity": [term.name for term in member.spec.anti_affinity],
    }


def _wrong(
    member: Member, name: str, declared: Mapping[str, Member], pool: str, namespace: Callable[[], Namespace]
) -> str:
    """Return what is wrong with a name; empty where the pool has it, or an invalid resource is reported by itself."""
    if name == member.name:
        return "is this resource itself; name another one (replicas of one model are always on different servers)"
    if name in declared:
        return ""
    here = namespace()
    if name in here.invalid.names:
        return f"{name!r} is not valid itself; correct that first" if here.invalid.is_error else ""
    if name in here.pools:
        return f"{name!r} is in pool {here.pools[name]!r}, and only members of one pool share servers; remove this"
    hint = did_you_mean(name, sorted(declared.keys() - {member.name})) or "; add it, or remove this"
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
