"""Revisions that cannot be loaded next to the one that serves: of one version with it, or, on NVIDIA's server, which
has one configuration for all versions of a model, of another configuration.
"""

from collections.abc import Iterable, Iterator, Mapping

from argosy.api import Ensemble, InferenceModel, Problem, Resource, ServingPool
from argosy.api.servingpool import RuntimeName
from argosy.planning.rollouts.member import takes_part
from argosy.planning.rollouts.memory import RolloutMemory
from argosy.planning.rollouts.revision import changed_fields, revision_of

_OF_VERSIONS = frozenset({"version", "versions", "storageUri", "digest"})
"""The fields that each version has of its own."""
_SHARED = (
    "differs from the version that serves, and NVIDIA's server has one configuration for all versions of a model: "
    "change it without a new version and without spec.rollout, or use a pool with runtime.name argosy"
)


def unraised_versions(resources: Iterable[Resource], before: Mapping[str, RolloutMemory]) -> Iterator[Problem]:
    """Yield a problem for each model whose revision is another one than the stable one, with the same version.

    Or whose version is another one, together with what its server has one of for all versions. `before`: what is known
    of rollouts, by identity. An ensemble's version is raised by the operator.
    """
    every = tuple(resources)
    pools = {pool.key: pool for pool in every if isinstance(pool, ServingPool)}
    for member in every:
        memory = before.get(member.identity)
        stable = _stable(memory) if memory is not None else None
        if takes_part(member) and not isinstance(member, Ensemble) and isinstance(stable, InferenceModel):
            declared, served = revision_of(member), revision_of(stable)
            if declared.version == served.version and declared.name != served.name:
                yield Problem("", member.identity, "spec.version", _message(stable, member))
            elif not _is_bundled(pools.get(member.pool_key)):
                others = [field for field in changed_fields(stable, member) if field not in _OF_VERSIONS]
                for field in others:
                    yield Problem("", member.identity, f"spec.{field}", _SHARED)


def _is_bundled(pool: ServingPool | None) -> bool:
    return pool is None or pool.spec.runtime.name is RuntimeName.ARGOSY


def _stable(memory: RolloutMemory) -> Resource | None:
    revision = memory.state.stable if memory.state is not None else memory.last
    return memory.revisions.get(revision.name) if revision is not None else None


def _message(stable: InferenceModel, declared: InferenceModel) -> str:
    version, fields = declared.spec.default_version, ", ".join(changed_fields(stable, declared))
    return (
        f"is {version}, which serves with another {fields}; spec.rollout proves a new version next to the one that "
        f"serves. Raise spec.version, or leave spec.rollout out to load version {version} again with what changed"
    )
