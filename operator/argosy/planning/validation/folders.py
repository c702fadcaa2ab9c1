"""Files of a Pod that a model may name: those in folders that its pool allows."""

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from argosy.api import InferenceModel, Resource, ServingPool
from argosy.api.values.base import Fault
from argosy.api.values.derived import cached_with_spec
from argosy.api.values.storage import file_path

Path = tuple[str | int, ...]


def check_folders(resources: Iterable[Resource]) -> Iterator[tuple[Resource, Fault]]:
    """Yield what models read by `file:` outside of the folders that their pool allows."""
    every = list(resources)
    pools = {pool.key: pool for pool in every if isinstance(pool, ServingPool)}
    for model in every:
        pool = pools.get(model.pool_key) if isinstance(model, InferenceModel) else None
        if isinstance(model, InferenceModel) and pool is not None:
            for path, file in _files(model):
                if not _is_allowed(file, pool.spec.storage.allowed_folders):
                    yield model, Fault(_refusal(pool), path)


@cached_with_spec
def _files(model: InferenceModel) -> tuple[tuple[Path, str], ...]:
    """Return the files of a Pod that are fetched for a model, by field."""
    return tuple((path, file) for path, uri in _uris(model) if (file := file_path(uri)))


def _uris(model: InferenceModel) -> Iterator[tuple[Path, str]]:
    """Yield all that is fetched for a model, by field."""
    spec = model.spec
    if spec.storage_uri is not None:
        yield ("spec", "storageUri"), spec.storage_uri
    for index, version in enumerate(spec.versions):
        yield ("spec", "versions", index, "storageUri"), version.storage_uri
    if spec.engine is not None and spec.engine.calibration is not None:
        yield ("spec", "engine", "calibration", "dataUri"), spec.engine.calibration.data_uri
    if spec.engine is not None and spec.engine.accuracy is not None:
        named = {"dataUri": spec.engine.accuracy.data_uri, "script": spec.engine.accuracy.script}
        yield from ((("spec", "engine", "accuracy", name), uri) for name, uri in named.items() if uri is not None)


def _is_allowed(path: str, folders: Iterable[str]) -> bool:
    """Return whether a path lies below one of these folders. Where links lead is for the agent to see."""
    plain = PurePosixPath(path)
    return ".." not in plain.parts and any(plain.is_relative_to(folder) for folder in folders)


def _refusal(pool: ServingPool) -> str:
    allowed = ", ".join(pool.spec.storage.allowed_folders) or "none"
    return (
        f"in a cluster file: names files of the pool's Pods, and spec.storage.allowedFolders of pool {pool.name!r} has "
        f"{allowed}; name a storage such as s3://bucket/model or pvc://claim/model, or have the folder added there"
    )
