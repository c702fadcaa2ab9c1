"""The models that clients of OpenAI's API can name: language models, and the adapters that they have loaded."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import orjson
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig.parameters.adapters import base_of, is_adapter

ADAPTERS: Final = "adapters"
"""The parameter of a configuration that lists adapters: a JSON array of objects with `name`."""
OWNER: Final = "argosy"


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model as clients name it. `base` is the model that answers; `adapter` the one to apply, empty for none.
    `parent` is the model that an adapter belongs to, empty for other models.
    """

    name: str
    base: str
    adapter: str
    fingerprint: str
    parent: str = ""


def named_models(config: ModelConfig) -> list[NamedModel]:
    """Return a language model under its own name, and each of its adapters under theirs."""
    fingerprint = fingerprint_of(config)
    parent = base_of(config) if is_adapter(config) else ""
    own = NamedModel(config.name, config.name, "", fingerprint, parent)
    return [own, *(NamedModel(name, config.name, name, fingerprint, config.name) for name in adapter_names(config))]


def adapter_names(config: ModelConfig) -> list[str]:
    """Return the names of a model's adapters; none where the parameter is no list of objects with names."""
    if ADAPTERS not in config.parameters:
        return []
    try:
        listed = orjson.loads(config.parameters[ADAPTERS].string_value)
    except orjson.JSONDecodeError:
        return []
    if not isinstance(listed, list):
        return []
    names = (adapter.get("name") for adapter in listed if isinstance(adapter, dict))
    return [name for name in names if isinstance(name, str) and name]


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
