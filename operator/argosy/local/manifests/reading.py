"""Manifests from files: every resource, and every problem, at once."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from argosy.api.documents import KINDS, Resource, parse_documents
from argosy.api.engine.engine import Engine
from argosy.api.inferencemodel import InferenceModel
from argosy.api.model.variants import Variant
from argosy.api.problems import Problem
from argosy.api.servingpool import ServingPool
from argosy.api.values.meta import GROUP
from argosy_agent.transfer.localfiles import is_file, local_path

SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Manifests:
    """What a file or a folder declares.

    A resource that a problem names is invalid, or missing in `resources`."""

    resources: tuple[Resource, ...]
    problems: tuple[Problem, ...]
    sources: Mapping[str, str] = field(default_factory=dict)
    """The resources' files by identity."""
    repeating: frozenset[str] = frozenset()
    """The files with a resource of which there are two."""


def read_manifests(*paths: Path) -> Manifests:
    """Return the resources in files, and in every .yaml and .yml file below folders.

    Hidden folders and other kinds of objects are skipped. `file:` URIs, which are relative to their manifest, become
    absolute. Pools may read every folder, since the files are those of the person who runs the command.
    """
    resources: list[Resource] = []
    problems: list[Problem] = []
    sources: dict[str, str] = {}
    duplicates: dict[str, list[str]] = {}
    for file in (file for path in paths for file in _files(path)):
        try:
            declared, errors = _read(file)
        except (OSError, UnicodeDecodeError) as error:
            declared, errors = [], [Problem(str(file), "", "", unreadable(error))]
        resources += declared
        problems += errors
        for resource in declared:
            duplicates.setdefault(resource.identity, []).append(str(file))
            sources[resource.identity] = str(file)
    duplicates = {identity: files for identity, files in duplicates.items() if len(files) > 1}
    problems += (_duplicates(identity, files) for identity, files in duplicates.items())
    if not resources and not problems:
        problems.append(Problem(", ".join(map(str, paths)), "", "", f"holds no {GROUP} resources ({', '.join(KINDS)})"))
    return Manifests(tuple(resources), tuple(problems), sources, frozenset[str]().union(*duplicates.values()))


def unreadable(error: OSError | UnicodeDecodeError) -> str:
    """Return why a file cannot be read, for messages that name it."""
    match error:
        case FileNotFoundError():
            return "there is no such file or folder"
        case IsADirectoryError():
            return "is a folder; name a file"
        case UnicodeDecodeError():
            return "is no text in UTF-8"
    return f"cannot be read: {error.strerror or error}"


def _duplicates(identity: str, files: Sequence[str]) -> Problem:
    first = files[0] if files[0] != files[-1] else "the same file"
    return Problem(files[-1], identity, "", f"there are two of {identity}, one in {first}; rename one or remove it")


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(folder) / name for name in sorted(names) if name.endswith(SUFFIXES))


def _read(file: Path) -> tuple[list[Resource], list[Problem]]:
    resources, problems = parse_documents(file.read_text(), str(file))
    return [_with_absolute_uris(resource, file) for resource in resources], problems


def _with_absolute_uris(resource: Resource, file: Path) -> Resource:
    """Return the resource with its `file:` URIs made absolute."""
    if isinstance(resource, ServingPool):
        return _absolute_pool(resource, file)
    if not isinstance(resource, InferenceModel):
        return resource
    update: dict[str, Any] = {}
    if resource.spec.engine is not None:
        update["engine"] = _absolute_engine(resource.spec.engine, file)
    if resource.spec.storage_uri is not None:
        update["storage_uri"] = _absolute(resource.spec.storage_uri, file)
    if resource.spec.versions:
        update["versions"] = tuple(
            version.model_copy(update={"storage_uri": _absolute(version.storage_uri, file)})
            for version in resource.spec.versions
        )
    if resource.spec.adapters:
        update["adapters"] = tuple(
            adapter.model_copy(update={"storage_uri": _absolute(adapter.storage_uri, file)})
            for adapter in resource.spec.adapters
        )
    if resource.spec.variants:
        update["variants"] = tuple(_absolute_variant(variant, file) for variant in resource.spec.variants)
    return resource.model_copy(update={"spec": resource.spec.model_copy(update=update)})


def _absolute_variant(variant: Variant, file: Path) -> Variant:
    update: dict[str, Any] = {}
    if variant.engine is not None:
        update["engine"] = _absolute_engine(variant.engine, file)
    if variant.storage_uri is not None:
        update["storage_uri"] = _absolute(variant.storage_uri, file)
    return variant.model_copy(update=update)


def _absolute_pool(pool: ServingPool, file: Path) -> Resource:
    cache, update = pool.spec.storage.engine_cache, dict[str, Any](allowed_folders=("/",))
    if cache is not None:
        update["engine_cache"] = cache.model_copy(update={"storage_uri": _absolute(cache.storage_uri, file)})
    storage = pool.spec.storage.model_copy(update=update)
    return pool.model_copy(update={"spec": pool.spec.model_copy(update={"storage": storage})})


def _absolute_engine(engine: Engine, file: Path) -> Engine:
    """Return the engine with the URIs of its data and its script made absolute."""
    update: dict[str, Any] = {}
    if engine.calibration is not None:
        data = _absolute(engine.calibration.data_uri, file)
        update["calibration"] = engine.calibration.model_copy(update={"data_uri": data})
    if engine.accuracy is not None:
        uris = {name: getattr(engine.accuracy, name) for name in ("data_uri", "script")}
        absolute = {name: _absolute(uri, file) for name, uri in uris.items() if uri is not None}
        update["accuracy"] = engine.accuracy.model_copy(update=absolute)
    return engine.model_copy(update=update)


def _absolute(uri: str, file: Path) -> str:
    return (file.parent / local_path(uri)).resolve().as_uri() if is_file(uri) else uri
