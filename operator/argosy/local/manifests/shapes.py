"""The shapes of models whose files are on this machine: `config.json` beside the weights of a `file:` URI."""

from collections.abc import Iterable

from argosy.api.documents import Resource
from argosy.api.inferencemodel import InferenceModel
from argosy_agent.contract.builds import ModelShape
from argosy_agent.contract.fields import DocumentError
from argosy_agent.contract.modelshapes import parse_shape
from argosy_agent.transfer.localfiles import is_file, local_path

OF_TRANSFORMERS = frozenset({"huggingface", "vllm", "tensorrt_llm"})
"""Formats whose folders have a `config.json` as Hugging Face's checkpoints do, or may have."""


def local_shapes(resources: Iterable[Resource]) -> dict[str, ModelShape]:
    """By identity, the shape of each model of which one can be read here; of several versions that of the highest."""
    found = {each.identity: _shape(each) for each in resources if isinstance(each, InferenceModel)}
    return {identity: shape for identity, shape in found.items() if shape is not None}


def _shape(model: InferenceModel) -> ModelShape | None:
    """What cannot be read has no shape: the server that is to load it says what is wrong with it."""
    uri = model.spec.declared[model.spec.default_version].storage_uri
    if model.spec.model_format.name not in OF_TRANSFORMERS or not is_file(uri):
        return None
    try:
        return parse_shape((local_path(uri) / "config.json").read_text())
    except (OSError, UnicodeDecodeError, DocumentError):
        return None
