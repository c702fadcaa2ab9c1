"""The models that clients can name now."""

from collections.abc import Callable
from dataclasses import dataclass

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.frontends.port import DataPlane
from argosy_runtime.language import is_language_model
from argosy_runtime.protocol.openai.embeddings import EmbeddingModel
from argosy_runtime.protocol.openai.errors import (
    ApiError,
    failed_model,
    from_serving,
    loading_model,
    unknown_model,
)
from argosy_runtime.protocol.openai.generation import LanguageModel
from argosy_runtime.protocol.openai.models import NamedModel, named_models
from argosy_runtime.protocol.openai.pipelines import Pipeline
from argosy_runtime.repository.records import UNLOADED


@dataclass(frozen=True, slots=True)
class ServedName:
    """A name that clients use, with the model behind it; `created` in seconds since 1970."""

    named: NamedModel
    model: LanguageModel | Pipeline | EmbeddingModel
    created: int


class Catalog:
    """Language models, their adapters, pipelines that are chat models, and models of embeddings, by name.

    `now` returns seconds since 1970.

    What is known of a model lasts while its configuration is the same object, which it is until it is loaded again.
    """

    def __init__(self, plane: DataPlane, now: Callable[[], float]) -> None:
        self._plane = plane
        self._now = now
        self._configs: dict[str, ModelConfig] = {}
        self._names: dict[str, ServedName] = {}

    def find(self, name: str) -> ServedName | None:
        """Return the model of a name; None where no version of it serves, though a `refresh` may find an adapter's.

        Raises ApiError where the model cannot answer.
        """
        served = self._names.get(name)
        base = name if served is None else served.named.base
        try:
            config = self._plane.model_config(base, "")
        except ServingError as error:
            if error.kind is ErrorKind.NOT_FOUND:
                return None
            raise from_serving(error) from None
        if self._configs.get(base) is not config:
            self._learn(config)
            served = self._names.get(name)
        return served

    async def refresh(self) -> list[ServedName]:
        """Return all names that can be used now, in order."""
        index = await self._plane.index(ready_only=True)
        ready = {model.name for model in index.models}
        for name in ready:
            try:
                config = self._plane.model_config(name, "")
            except ServingError:
                continue
            if self._configs.get(name) is not config:
                self._learn(config)
        return [self._names[name] for name in sorted(self._names) if self._names[name].named.base in ready]

    async def look_up(self, name: str) -> ServedName:
        """Return the model of a name. Raises ApiError where there is none that can answer."""
        served = self.find(name)
        if served is None:
            await self.refresh()
            served = self.find(name)
        if served is None:
            raise await self._missing(name)
        return served

    async def _missing(self, name: str) -> ApiError:
        """Return why a name cannot be used: its model is being loaded, could not be loaded, or there is none."""
        named = self._names.get(name)
        base = name if named is None else named.named.base
        index = await self._plane.index(ready_only=False)
        versions = [model for model in index.models if model.name == base]
        states = {version.state for version in versions}
        if "LOADING" in states:
            return loading_model(name)
        reasons = [version.reason for version in versions if version.reason not in ("", UNLOADED)]
        if reasons and states == {"UNAVAILABLE"}:
            return failed_model(name, "; ".join(reasons))
        return unknown_model(name)

    def _learn(self, config: ModelConfig) -> None:
        """Take over what a configuration declares. A model's own name takes precedence over adapters'."""
        base = config.name
        self._configs[base] = config
        before = {name: served.created for name, served in self._names.items() if served.named.base == base}
        for name in before:
            del self._names[name]
        other = Pipeline.of(config) or (None if is_language_model(config) else EmbeddingModel.of(config))
        if other is None and not is_language_model(config):
            return
        for named in named_models(config):
            holder = self._names.get(named.name)
            if holder is None or named.name == base:
                created = before.get(named.name, int(self._now()))
                model = other or LanguageModel.of(config, named.adapter)
                self._names[named.name] = ServedName(named, model, created)
