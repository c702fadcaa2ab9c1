"""What is wrong between resources, of which only what changed is checked again while nothing was wrong before."""

from collections.abc import Sequence
from dataclasses import dataclass

from argosy.api import Ensemble, InferenceModel, Problem, Resource, ServingPool
from argosy.api.values.reuse import Reused
from argosy.planning.validation.graph import Invalid
from argosy.planning.validation.related import related
from argosy.render.config.configrules import check_together


@dataclass(frozen=True, slots=True, eq=False)
class _Checked:
    """Resources, with all of each that it is checked by, and what is wrong between them."""

    resources: Sequence[Resource]
    parts: Sequence[object]
    problems: Sequence[Problem]


def checked(call: int, resources: Sequence[Resource], invalid: Invalid, reused: Reused) -> Sequence[Problem]:
    """Return what is wrong between resources. `call` numbers the calls of a round; `reused`: what was found before."""
    parts = [_part(resource) for resource in resources]

    def check() -> _Checked:
        before = reused.before(call)
        is_right = before is not None and before[0][0] == invalid and _is_right(before[1], resources, parts, invalid)
        return _Checked(resources, parts, () if is_right else check_together(resources, invalid=invalid))

    return reused.value(call, (invalid, parts), check).problems


def _is_right(last: _Checked, resources: Sequence[Resource], parts: Sequence[object], invalid: Invalid) -> bool:
    """Return whether nothing was wrong in the round before, nor is in what changed since then. False where only a check
    of all resources tells: a pool changed, a name stands twice, or something is wrong, of which a message may name any
    resource.
    """
    before = {one.identity: (one, part) for one, part in zip(last.resources, last.parts, strict=True)}
    now = {one.identity: (one, part) for one, part in zip(resources, parts, strict=True)}
    if last.problems or len(before) < len(last.resources) or len(now) < len(resources):
        return False
    changed = [one for name, (one, part) in now.items() if name not in before or before[name][1] != part]
    gone = [one for name, (one, part) in before.items() if name not in now or now[name][1] != part]
    if any(isinstance(one, ServingPool) for one in (*changed, *gone)):
        return False
    return not check_together(related(resources, [*changed, *gone]), invalid=invalid)


def _part(resource: Resource) -> object:
    """Return all of a resource that it is checked by, together with others: what is declared has no status then."""
    if type(resource) in (ServingPool, InferenceModel, Ensemble):
        return type(resource), resource.key, resource.metadata.creation_timestamp, resource.spec
    return resource
