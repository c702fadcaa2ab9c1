"""Where a declared version's files come from, and what it is said to take of a GPU."""

from functools import lru_cache
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from argosy.api.inferencemodel import InferenceModel
from argosy.fleet.demand.footprint import footprint_of
from argosy_agent.contract import VersionSource

MODEL_FILES = {
    "onnxruntime": (".onnx",),
    "python": (".py",),
    "pytorch": (".pt", ".pt2"),
    "tensorrt": (".plan",),
}
"""The suffixes of the one file that a version may consist of, by backend; it is placed as `model<suffix>`."""


def declared_sources(model: InferenceModel) -> dict[int, VersionSource]:
    """The declared versions' sources, with the name that a lone file gets."""
    spec, need = model.spec, footprint_of(model)
    name, whole = str(spec.config.get("default_model_filename") or ""), need.whole and not need.assumed
    return {
        version: VersionSource(
            files.storage_uri,
            files.digest or "",
            _file_name(files.storage_uri, spec.backend, name),
            need.memory,
            whole,
            spec.storage.secret_name or "",
        )
        for version, files in spec.declared.items()
    }


@lru_cache(maxsize=4096)
def _file_name(uri: str, backend: str, name: str) -> str:
    suffix = PurePosixPath(unquote(urlsplit(uri).path)).suffix
    if suffix not in MODEL_FILES.get(backend, ()):
        return ""
    return name or f"model{suffix}"
