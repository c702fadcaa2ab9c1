"""The models that use an engine of the cache, by the requests of its builds and by the models' statuses. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from argosy.api.documents import Resource
from argosy.api.inferencemodel import InferenceModel
from argosy.api.servingpool import EngineCache, ServingPool, ServingPoolSpec, Storage
from argosy.api.values.meta import ObjectMeta
from argosy.planning.variants import declared_identity, expanded
from argosy_agent.contract.builds import BuildRequest, DataSource
from argosy_agent.engines.manifest import without_credentials

from .images import BuildImages
from .requests import requests

_ANYWHERE = ServingPool(
    metadata=ObjectMeta(name="anywhere"),
    spec=ServingPoolSpec(storage=Storage(engine_cache=EngineCache(storage_uri="file:/anywhere"))),
)
"""A model asks for the same engine wherever it is kept: its pool need not be known."""


class EngineUses:
    """What these models ask for and are served by."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self._models = [resource for resource in expanded(resources) if isinstance(resource, InferenceModel)]

    @property
    def has_models(self) -> bool:
        """Whether there is a model at all. Without one the uses of engines are unknown."""
        return bool(self._models)

    def of(self, key: str, requested: Sequence[BuildRequest]) -> tuple[str, ...]:
        """Return the identities of the models that use the engine `key`, which the builds `requested` were for."""
        users = (model for model in self._models if _names(model, key) or _asks(model, requested))
        return tuple(dict.fromkeys(map(declared_identity, users)))


def _names(model: InferenceModel, key: str) -> bool:
    """Return whether a model's status says that it is served by the engine, or waits for it."""
    return model.status is not None and any(key in engine.model_dump_json() for engine in model.status.engines)


def _asks(model: InferenceModel, requested: Sequence[BuildRequest]) -> bool:
    recorded = {_decisive(request) for request in requested}
    architectures = {request.architecture for request in requested}
    desired = (
        request
        for architecture in architectures
        for request in requests(model, _ANYWHERE, architecture, BuildImages()).values()
    )
    return any(_decisive(request) in recorded for request in desired)


def _decisive(request: BuildRequest) -> str:
    """Return the name of a request without the parts that do not decide whether its engine can serve a model.

    These are the credentials for the files, the image that compiles, and the required accuracy.
    """
    clean = without_credentials(request)
    return replace(
        clean,
        compiler="",
        store="",
        model=DataSource(clean.model.uri),
        calibration=DataSource(clean.calibration.uri),
        gate=None,
        skip="",
    ).name
