"""What the decision needs to know of rendered models: never their text, only whether it is another."""

import hashlib
from collections.abc import Iterable, Mapping
from functools import lru_cache

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy.api.ensemble import Ensemble
from argosy.api.inferencemodel import InferenceModel
from argosy.fleet.migration.forms import Form
from argosy.fleet.plan import Placement, ServerPlan
from argosy_runtime.agent.contract import RenderedModel, RenderedRepository

from .alike import Alike
from .ensemble_config import ensemble_config
from .model_config import Devices, local_devices, model_config


class RenderedKeys:
    """Reload keys of what is rendered: all of a config but which versions are served. A `ReloadKeys`."""

    def of_model(self, model: InferenceModel, placement: Placement, server: ServerPlan) -> str:
        """The key of a model that is placed there."""
        return _model_key(Alike(model), local_devices(placement, server))

    def of_ensemble(self, ensemble: Ensemble, pins: Mapping[str, int]) -> str:
        """The key of an ensemble that runs these versions."""
        return _ensemble_key(Alike(ensemble), tuple(sorted(pins.items())))


def form_of(model: RenderedModel) -> Form:
    """A rendered model without its text."""
    return Form(model.name, model.versions, model.gpus, model.reload_key, model.steps)


def forms_by_server(repositories: Iterable[RenderedRepository]) -> dict[str, dict[str, Form]]:
    """The forms of each server's models and ensembles, by name."""
    return {each.server: {model.name: form_of(model) for model in each.models} for each in repositories}


@lru_cache(maxsize=4096)
def _model_key(model: Alike[InferenceModel], devices: Devices) -> str:
    return _key(model_config(model.resource, devices, ()))


@lru_cache(maxsize=4096)
def _ensemble_key(ensemble: Alike[Ensemble], pins: tuple[tuple[str, int], ...]) -> str:
    return _key(ensemble_config(ensemble.resource, dict(pins)))


def _key(config: ModelConfig) -> str:
    config.ClearField("version_policy")
    return hashlib.sha256(config.SerializeToString(deterministic=True)).hexdigest()[:16]
