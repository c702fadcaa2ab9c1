"""Rules that span resources: what a set of them, each valid by itself, may not be together."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from argosy.api import Ensemble, InferenceModel, Member, Problem, Reason, Resource, ServingPool
from argosy.api.problems import field_path
from argosy.api.servingpool import RuntimeName
from argosy.api.values.base import Fault
from argosy.api.values.identity import Identity, PoolKey
from argosy.planning.adapters import AdapterModel
from argosy.planning.pinned import PinnedEnsemble
from argosy.planning.validation.affinities import Namespace, check_affinities
from argosy.planning.validation.folders import check_folders
from argosy.planning.validation.graph import NONE_INVALID, Invalid, Served, check_graph, nesting_cycle
from argosy.planning.validation.nodes import check_nodes
from argosy.planning.validation.rollouts import check_rollouts
from argosy.planning.validation.runtimes import check_runtimes
from argosy.planning.variants import (
    Parts,
    RoutedModel,
    VariantModel,
    declared_identity,
    declared_path,
    expanded,
    has_service,
)
from argosy_common.wording import did_you_mean


def check_set(
    resources: Iterable[Resource], sources: Mapping[str, str] | None = None, invalid: Invalid = NONE_INVALID
) -> list[Problem]:
    """Return all problems between resources.

    `sources` gives a resource's file by its identity (`Kind namespace/name`). `invalid` has the identities of those
    that are not among `resources` because of errors of their own.
    """
    declared = list(resources)
    every = list(expanded(declared))
    files = sources or {}
    checks = (
        _repeated(every),
        _shared_names(declared),
        _shared_served_names(every),
        _names_of_variants(every),
        _routed(every),
        _pools(every, invalid),
        _runtimes(every, invalid),
        _engines(every),
        _build_images(every),
        check_folders(every),
        _graphs(every, invalid),
        _nesting(every),
    )
    return [
        Problem(files.get(identity, ""), identity, field_path(path), fault.message, fault.reason)
        for check in checks
        for resource, fault in check
        for identity, path in [(declared_identity(resource), declared_path(resource, fault.path))]
    ]


Faults = Iterator[tuple[Resource, Fault]]


def _repeated(resources: list[Resource]) -> Faults:
    seen: set[str] = set()
    for resource in resources:
        if resource.identity in seen:
            message = f"there are two of {resource.identity}; rename one or remove it"
            yield resource, Fault(message, ("metadata", "name"))
        seen.add(resource.identity)


def check_names(resources: Iterable[Resource]) -> list[Problem]:
    """Return the models and ensembles of a namespace that share a name, whatever their pools, with each other or with
    a variant or adapter that has a Service.
    """
    declared = list(resources)
    parts = [part for part in expanded(declared) if not isinstance(part, Parts) or has_service(part)]
    return [
        Problem("", declared_identity(resource), field_path(declared_path(resource, fault.path)), fault.message)
        for check in (_shared_names(declared), _names_of_variants(parts))
        for resource, fault in check
    ]


def _shared_names(resources: list[Resource]) -> Faults:
    """Yield names that a model and an ensemble of one namespace share: they would share a Service; the
    older keeps it.
    """
    models = {resource.key: resource for resource in resources if isinstance(resource, InferenceModel)}
    for ensemble in resources:
        model = models.get(ensemble.key) if isinstance(ensemble, Ensemble) else None
        if model is not None:
            older, younger = (ensemble, model) if _created(ensemble) < _created(model) else (model, ensemble)
            message = (
                f"there is also an {older.kind} {older.name!r} in namespace {older.namespace!r}, which comes first, "
                f"and clients know both by this name; rename this {younger.kind}, or delete {older.identity}"
            )
            yield younger, Fault(message, ("metadata", "name"))


def _shared_served_names(resources: list[Resource]) -> Faults:
    """Yield names that clients would use for two members of a pool, each of which has a folder so named; the oldest
    keeps it.
    """
    members = [resource for resource in resources if not isinstance(resource, ServingPool)]
    first: dict[tuple[str, str], InferenceModel | Ensemble] = {}
    for member in sorted(members, key=lambda member: (_created(member), member.kind == "Ensemble", member.name)):
        older = first.setdefault((member.pool_key, member.served_name), member)
        if older.name != member.name:
            field = ("metadata", "name") if member.spec.model_name is None else ("spec", "modelName")
            remedy = "choose another" if isinstance(member, Parts) else "set another spec.modelName"
            message = (
                f"clients of pool {member.spec.pool_ref.name!r} know {_described(older)}, which comes first, as "
                f"{member.served_name!r}; {remedy}"
            )
            yield member, Fault(message, field)


def _described(member: InferenceModel | Ensemble) -> str:
    """Return a member as its declaration shows it."""
    if not isinstance(member, Parts):
        return member.identity
    what = "a variant" if isinstance(member, VariantModel) else "an adapter or alias"
    return f"{what} of {member.declared_identity}"


def _names_of_variants(resources: list[Resource]) -> Faults:
    """Yield variants whose model on a server has the name of another resource's, or that resource if it is younger."""
    members = {
        resource.key: resource
        for resource in resources
        if not isinstance(resource, ServingPool | Parts) and resource.spec.pool_ref is not None
    }
    for variant in resources:
        member = members.get(variant.key) if isinstance(variant, Parts) else None
        if member is None or not isinstance(variant, Parts):
            continue
        if _created(variant) < _created(member):
            message = f"it has the name of {_described(variant)}, which comes first; rename this {member.kind}"
            yield member, Fault(message, ("metadata", "name"))
        else:
            message = f"it is served as {variant.name!r}, the name of {member.identity}; rename one of them"
            yield variant, Fault(message, ("metadata", "name"))


