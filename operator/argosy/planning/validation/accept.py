"""Acceptance: the spec of each resource that is acted upon, the declared one or the last valid one. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from argosy.api.documents import Resource
from argosy.api.problems import Problem

Check = Callable[[Sequence[Resource]], list[Problem]]
"""What is wrong with resources, each valid by itself, together."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The resources that are acted upon. `valid` take part in the plan, `out` do not.

    `still` names those of `valid` that have their last valid spec, because of `problems`; `deferred` those whose last
    valid spec goes on for now, with nothing wrong.
    """

    valid: tuple[Resource, ...]
    out: tuple[Resource, ...]
    problems: tuple[Problem, ...]
    still: frozenset[str]
    deferred: frozenset[str] = frozenset()


def accept(
    resources: Sequence[Resource], problems: Sequence[Problem], last: Mapping[str, Resource], check: Check
) -> Accepted:
    """Return the specs that fit together.

    `problems` are those of newer specs than `resources` has; `last` has the spec of each resource that was acted upon
    before, by identity. A spec that does not fit gives way to the last one, if that is another; where that does not fit
    either, the resource takes no part. Nor does one whose name is the problem, since every spec has it, or that is
    being deleted.
    """
    misnamed = {problem.resource for problem in problems if problem.path.startswith("metadata.")}
    present = [resource for resource in resources if not resource.metadata.deletion_timestamp]
    unnamed = [resource for resource in present if resource.identity in misnamed]
    present = [resource for resource in present if resource.identity not in misnamed]
    current: dict[str, Resource] = {resource.identity: resource for resource in present}
    all_problems, still = list(problems), {problem.resource for problem in problems}
    wrong = _wrong(present, check)
    while former := {name: last_valid for name in wrong if (last_valid := former_of(current[name], last)) is not None}:
        all_problems += [problem for name in former for problem in wrong[name]]
        still |= former.keys()
        current |= former
        wrong = _wrong(list(current.values()), check)
    all_problems += [problem for of_resource in wrong.values() for problem in of_resource]
    return Accepted(
        valid=tuple(resource for name, resource in current.items() if name not in wrong),
        out=(*unnamed, *(current[name] for name in wrong)),
        problems=tuple(all_problems),
        still=frozenset(still & current.keys() - wrong.keys()),
    )


def defer(accepted: Accepted, names: Iterable[str], last: Mapping[str, Resource], check: Check) -> Accepted:
    """Return what is accepted, with the last specs of these names (identities) where there are others.

    What does not fit to these specs gives way to its own last one, as if it were wrong; a last spec that fits no longer
    is not gone back to.
    """
    acted_upon: dict[str, Resource] = {resource.identity: resource for resource in accepted.valid}
    deferred = {name: last_valid for name in names if (last_valid := former_of(acted_upon[name], last)) is not None}
    all_problems, still, out, stays = list(accepted.problems), set(accepted.still), list(accepted.out), set[str]()
    while deferred and (wrong := _wrong([*(acted_upon | deferred).values()], check)):
        for name, problems in wrong.items():
            if deferred.pop(name, None) is not None:
                stays.add(name)
                continue
            all_problems += problems
            former = former_of(acted_upon[name], last) if name not in stays else None
            if former is not None:
                acted_upon[name] = former
                still.add(name)
            else:
                out.append(acted_upon.pop(name))
    now = acted_upon | deferred
    return Accepted(
        tuple(now.values()), tuple(out), tuple(all_problems), frozenset(still & now.keys()), frozenset(deferred)
    )


def _wrong(resources: Sequence[Resource], check: Check) -> dict[str, list[Problem]]:
    problems_of: dict[str, list[Problem]] = {}
    for problem in check(resources):
        problems_of.setdefault(problem.resource, []).append(problem)
    return problems_of


def former_of(resource: Resource, last: Mapping[str, Resource]) -> Resource | None:
    """Return the resource with its last spec and the newest metadata, if that is another spec."""
    former = last.get(resource.identity)
    if former is None or former.spec == resource.spec or former.metadata.uid != resource.metadata.uid:
        return None
    return former.model_copy(update={"metadata": resource.metadata, "status": resource.status})
