"""The models that clients of OpenAI's API can name, as it describes them."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import orjson
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig.parameters.adapters import base_of, is_adapter

OWNER: Final = "argosy"
PREFIX: Final = "/v1"
CHAT_COMPLETIONS: Final = f"{PREFIX}/chat/completions"
COMPLETIONS: Final = f"{PREFIX}/completions"
EMBEDDINGS: Final = f"{PREFIX}/embeddings"
RESPONSES: Final = f"{PREFIX}/responses"


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model as clients name it. `parent` is the model that an adapter belongs to, empty for other models."""

    name: str
    fingerprint: str
    parent: str = ""

    @classmethod
    def of(cls, config: ModelConfig) -> "NamedModel":
        """Return the model with this configuration."""
        return cls(config.name, fingerprint_of(config), base_of(config) if is_adapter(config) else "")


def fingerprint_of(config: ModelConfig) -> str:
    """Return a text that changes with a model's configuration."""
    digest = hashlib.sha256(config.SerializeToString(deterministic=True)).hexdigest()
    return f"fp_{digest[:10]}"


def model_document(model: NamedModel, created: int) -> dict[str, Any]:
    """Return a model as the API shows it; `created` in seconds since 1970."""
    document: dict[str, Any] = {"id": model.name, "object": "model", "created": created, "owned_by": OWNER}
    if model.parent:
        document["parent"] = model.parent
    return document


def encode_model(model: NamedModel, created: int) -> bytes:
    """Return the JSON of one model."""
    return orjson.dumps(model_document(model, created))


def encode_models(models: Iterable[tuple[NamedModel, int]]) -> bytes:
    """Return the JSON of a list of models, each with its time of creation."""
    data = [model_document(model, created) for model, created in models]
    return orjson.dumps({"object": "list", "data": data})
