"""Which form of a model is acted upon while the engines of the one that is declared are built."""

from collections.abc import Iterable, Mapping

from argosy.api.documents import Resource
from argosy.api.inferencemodel import InferenceModel
from argosy.api.values.identity import PoolKey
from argosy.planning.builds.engines import EngineFacts, waits
from argosy.planning.builds.pool import PoolEngines
from argosy.planning.validation.accept import Accepted, Check, former_of, hold_back

Facts = Mapping[PoolKey, EngineFacts]
"""What the engines of each pool are told from."""


def held_back(accepted: Accepted, last: Mapping[str, Resource], facts: Facts, check: Check) -> Accepted:
    """Return what is accepted, without the forms that lack an engine where their former ones serve: these go on.

    `last` has the form of each resource that was acted upon before, by identity.
    """
    waiting = [model.identity for model in _models(accepted.valid) if _waits(model, last, facts)]
    return hold_back(accepted, waiting, last, check) if waiting else accepted


def pool_engines(declared: Accepted, accepted: Accepted, facts: Facts) -> dict[PoolKey, PoolEngines]:
    """Return the engines of each pool's models, in the form that is declared and in the one that is acted upon."""
    return {
        key: PoolEngines.of(known, _models(declared.valid, key), _models(accepted.valid, key))
        for key, known in facts.items()
    }


def _waits(model: InferenceModel, last: Mapping[str, Resource], facts: Facts) -> bool:
    former, known = former_of(model, last), facts.get(model.pool_key)
    if model.spec.engine is None or known is None or not isinstance(former, InferenceModel):
        return False
    return former.pool_key == model.pool_key and waits(known.of(model), known.of(former))


def _models(resources: Iterable[Resource], pool: PoolKey | None = None) -> list[InferenceModel]:
    """The models among resources, or those of one pool."""
    return [each for each in resources if isinstance(each, InferenceModel) and pool in (None, each.pool_key)]