def _routed(resources: list[Resource]) -> Faults:
    """Yield models with variants in pools whose server cannot choose among them."""
    pools = {pool.key: pool for pool in resources if isinstance(pool, ServingPool)}
    for model in resources:
        pool = pools.get(model.pool_key) if isinstance(model, RoutedModel | AdapterModel) else None
        if pool is not None and isinstance(model, AdapterModel) and pool.spec.runtime.name is not RuntimeName.ARGOSY:
            message = (
                f"NVIDIA's server of pool {pool.name!r} loads no adapters while it runs: use a pool with runtime.name "
                "argosy, or list them in multi_lora.json among the model's files"
            )
            yield model, Fault(message, ("spec", "adapters"), Reason.UNSUPPORTED_FORMAT)
        elif pool is not None and pool.spec.runtime.name is not RuntimeName.ARGOSY:
            message = (
                f"NVIDIA's server of pool {pool.name!r} does not choose a model by requests in flight: use a pool with "
                "runtime.name argosy, or declare each variant as a model of its own"
            )
            yield model, Fault(message, ("spec", "variants"), Reason.UNSUPPORTED_FORMAT)


def _created(resource: Resource) -> str:
    """Return when a resource was created, in comparable form; one without a time is the newest."""
    return resource.metadata.creation_timestamp or "~"


def _pools(resources: list[Resource], invalid: Invalid) -> Faults:
    pools = {pool.key: pool for pool in resources if isinstance(pool, ServingPool)}
    for resource in resources:
        if isinstance(resource, ServingPool):
            continue
        name, namespace = resource.spec.pool_ref.name, resource.namespace
        identity = Identity.of("ServingPool", namespace, name)
        if resource.pool_key in pools:
            continue
        path = ("spec", "poolRef", "name")
        if identity not in invalid.names:
            names = sorted(pool.name for pool in pools.values() if pool.namespace == namespace)
            hint = did_you_mean(name, names) or "; add one"
            yield resource, Fault(f"there is no ServingPool {name!r} in namespace {namespace!r}{hint}", path)
        elif invalid.is_error:
            yield resource, Fault(f"ServingPool {name!r} is not valid itself; correct that first", path)


def _runtimes(resources: list[Resource], invalid: Invalid) -> Faults:
    of_pools: dict[PoolKey, list[Member]] = {}
    for resource in resources:
        if not isinstance(resource, ServingPool):
            of_pools.setdefault(resource.pool_key, []).append(resource)
    for pool in resources:
        if isinstance(pool, ServingPool):
            members = of_pools.get(pool.key, [])
            yield from check_runtimes(pool, (member for member in members if isinstance(member, InferenceModel)))
            yield from check_rollouts(pool, (member for member in members if not isinstance(member, Parts)))
            yield from check_nodes(pool, members)
            yield from check_affinities(pool.name, members, partial(_namespace, resources, pool, invalid))


