"""Resources as one machine serves them, and what of them has no effect there."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from argosy.api.documents import Resource
from argosy.api.engine.engine import Engine
from argosy.api.inferencemodel import InferenceModel, InferenceModelSpec
from argosy.api.model.footprint import Footprint
from argosy.api.model.variants import Variant, VariantPlacement
from argosy.api.pool.openai import KEYS_FLAG
from argosy.api.pool.packing import Consolidate
from argosy.api.pool.podtemplate import SERVER
from argosy.api.pool.serverflags import setting_flags
from argosy.api.pool.tracing import tracing_flags
from argosy.api.problems import field_path
from argosy.api.servingpool import EngineCache, Runtime, RuntimeName, ServingPool
from argosy.api.values.storage import ModelStorage
from argosy.local.servers.server import ServerSettings
from argosy.planning.amounts import quantity

ONE_NODE = "this machine is the only node"
_GPUS_TO_FREE_ONE = 2
"""What is on one GPU has to go to another one before it is free."""


def for_this_machine(resources: Iterable[Resource], gpus: int, engines: Path | None = None) -> tuple[Resource, ...]:
    """Return the resources changed so that one machine can serve them.

    The machine is every pool's only node, models have at most one replica for each GPU, and every pool runs the bundled
    server. Pools without an engine cache use the folder `engines`.
    """
    stored = resources if engines is None else with_engine_store(resources, engines)
    return tuple(_for_this_machine(resource, max(1, gpus)) for resource in stored)


def with_engine_store(resources: Iterable[Resource], engines: Path) -> tuple[Resource, ...]:
    """Return the resources; pools without an engine cache use the folder `engines`."""
    cache = EngineCache(storage_uri=engines.absolute().as_uri())
    return tuple(with_cache(resource, cache) if _lacks_cache(resource) else resource for resource in resources)


def with_cache(resource: Resource, cache: EngineCache) -> Resource:
    """Return a pool with that engine cache; any other resource unchanged."""
    if not isinstance(resource, ServingPool):
        return resource
    storage = resource.spec.storage.model_copy(update={"engine_cache": cache})
    return resource.model_copy(update={"spec": resource.spec.model_copy(update={"storage": storage})})


def settings(resources: Iterable[Resource]) -> dict[str, ServerSettings]:
    """Return the settings of each pool's servers, by pool key.

    A variable with `valueFrom` is left as this process has it.
    """
    return {pool.key: _settings(pool) for pool in resources if isinstance(pool, ServingPool)}


def _settings(pool: ServingPool) -> ServerSettings:
    spec = pool.spec
    variables = [variable for _, variable in spec.runtime.pod_template.server_variables()]
    return ServerSettings(
        {variable["name"]: str(variable.get("value") or "") for variable in variables if "valueFrom" not in variable},
        (*setting_flags(spec.rate_limit, spec.cache), *tracing_flags(spec.tracing), *spec.runtime.args),
    )


def without_effect(resources: Iterable[Resource], gpus: int) -> list[str]:
    """Return a line for each setting that has no effect on a single machine with so many GPUs."""
    return [
        f"{item.identity}: {field}: {reason}" for item in resources for field, reason in _without_effect(item, gpus)
    ]


def _without_effect(resource: Resource, gpus: int) -> Iterator[tuple[str, str]]:
    if isinstance(resource, ServingPool):
        if resource.spec.packing.consolidate is Consolidate.AUTO and gpus < _GPUS_TO_FREE_ONE:
            yield "spec.packing.consolidate", f"this machine has {quantity(gpus, 'GPU')}, and none comes free by a move"
        for field, reason in _of_the_runtime(resource.spec.runtime):
            yield f"spec.runtime.{field}", reason
        yield from _secrets_of(resource)
        return
    if resource.spec.node_selector:
        yield "spec.nodeSelector", ONE_NODE
    if resource.spec.topology_spread:
        yield "spec.topologySpread", ONE_NODE
    if resource.spec.anti_affinity:
        yield "spec.antiAffinity", ONE_NODE
    if not resource.spec.least_replicas:
        yield "spec.minReplicas", "it does not go to zero: argosy up holds no requests for what has no replica"
    if isinstance(resource, InferenceModel):
        yield from _of_the_model(resource.spec)


def _of_the_model(spec: InferenceModelSpec) -> Iterator[tuple[str, str]]:
    if spec.footprint is not None and spec.footprint.gpu_type is not None:
        yield "spec.footprint.gpuType", ONE_NODE
    if spec.routing.placement is not VariantPlacement.SAME_SERVER:
        yield "spec.routing.placement", "variants share a server, which chooses one for each request"
    if spec.storage.secret_name:
        yield "spec.storage.secretName", "there is no cluster to read it from; credentials are those of this shell"
    for field in ("image", "memory"):
        if spec.engine is not None and getattr(spec.engine, field) is not None:
            yield f"spec.engine.{field}", "the builder is a process of this machine, not a container"


def _secrets_of(pool: ServingPool) -> Iterator[tuple[str, str]]:
    if pool.spec.openai.api_keys is not None:
        yield "spec.openai.apiKeys", f"there is no cluster to read it from; set {KEYS_FLAG} in spec.runtime.args"
    prometheus = pool.spec.monitoring.prometheus
    if prometheus is not None and prometheus.secret_name is not None:
        where = "spec.monitoring.prometheus.secretName"
        yield where, "there is no cluster to read it from; queries are sent without credentials"


def _of_the_runtime(runtime: Runtime) -> Iterator[tuple[str, str]]:
    template = runtime.pod_template
    if runtime.name is not RuntimeName.ARGOSY:
        yield "name", f"argosy up runs the bundled server, not {runtime.name}"
    no_container = "the server is a process of this machine, not a container"
    if runtime.image is not None:
        yield "image", no_container
    only_variables = {
        "containers": [{"name": SERVER, "env": [variable for _, variable in template.server_variables()]}]
    }
    if template.metadata.model_fields_set or template.spec not in ({}, only_variables):
        yield "podTemplate", f"{no_container}; of the template it has the variables of container {SERVER}"
    for path, variable in template.server_variables():
        if "valueFrom" in variable:
            where = field_path(("podTemplate", *path, "valueFrom"))
            yield where, f"there is no cluster to read it from; {variable['name']} stays as it is in this shell"


def _engine_here(engine: Engine | None) -> Engine | None:
    """Return an engine for the installed builder, which runs in no container."""
    return engine.model_copy(update={"image": None, "memory": None}) if engine is not None else None


def _variant_here(variant: Variant) -> dict[str, Any]:
    """Return the changes of a variant."""
    engine, footprint = _engine_here(variant.engine), _on_any_gpu(variant.footprint)
    return {"storage": None, "engine": engine, "footprint": footprint}


def _on_any_gpu(footprint: Footprint | None) -> Footprint | None:
    """Return a footprint for any GPU that has the declared precisions."""
    return footprint.model_copy(update={"gpu_type": None}) if footprint is not None else None


def _lacks_cache(resource: Resource) -> bool:
    return isinstance(resource, ServingPool) and resource.spec.storage.engine_cache is None


def _for_this_machine(resource: Resource, gpus: int) -> Resource:
    if isinstance(resource, ServingPool):
        runtime = resource.spec.runtime.model_copy(update={"name": RuntimeName.ARGOSY})
        spec = resource.spec.model_copy(update={"node_selector": {}, "runtime": runtime})
        return resource.model_copy(update={"spec": spec})
    fewest = min(max(1, resource.spec.fewest_replicas), gpus)
    most = fewest if resource.spec.replicas is not None else max(fewest, min(resource.spec.most_replicas, gpus))
    update: dict[str, Any] = {"replicas": None, "min_replicas": fewest, "max_replicas": most}
    update |= {"node_selector": {}, "topology_spread": (), "anti_affinity": ()}
    if resource.spec.scaling is not None:  # schedules are for clusters
        update["scaling"] = resource.spec.scaling.model_copy(update={"schedules": ()})
    if isinstance(resource, InferenceModel):
        update["routing"] = resource.spec.routing.model_copy(update={"placement": VariantPlacement.SAME_SERVER})
        update["storage"] = ModelStorage()  # without Secrets credentials are those of this shell
        update["engine"] = _engine_here(resource.spec.engine)
        update["footprint"] = _on_any_gpu(resource.spec.footprint)
        update["variants"] = tuple(
            variant.model_copy(update=_variant_here(variant)) for variant in resource.spec.variants
        )
        return resource.model_copy(update={"spec": resource.spec.model_copy(update=update)})
    return resource.model_copy(update={"spec": resource.spec.model_copy(update=update)})
