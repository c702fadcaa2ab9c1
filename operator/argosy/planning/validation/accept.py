"""Which form of each resource is acted upon: the one declared, or the last valid one where that is wrong. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from argosy.api.documents import Resource
from argosy.api.problems import Problem

Check = Callable[[Sequence[Resource]], list[Problem]]
"""What is wrong with resources, each valid by itself, together."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """`valid` take part in the plan, `out` do not. `still` names those of `valid` that stand there in their last
    valid form, because of `problems`; `held` those whose last form goes on for now, with nothing wrong.
    """

    valid: tuple[Resource, ...]
    out: tuple[Resource, ...]
    problems: tuple[Problem, ...]
    still: frozenset[str]
    held: frozenset[str] = frozenset()


def accept(
    resources: Sequence[Resource], problems: Sequence[Problem], last: Mapping[str, Resource], check: Check
) -> Accepted:
    """Return the forms that fit together. `problems` are those of newer forms than `resources` has; `last` has the form
    of each resource that was acted upon before, by identity.

    A form that does not fit gives way to the last one, if that is another; where that does not fit either, the
    resource takes no part. Nor does one whose name is the problem, since every form has it, or that is being deleted.
    """
    misnamed = {each.resource for each in problems if each.path.startswith("metadata.")}
    present = [each for each in resources if not each.metadata.deletion_timestamp]
    unnamed = [each for each in present if each.identity in misnamed]
    present = [each for each in present if each.identity not in misnamed]
    current: dict[str, Resource] = {each.identity: each for each in present}
    said, still = list(problems), {each.resource for each in problems}
    wrong = _wrong(present, check)
    while former := {name: form for name in wrong if (form := former_of(current[name], last)) is not None}:
        said += [problem for name in former for problem in wrong[name]]
        still |= former.keys()
        current |= former
        wrong = _wrong(list(current.values()), check)
    said += [problem for found in wrong.values() for problem in found]
    return Accepted(
        valid=tuple(each for name, each in current.items() if name not in wrong),
        out=(*unnamed, *(current[name] for name in wrong)),
        problems=tuple(said),
        still=frozenset(still & current.keys() - wrong.keys()),
    )


def hold_back(accepted: Accepted, names: Iterable[str], last: Mapping[str, Resource], check: Check) -> Accepted:
    """Return what is accepted, with the last forms of these names (identities) where there are others.

    What does not fit to these forms gives way to its own last one, as if it were wrong; a last form that fits no longer
    is not gone back to.
    """
    forms: dict[str, Resource] = {each.identity: each for each in accepted.valid}
    held = {name: form for name in names if (form := former_of(forms[name], last)) is not None}
    said, still, out, stays = list(accepted.problems), set(accepted.still), list(accepted.out), set[str]()
    while held and (wrong := _wrong([*(forms | held).values()], check)):
        for name, problems in wrong.items():
            if held.pop(name, None) is not None:
                stays.add(name)
                continue
            said += problems
            former = former_of(forms[name], last) if name not in stays else None
            if former is not None:
                forms[name] = former
                still.add(name)
            else:
                out.append(forms.pop(name))
    now = forms | held
    return Accepted(tuple(now.values()), tuple(out), tuple(said), frozenset(still & now.keys()), frozenset(held))


def _wrong(resources: Sequence[Resource], check: Check) -> dict[str, list[Problem]]:
    found: dict[str, list[Problem]] = {}
    for problem in check(resources):
        found.setdefault(problem.resource, []).append(problem)
    return found


def former_of(resource: Resource, last: Mapping[str, Resource]) -> Resource | None:
    """Return the last form, with the newest metadata, if it is another one."""
    former = last.get(resource.identity)
    if former is None or former.spec == resource.spec or former.metadata.uid != resource.metadata.uid:
        return None
    return former.model_copy(update={"metadata": resource.metadata, "status": resource.status})