def _namespace(resources: Iterable[Resource], pool: ServingPool, invalid: Invalid) -> Namespace:
    """Return what a namespace has outside of a pool: members of its other pools, and resources that are not valid."""
    others = {
        one.name: one.spec.pool_ref.name
        for one in resources
        if not isinstance(one, ServingPool | Parts) and one.namespace == pool.namespace and one.pool_key != pool.key
    }
    return Namespace(others, replace(invalid, names=_members(invalid.names, pool.namespace)))


def _engines(resources: list[Resource]) -> Faults:
    """Yield models with an engine in a pool without an engine cache: raw files never serve in place of an engine."""
    nowhere = {
        pool.key: pool for pool in resources if isinstance(pool, ServingPool) and not pool.spec.storage.engine_cache
    }
    for model in resources:
        if isinstance(model, InferenceModel) and model.spec.engine is not None and model.pool_key in nowhere:
            message = (
                f"pool {nowhere[model.pool_key].name!r} has nowhere to keep engines: set its "
                "spec.storage.engineCache.storageUri, such as s3://bucket/engines, or leave spec.engine out"
            )
            yield model, Fault(message, ("spec", "engine"), Reason.ENGINE_NOT_BUILT)


def _build_images(resources: list[Resource]) -> Faults:
    """Yield models whose build image the pool does not allow: a build has the credentials of its pool."""
    pools = {pool.key: pool for pool in resources if isinstance(pool, ServingPool)}
    for model in resources:
        if isinstance(model, InferenceModel) and model.spec.engine is not None and model.pool_key in pools:
            image, pool = model.spec.engine.image, pools[model.pool_key]
            if image is not None and not pool.spec.allows_build_in(image):
                message = (
                    f"pool {pool.name!r} does not allow builds in {image!r}: leave the field out for the release's "
                    "image, or have the image added to the pool's spec.builds.allowedImages"
                )
                yield model, Fault(message, ("spec", "engine", "image"))


def _graphs(resources: list[Resource], invalid: Invalid) -> Faults:
    served: dict[str, dict[str, Served]] = {}
    pools = {resource.identity for resource in resources if isinstance(resource, ServingPool)} | set(invalid.names)
    for ensemble in resources:
        # a revision that serves was checked when it was declared, with what its steps' models were then
        if isinstance(ensemble, Ensemble) and not isinstance(ensemble, RoutedModel | PinnedEnsemble):
            namespace = ensemble.namespace
            if namespace not in served:
                served[namespace] = _served(resources, namespace)
            has_pool = f"ServingPool {ensemble.pool_key}" in pools
            members = replace(invalid, names=_members(invalid.names, namespace))
            for fault in check_graph(ensemble, served[namespace], members, has_pool):
                yield ensemble, fault


def _served(resources: list[Resource], namespace: str) -> dict[str, Served]:
    """Return a namespace's models and ensembles by name; of one name the one that keeps it."""
    served: dict[str, Served] = {}
    younger = {resource.identity for resource, _ in _shared_names(resources)}
    for kind in (Ensemble, InferenceModel):
        for resource in resources:
            if isinstance(resource, kind) and resource.namespace == namespace and resource.identity not in younger:
                served[resource.name] = resource
    return served


def _members(identities: Iterable[str], namespace: str) -> frozenset[str]:
    """Return the names of the models and ensembles of a namespace that are among these."""
    parsed = map(Identity, identities)
    return frozenset(
        identity.name
        for identity in parsed
        if identity.kind in ("InferenceModel", "Ensemble") and identity.namespace == namespace
    )


def _nesting(resources: list[Resource]) -> Faults:
    for namespace in sorted({resource.namespace for resource in resources}):
        ensembles = {
            name: served for name, served in _served(resources, namespace).items() if isinstance(served, Ensemble)
        }
        cycle = nesting_cycle(ensembles)
        if cycle:
            named = " → ".join((*cycle, cycle[0]))
            message = f"the ensembles hold each other: {named}; an ensemble may not reach itself"
            yield ensembles[cycle[0]], Fault(message, ("spec", "steps"))
