"""The files of models: declared sources, and the engines that are served in their place.

The engines of a server are those for the GPUs, or the CPU, of its node.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from argosy.api.inferencemodel import InferenceModel
from argosy.api.model.modelformat import TREES
from argosy.api.values.storage import suffix_of
from argosy.planning.demand.footprint import footprint_of
from argosy.planning.demand.measured import MeasuredMemory
from argosy.planning.facts import Node, Waiting
from argosy_agent.contract import VersionSource
from argosy_runtime.modelconfig.modelfiles import TREE_FILES, TREE_SUFFIXES


@dataclass(frozen=True, slots=True)
class EngineFiles:
    """Where an engine's files are: a folder, and the digest that they are checked against."""

    uri: str
    digest: str = ""


@dataclass(frozen=True, slots=True)
class ServedEngines:
    """Of one pool's models with engines: those that there are, by model, architecture and version.

    A model among `files` is served by engines alone, on the architectures that it has there. `waiting` are those that
    no server is to have yet. `nodes` are all nodes, by name.
    """

    files: Mapping[str, Mapping[str, Mapping[int, EngineFiles]]] = field(default_factory=dict)
    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    nodes: Mapping[str, Node] = field(default_factory=dict)

    def architectures(self, model: str) -> frozenset[str] | None:
        """Return what the model may be placed on; None where it needs no engine."""
        return frozenset(self.files[model]) if model in self.files else None

    def on(self, model: str, node: str, on_gpu: bool) -> Mapping[int, EngineFiles] | None:
        """Return the engines, by version, that a server on the node loads; None where the model's own files serve."""
        if model not in self.files:
            return None
        host = self.nodes.get(node)
        return self.files[model].get(host.architecture(on_gpu), {}) if host is not None else {}


MODEL_FILES = {
    "onnxruntime": (".onnx",),
    "python": (".py",),
    "pytorch": (".pt", ".pt2"),
    "tensorrt": (".plan",),
    **TREE_SUFFIXES,
}
"""The suffixes of the one file that a version may consist of, by backend, and of trees by format.

It is placed as `model<suffix>`, and a file of trees by the name that its backend looks for.
"""


def declared_sources(
    model: InferenceModel,
    engines: Mapping[int, EngineFiles] | None = None,
    measured: MeasuredMemory | None = None,
    shares: int = 1,
    instances: int | None = None,
) -> dict[int, VersionSource]:
    """Return the declared versions' sources, with the name that a lone file gets.

    `engines` are what serves in place of them, by version: a version without one has no source. They are read with the
    pool's credentials, as it is the pool that keeps them. `measured`: what the model was measured to use of a GPU.
    `shares`: the GPUs among which its `instances` (None: those of its spec) are divided.
    """
    spec, need = model.spec, footprint_of(model, measured=measured, instances=instances)
    memory = need.memory // shares
    exclusive = need.exclusive and not need.assumed
    if engines is not None:
        return {
            version: VersionSource(engines[version].uri, engines[version].digest, "", memory, exclusive)
            for version in spec.declared_versions
            if version in engines
        }
    name = str(spec.config.get("default_model_filename") or "")
    kind = spec.model_format.name if spec.backend == TREES else spec.backend
    return {
        version: VersionSource(
            files.storage_uri,
            files.digest or "",
            file_name(files.storage_uri, kind, name),
            memory,
            exclusive,
            spec.storage.secret_name or "",
        )
        for version, files in spec.declared.items()
    }


@lru_cache(maxsize=4096)
def file_name(uri: str, kind: str, name: str) -> str:
    """Return what the one file at `uri` is called in its version's folder; empty where it keeps its own name.

    `kind`: the backend, or the format of trees.
    """
    suffix = suffix_of(uri)
    if suffix not in MODEL_FILES.get(kind, ()):
        return ""
    return name or TREE_FILES.get(kind, f"model{suffix}")
