"""Manifests from a folder: every resource, and everything that is wrong, at once."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from argosy.api.documents import KINDS, Resource, parse_body
from argosy.api.engine.engine import Engine
from argosy.api.inferencemodel import InferenceModel
from argosy.api.pool.podtemplate import SERVER
from argosy.api.pool.serverflags import setting_flags
from argosy.api.problems import Problem, field_path
from argosy.api.servingpool import EngineCache, Runtime, RuntimeName, ServingPool
from argosy.api.values.meta import GROUP
from argosy.api.values.storage import ModelStorage
from argosy.api.yamltext import YamlTextError, read_documents
from argosy.local.servers.server import ServerSettings
from argosy_agent.transfer.localfiles import is_file, local_path

SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Manifests:
    """What a folder declares. With problems the resources are not all there, and those that one names are not right."""

    resources: tuple[Resource, ...]
    problems: tuple[Problem, ...]
    sources: Mapping[str, str] = field(default_factory=dict)
    """Each resource's file, by its identity."""


def read_manifests(path: Path) -> Manifests:
    """Return the resources in a file, or in every .yaml and .yml below a folder; hidden folders are passed over.

    Other kinds of Kubernetes objects are passed over too. A relative `file:` URI becomes absolute: it is
    relative to the manifest that has it. A pool may read every folder: its files are those of the person who runs this.
    """
    resources: list[Resource] = []
    problems: list[Problem] = []
    sources: dict[str, str] = {}
    twins: dict[str, list[str]] = {}
    for file in _files(path):
        try:
            found, wrong = _read(file)
        except (OSError, UnicodeDecodeError) as error:
            found, wrong = [], [Problem(str(file), "", "", f"cannot be read: {error}")]
        resources += found
        problems += wrong
        for resource in found:
            twins.setdefault(resource.identity, []).append(str(file))
            sources[resource.identity] = str(file)
    problems += (_twins(identity, files) for identity, files in twins.items() if len(files) > 1)
    if not resources and not problems:
        problems.append(Problem(str(path), "", "", f"holds no {GROUP} resources ({', '.join(KINDS)})"))
    return Manifests(tuple(resources), tuple(problems), sources)


def _twins(identity: str, files: Sequence[str]) -> Problem:
    first = files[0] if files[0] != files[-1] else "the same file"
    return Problem(files[-1], identity, "", f"there are two of {identity}, one in {first}; rename one or remove it")


def for_this_machine(resources: Iterable[Resource], gpus: int, engines: Path | None = None) -> tuple[Resource, ...]:
    """Return the same resources as one machine can serve them.

    It is every pool's node, with a replica per GPU at most, and the bundled server is every pool's runtime. A pool that
    keeps its engines nowhere keeps them in the folder `engines`.
    """
    kept = resources if engines is None else with_engine_store(resources, engines)
    return tuple(_for_this_machine(resource, max(1, gpus)) for resource in kept)


def with_engine_store(resources: Iterable[Resource], engines: Path) -> tuple[Resource, ...]:
    """Return the same, where pools that keep their engines nowhere keep them in the folder `engines`."""
    cache = EngineCache(storage_uri=engines.absolute().as_uri())
    return tuple(with_cache(each, cache) if _lacks_cache(each) else each for each in resources)


def with_cache(resource: Resource, cache: EngineCache) -> Resource:
    """Return a pool that keeps its engines there; anything else as it is."""
    if not isinstance(resource, ServingPool):
        return resource
    storage = resource.spec.storage.model_copy(update={"engine_cache": cache})
    return resource.model_copy(update={"spec": resource.spec.model_copy(update={"storage": storage})})


def settings(resources: Iterable[Resource]) -> dict[str, ServerSettings]:
    """Return what each pool sets for its servers, by its key. A variable kept elsewhere stays as this process
    has it.
    """
    return {pool.key: _settings(pool) for pool in resources if isinstance(pool, ServingPool)}


def _settings(pool: ServingPool) -> ServerSettings:
    spec = pool.spec
    variables = (each for _, each in spec.runtime.pod_template.server_variables() if "valueFrom" not in each)
    return ServerSettings(
        {each["name"]: str(each.get("value") or "") for each in variables},
        (*setting_flags(spec.rate_limit, spec.cache), *spec.runtime.args),
    )


def without_effect(resources: Iterable[Resource]) -> list[str]:
    """Return what resources ask for that a single machine does not do, a line each."""
    return [f"{each.identity}: {field}: {reason}" for each in resources for field, reason in _without_effect(each)]


def _without_effect(resource: Resource) -> Iterator[tuple[str, str]]:
    if isinstance(resource, ServingPool):
        for field, reason in _of_the_runtime(resource.spec.runtime):
            yield f"spec.runtime.{field}", reason
        return
    if not resource.spec.min_replicas:
        yield "spec.minReplicas", "it does not go to zero: argosy up holds no requests for what has no replica"
    if isinstance(resource, InferenceModel):
        if resource.spec.storage.secret_name:
            yield "spec.storage.secretName", "there is no cluster to read it from; credentials are those of this shell"
        for field in ("image", "memory"):
            if resource.spec.engine is not None and getattr(resource.spec.engine, field) is not None:
                yield f"spec.engine.{field}", "the builder is a process of this machine, not a container"


