"""What is checked together: resources that share a name, or refer to each other, directly or through others. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from argosy.api import Ensemble, InferenceModel, Member, Resource, ServingPool
from argosy.api.values.derived import cached_with_spec
from argosy.planning.variants import expanded

_Name = tuple[str, str]
"""A name, and the namespace or the pool in which it is unique."""


@dataclass(frozen=True, slots=True)
class _Links:
    """What relates a member to others: names of it, of its variants and adapters, and of what they refer to. The
    `backends` of all of these tell which image their pool's servers have.
    """

    names: tuple[_Name, ...]
    backends: frozenset[str]


def related(resources: Sequence[Resource], changed: Iterable[Resource]) -> list[Resource]:
    """Return those of the resources that have to be checked where nothing was wrong before these changed, came or went:
    all that is related to them, with the pools, and a model of each backend in each pool.

    If nothing is wrong between what is returned, nothing is between all resources.
    """
    members = [resource for resource in resources if not isinstance(resource, ServingPool)]
    links = [_links(member, member.namespace) for member in members]
    having: dict[_Name, list[int]] = {}
    backends: dict[_Name, int] = {}
    for at, (member, of_member) in enumerate(zip(members, links, strict=True)):
        for name in of_member.names:
            having.setdefault(name, []).append(at)
        for backend in of_member.backends:
            backends[member.pool_key, backend] = at
    members_of = [one for one in changed if not isinstance(one, ServingPool)]
    names = [name for one in members_of for name in _links(one, one.namespace).names]
    names += [name for at in backends.values() for name in links[at].names]
    matches, seen = set[int](), set[_Name]()
    while names:
        name = names.pop()
        if name not in seen:
            seen.add(name)
            for at in set(having.get(name, ())) - matches:
                matches.add(at)
                names += links[at].names
    pools = [resource for resource in resources if isinstance(resource, ServingPool)]
    return [*pools, *(members[at] for at in sorted(matches))]


@cached_with_spec
def _links(member: Member, namespace: str) -> _Links:
    parts = [part for part in expanded((member,)) if not isinstance(part, ServingPool)]
    names = dict.fromkeys(name for part in parts for name in _names(part, namespace))
    return _Links(tuple(names), frozenset(part.spec.backend for part in parts if isinstance(part, InferenceModel)))


def _names(part: Member, namespace: str) -> Iterator[_Name]:
    yield namespace, part.name
    yield f"{namespace}/{part.spec.pool_ref.name}", part.served_name
    yield from ((namespace, term.name) for term in part.spec.affinity)
    yield from ((namespace, term.name) for term in part.spec.anti_affinity)
    if isinstance(part, Ensemble):
        yield from ((namespace, step.model) for step in part.spec.steps)
