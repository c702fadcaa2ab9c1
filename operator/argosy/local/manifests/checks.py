"""Checks of manifests together: problems between valid resources, and with the files of models on this machine."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from argosy.api.documents import Resource
from argosy.api.inferencemodel import InferenceModel
from argosy.local.manifests.reading import Manifests
from argosy.local.manifests.this_machine import with_engine_store
from argosy.planning.topology.rules import refusals
from argosy.planning.validation.graph import Invalid
from argosy.planning.variants import expanded
from argosy.render.config.configrules import check_together
from argosy_agent.contract.builds import ModelShape
from argosy_agent.contract.fields import DocumentError
from argosy_agent.contract.modelshapes import parse_shape
from argosy_agent.transfer.localfiles import is_file, local_path

_TRANSFORMERS = frozenset({"huggingface", "vllm", "tensorrt_llm"})
"""Formats whose folders may have a `config.json`, as Hugging Face's checkpoints do."""


def checked(manifests: Manifests, shapes: Mapping[str, ModelShape], engines: Path | None = None) -> Manifests:
    """Return the manifests with the problems between their resources. `shapes` are by identity.

    Pools without an engine cache use the folder `engines`, if it is set. A reference to an invalid resource is no
    further problem. While a document names no resource, references are not checked at all.
    """
    if not all(problem.names_resource for problem in manifests.problems):
        return manifests
    invalid = {problem.resource for problem in manifests.problems}
    valid = [resource for resource in manifests.resources if resource.identity not in invalid]
    stored = with_engine_store(valid, engines) if engines is not None else valid
    between = check_together(stored, manifests.sources, Invalid(invalid))
    contradictions = refusals(valid, shapes, manifests.sources)
    return replace(manifests, problems=(*manifests.problems, *between, *contradictions))


def local_shapes(resources: Iterable[Resource]) -> dict[str, ModelShape]:
    """Return the shapes of models whose `config.json` can be read here, by identity; of the highest version."""
    shapes = {model.identity: _shape(model) for model in expanded(resources) if isinstance(model, InferenceModel)}
    return {identity: shape for identity, shape in shapes.items() if shape is not None}


def _shape(model: InferenceModel) -> ModelShape | None:
    """Return a model's shape, or None where the file cannot be read: the server that loads it reports the error."""
    uri = model.spec.declared[model.spec.default_version].storage_uri
    if model.spec.model_format.name not in _TRANSFORMERS or not is_file(uri):
        return None
    try:
        return parse_shape((local_path(uri) / "config.json").read_text())
    except (OSError, UnicodeDecodeError, DocumentError):
        return None
