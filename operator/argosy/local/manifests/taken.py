"""What `argosy up` acts upon: each resource that is right by itself, and of a wrong one what it said before. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from argosy.api.documents import Resource
from argosy.api.problems import Problem
from argosy.local.manifests.reading import Manifests


@dataclass(frozen=True, slots=True)
class Taken:
    """`resources` take part, each once; `sources` are their files, by identity.

    `problems` say which stand there in their former form, or, among `faulty`, in none.
    """

    resources: tuple[Resource, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    faulty: tuple[Resource, ...] = ()


def take(manifests: Manifests, before: Taken) -> Taken:
    """Return what is acted upon after an edit, with what was before.

    A file that cannot be read whole takes nothing away: what it declared before, and does not now, stays.
    """
    wrong = {problem.resource for problem in manifests.problems}
    unread = {problem.file for problem in manifests.problems if not problem.names_resource}
    declared = {each.identity: each for each in manifests.resources if each.identity not in wrong}
    former = {
        each.identity: each
        for each in before.resources
        if each.identity not in declared and (each.identity in wrong or before.sources.get(each.identity) in unread)
    }
    taken = declared | former
    files = {**before.sources, **manifests.sources}
    return Taken(
        resources=tuple(taken.values()),
        sources={name: files[name] for name in taken if name in files},
        problems=manifests.problems,
        faulty=tuple({each.identity: each for each in manifests.resources if each.identity not in taken}.values()),
    )