def _of_the_runtime(runtime: Runtime) -> Iterator[tuple[str, str]]:
    template = runtime.pod_template
    if runtime.name is not RuntimeName.ARGOSY:
        yield "name", f"argosy up runs the bundled server, not {runtime.name}"
    no_container = "the server is a process of this machine, not a container"
    if runtime.image is not None:
        yield "image", no_container
    only_variables = {"containers": [{"name": SERVER, "env": [each for _, each in template.server_variables()]}]}
    if template.metadata.model_fields_set or template.spec not in ({}, only_variables):
        yield "podTemplate", f"{no_container}; of the template it has the variables of container {SERVER}"
    for path, variable in template.server_variables():
        if "valueFrom" in variable:
            where = field_path(("podTemplate", *path, "valueFrom"))
            yield where, f"there is no cluster to read it from; {variable['name']} stays as it is in this shell"


def _lacks_cache(resource: Resource) -> bool:
    return isinstance(resource, ServingPool) and resource.spec.storage.engine_cache is None


def _for_this_machine(resource: Resource, copies: int) -> Resource:
    if isinstance(resource, ServingPool):
        runtime = resource.spec.runtime.model_copy(update={"name": RuntimeName.ARGOSY})
        spec = resource.spec.model_copy(update={"node_selector": {}, "runtime": runtime})
        return resource.model_copy(update={"spec": spec})
    fewest = min(max(1, resource.spec.fewest_replicas), copies)
    most = fewest if resource.spec.replicas is not None else max(fewest, min(resource.spec.most_replicas, copies))
    update: dict[str, Any] = {"replicas": None, "min_replicas": fewest, "max_replicas": most}
    if resource.spec.scaling is not None:  # nobody keeps office hours by a laptop
        update["scaling"] = resource.spec.scaling.model_copy(update={"schedules": ()})
    if isinstance(resource, InferenceModel):
        update["storage"] = ModelStorage()  # there are no Secrets here: credentials are this shell's
        if resource.spec.engine is not None:  # nor containers: what builds is installed here
            update["engine"] = resource.spec.engine.model_copy(update={"image": None, "memory": None})
        return resource.model_copy(update={"spec": resource.spec.model_copy(update=update)})
    return resource.model_copy(update={"spec": resource.spec.model_copy(update=update)})


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(folder) / name for name in sorted(names) if name.endswith(SUFFIXES))


def _read(file: Path) -> tuple[list[Resource], list[Problem]]:
    resources: list[Resource] = []
    problems: list[Problem] = []
    try:
        for number, document in enumerate(read_documents(file.read_text()), 1):
            for label, body in _bodies(document.value, f"document {number}"):
                found, wrong = parse_body(body, str(file), label)
                problems += [Problem(str(file), label, "", str(fault)) for fault in document.repeated]
                problems += wrong
                if found is not None and not document.repeated:
                    resources.append(_anchored(found, file))
    except YamlTextError as fault:
        problems.append(Problem(str(file), "", "", str(fault)))
    return resources, problems


def _bodies(value: Any, label: str) -> Iterator[tuple[str, Any]]:
    """The bodies in a document that are Argosy's, or might have been meant to be: a `List`'s items each."""
    if not isinstance(value, dict):
        yield label, value
    elif str(value.get("kind", "")).endswith("List") and isinstance(value.get("items"), list):
        for index, item in enumerate(value["items"]):
            yield from _bodies(item, f"{label} items[{index}]")
    elif value.get("kind") in KINDS or str(value.get("apiVersion", GROUP)).partition("/")[0] == GROUP:
        yield label, value


def _anchored(resource: Resource, file: Path) -> Resource:
    """The resource with its `file:` URIs made absolute."""
    if isinstance(resource, ServingPool):
        return _anchored_pool(resource, file)
    if not isinstance(resource, InferenceModel):
        return resource
    update: dict[str, Any] = {}
    if resource.spec.engine is not None:
        update["engine"] = _anchored_engine(resource.spec.engine, file)
    if resource.spec.storage_uri is not None:
        update["storage_uri"] = _absolute(resource.spec.storage_uri, file)
    if resource.spec.versions:
        update["versions"] = tuple(
            each.model_copy(update={"storage_uri": _absolute(each.storage_uri, file)})
            for each in resource.spec.versions
        )
    return resource.model_copy(update={"spec": resource.spec.model_copy(update=update)})


def _anchored_pool(pool: ServingPool, file: Path) -> Resource:
    cache, update = pool.spec.storage.engine_cache, dict[str, Any](allowed_folders=("/",))
    if cache is not None:
        update["engine_cache"] = cache.model_copy(update={"storage_uri": _absolute(cache.storage_uri, file)})
    storage = pool.spec.storage.model_copy(update=update)
    return pool.model_copy(update={"spec": pool.spec.model_copy(update={"storage": storage})})


def _anchored_engine(engine: Engine, file: Path) -> Engine:
    """An engine's data and script, like the model's files."""
    update: dict[str, Any] = {}
    if engine.calibration is not None:
        data = _absolute(engine.calibration.data_uri, file)
        update["calibration"] = engine.calibration.model_copy(update={"data_uri": data})
    if engine.accuracy is not None:
        given = {name: getattr(engine.accuracy, name) for name in ("data_uri", "script")}
        absolute = {name: _absolute(uri, file) for name, uri in given.items() if uri is not None}
        update["accuracy"] = engine.accuracy.model_copy(update=absolute)
    return engine.model_copy(update=update)


def _absolute(uri: str, file: Path) -> str:
    return (file.parent / local_path(uri)).resolve().as_uri() if is_file(uri) else uri
