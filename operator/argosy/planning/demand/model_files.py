"""Where a declared version's files come from, and what it is said to take of a GPU."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from argosy.api.inferencemodel import InferenceModel
from argosy.planning.demand.engine_files import EngineFiles
from argosy.planning.demand.footprint import footprint_of
from argosy_agent.contract import VersionSource

MODEL_FILES = {
    "onnxruntime": (".onnx",),
    "python": (".py",),
    "pytorch": (".pt", ".pt2"),
    "tensorrt": (".plan",),
}
"""The suffixes of the one file that a version may consist of, by backend; it is placed as `model<suffix>`."""


def declared_sources(
    model: InferenceModel, engines: Mapping[int, EngineFiles] | None = None
) -> dict[int, VersionSource]:
    """Return the declared versions' sources, with the name that a lone file gets.

    `engines` are what serves in place of them, by version: a version without one has no source. They are read with the
    pool's credentials, as it is the pool that keeps them.
    """
    spec, need = model.spec, footprint_of(model)
    exclusive = need.exclusive and not need.assumed
    if engines is not None:
        return {
            version: VersionSource(engines[version].uri, engines[version].digest, "", need.memory, exclusive)
            for version in spec.declared_versions
            if version in engines
        }
    name = str(spec.config.get("default_model_filename") or "")
    return {
        version: VersionSource(
            files.storage_uri,
            files.digest or "",
            file_name(files.storage_uri, spec.backend, name),
            need.memory,
            exclusive,
            spec.storage.secret_name or "",
        )
        for version, files in spec.declared.items()
    }


@lru_cache(maxsize=4096)
def file_name(uri: str, backend: str, name: str) -> str:
    """Return what the one file at `uri` is called in its version's folder; empty where it keeps its own name."""
    suffix = PurePosixPath(unquote(urlsplit(uri).path)).suffix
    if suffix not in MODEL_FILES.get(backend, ()):
        return ""
    return name or f"model{suffix}"
