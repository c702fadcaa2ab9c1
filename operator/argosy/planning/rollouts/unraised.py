"""A revision that changes without its version: two of one number cannot be loaded next to each other."""

from collections.abc import Iterable, Iterator, Mapping

from argosy.api import Ensemble, InferenceModel, Problem, Resource
from argosy.planning.rollouts.revision import changed_fields, revision_of
from argosy.planning.rollouts.rounds import RolloutMemory, takes_part


def unraised_versions(resources: Iterable[Resource], before: Mapping[str, RolloutMemory]) -> Iterator[Problem]:
    """Yield a problem for each model whose revision is another one than the stable one, with the same version.

    `before`: what is known of rollouts, by identity. An ensemble's version is raised by the operator.
    """
    for member in resources:
        memory = before.get(member.identity)
        stable = _stable(memory) if memory is not None else None
        if takes_part(member) and not isinstance(member, Ensemble) and isinstance(stable, InferenceModel):
            declared, served = revision_of(member), revision_of(stable)
            if declared.version == served.version and declared.name != served.name:
                yield Problem("", member.identity, "spec.version", _message(stable, member))


def _stable(memory: RolloutMemory) -> Resource | None:
    revision = memory.state.stable if memory.state is not None else memory.last
    return memory.revisions.get(revision.name) if revision is not None else None


def _message(stable: InferenceModel, declared: InferenceModel) -> str:
    version, fields = declared.spec.default_version, ", ".join(changed_fields(stable, declared))
    return (
        f"is {version}, which serves with another {fields}; spec.rollout proves a new version next to the one that "
        f"serves. Raise spec.version, or leave spec.rollout out to load version {version} again with what changed"
    )
