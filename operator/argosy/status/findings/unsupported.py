"""Settings that this release accepts and does not act on. A condition reports each of them.

For settings that only one of the runtimes supports, the pool's runtime decides.
"""

from collections.abc import Callable, Iterable, Mapping

from argosy.api import Ensemble, InferenceModel, Resource, ServingPool
from argosy.api.model.rollout.rollout import Rollout
from argosy.api.pool.packing import Consolidate, Packing
from argosy.api.servingpool import RuntimeName
from argosy.api.values.identity import PoolKey

_CHAT = "only the bundled server makes a pipeline a chat model of OpenAI's API"
_WITHOUT_STEPS = "without steps and shadow a new version takes all requests once it is loaded; add spec.rollout.steps"
_FIXED = (
    "spec.replicas is outside of it, and decides while it is set; change one of the two, or leave spec.replicas out to "
    "have Argosy scale between the bounds"
)
_OFF = 'spec.packing.consolidate is "Off", so nothing is moved; set it to Auto or Recommend'


def _exceeds(member: InferenceModel | Ensemble) -> bool:
    """Return whether `minReplicas` is more than the `replicas` that are set."""
    least, fixed = member.spec.min_replicas, member.spec.replicas
    return least is not None and fixed is not None and least > fixed


def _falls_short(member: InferenceModel | Ensemble) -> bool:
    """Return whether `maxReplicas` is less than the `replicas` that are set."""
    most, fixed = member.spec.max_replicas, member.spec.replicas
    return most is not None and fixed is not None and most < fixed


def _is_idle(member: InferenceModel | Ensemble, field: str) -> bool:
    """Return whether a field of spec.rollout is set that says how a new version is proven, and none is."""
    rollout = member.spec.rollout
    return rollout is not None and not rollout.proves and bool(getattr(rollout, field) != getattr(Rollout(), field))


def _is_unused(pool: ServingPool, field: str) -> bool:
    """Return whether a field of spec.packing is set that says how a fleet is consolidated, and it is not."""
    packing = pool.spec.packing
    is_set = bool(getattr(packing, field) != getattr(Packing(), field))
    return is_set and packing.consolidate is Consolidate.OFF


def _caches(model: InferenceModel) -> bool:
    cache = model.spec.config.get("response_cache")
    return isinstance(cache, Mapping) and cache.get("enable") is True


_MEMBER: Mapping[str, tuple[Callable[[InferenceModel | Ensemble, ServingPool], bool], str]] = {
    "spec.chat": (lambda member, pool: member.spec.chat is not None and not _is_bundled(pool), _CHAT),
    "spec.minReplicas": (lambda member, _: _exceeds(member), _FIXED),
    "spec.maxReplicas": (lambda member, _: _falls_short(member), _FIXED),
    "spec.rollout.analysis": (lambda member, _: _is_idle(member, "analysis"), _WITHOUT_STEPS),
    "spec.rollout.sticky": (lambda member, _: _is_idle(member, "sticky"), _WITHOUT_STEPS),
    "spec.rollout.paused": (lambda member, _: _is_idle(member, "paused"), _WITHOUT_STEPS),
}
_MODEL: Mapping[str, tuple[Callable[[InferenceModel, ServingPool], bool], str]] = {
    "spec.rateLimiter": (
        lambda model, pool: model.spec.rate_limited and pool.spec.rate_limit is None,
        "instances run whenever they are free: servers limit them with the pool's spec.rateLimit alone",
    ),
    "spec.config.response_cache": (
        lambda model, pool: pool.spec.cache is None and _caches(model),
        "answers are not kept: servers keep them with the pool's spec.cache alone",
    ),
    **_MEMBER,
}
_POOL: Mapping[str, tuple[Callable[[ServingPool], bool], str]] = {
    "spec.packing.consolidateAfter": (lambda pool: _is_unused(pool, "consolidate_after"), _OFF),
    "spec.packing.consolidationBudget": (lambda pool: _is_unused(pool, "consolidation_budget"), _OFF),
}


def settings_without_effect(resources: Iterable[Resource]) -> list[str]:
    """Return a line for each resource with settings that have no effect on its pool's servers."""
    every = tuple(resources)
    pools = {resource.key: resource for resource in every if isinstance(resource, ServingPool)}
    lines = ((resource, _unused(resource, pools)) for resource in every)
    return [f"{resource.identity}: without effect in this release: {unused}" for resource, unused in lines if unused]


def _unused(resource: Resource, pools: Mapping[PoolKey, ServingPool]) -> str:
    if isinstance(resource, ServingPool):
        return unused_pool_settings(resource)
    pool = pools.get(resource.pool_key)
    if pool is None:
        return ""
    if isinstance(resource, InferenceModel):
        return unused_model_settings(resource, pool)
    return unused_ensemble_settings(resource, pool)


def unused_model_settings(model: InferenceModel, pool: ServingPool) -> str:
    """Return what of the spec has no effect on this pool's servers, in words; empty if all has."""
    return "; ".join(f"{field}: {says}" for field, (is_set, says) in _MODEL.items() if is_set(model, pool))


def unused_ensemble_settings(ensemble: Ensemble, pool: ServingPool) -> str:
    """Return what of the spec has no effect on this pool's servers, in words; empty if all has."""
    return "; ".join(f"{field}: {says}" for field, (is_set, says) in _MEMBER.items() if is_set(ensemble, pool))


def unused_pool_settings(pool: ServingPool) -> str:
    """Return what of the pool's spec has no effect, in words; empty if all has."""
    return "; ".join(f"{field}: {says}" for field, (is_set, says) in _POOL.items() if is_set(pool))


def _is_bundled(pool: ServingPool) -> bool:
    return pool.spec.runtime.name is RuntimeName.ARGOSY
