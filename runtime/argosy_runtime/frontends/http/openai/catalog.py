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
    other_endpoint,
    unknown_model,
)
from argosy_runtime.protocol.openai.generation import LanguageModel
from argosy_runtime.protocol.openai.models import NamedModel
from argosy_runtime.protocol.openai.pipelines import Pipeline
from argosy_runtime.repository.records import UNLOADED


@dataclass(frozen=True, slots=True)
class ServedName:
    """A name that clients use, with the model behind it; `created` in seconds since 1970."""

    named: NamedModel
    model: LanguageModel | Pipeline | EmbeddingModel
    created: int

    def other_endpoint(self, endpoint: str) -> ApiError:
        """Return the error of a request to an endpoint that the model does not answer."""
        return other_endpoint(self.named.name, endpoint, self.model.endpoints)


class Catalog:
    """Language models, their adapters, pipelines that are chat models, and models of embeddings, by name.

    `now` returns seconds since 1970.

    A name is that of a model of the data plane, which decides what it belongs to. What is read of it lasts while the
    configuration of that model is the same object, which it is until another version or another model has the name.
    """

    def __init__(self, plane: DataPlane, now: Callable[[], float]) -> None:
        self._plane = plane
        self._now = now
        self._by_name: dict[str, tuple[ModelConfig, ServedName | None]] = {}

    def find(self, name: str) -> ServedName | None:
        """Return the model of a name; None where there is none that this API can address.

        Raises ApiError where the model cannot answer.
        """
        try:
            config = self._plane.model_config(name, "")
        except ServingError as error:
            if error.kind is ErrorKind.NOT_FOUND:
                self._by_name.pop(name, None)
                return None
            raise from_serving(error) from None
        return self._served(name, config)

    async def all(self) -> list[ServedName]:
        """Return all names that can be used now, in order."""
        index = await self._plane.index(ready_only=True)
        ready = {model.name for model in index.models}
        for name in self._by_name.keys() - ready:
            del self._by_name[name]
        every = (self._ready(name) for name in sorted(ready))
        return [served for served in every if served is not None]

    async def look_up(self, name: str) -> ServedName:
        """Return the model of a name, loaded on demand. Raises ApiError where there is none that can answer."""
        try:
            await self._plane.demand(name, "")
        except ServingError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise from_serving(error) from None
        served = self.find(name)
        if served is None:
            raise await self._missing(name)
        return served

    def _ready(self, name: str) -> ServedName | None:
        try:
            return self._served(name, self._plane.model_config(name, ""))
        except ServingError:
            return None

    def _served(self, name: str, config: ModelConfig) -> ServedName | None:
        cached = self._by_name.get(name)
        if cached is not None and cached[0] is config:
            return cached[1]
        model = Pipeline.of(config) or (
            LanguageModel.of(config) if is_language_model(config) else EmbeddingModel.of(config)
        )
        served = None
        if model is not None:
            before = None if cached is None else cached[1]
            created = int(self._now()) if before is None else before.created
            served = ServedName(NamedModel.of(config), model, created)
        self._by_name[name] = (config, served)
        return served

    async def _missing(self, name: str) -> ApiError:
        """Return why a name cannot be used: its model is being loaded, could not be loaded, or there is none."""
        index = await self._plane.index(ready_only=False)
        versions = [model for model in index.models if model.name == name]
        states = {version.state for version in versions}
        if "LOADING" in states:
            return loading_model(name)
        reasons = [version.reason for version in versions if version.reason not in ("", UNLOADED)]
        if reasons and states == {"UNAVAILABLE"}:
            return failed_model(name, "; ".join(reasons))
        return unknown_model(name)
