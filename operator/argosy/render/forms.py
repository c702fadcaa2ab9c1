"""What the decision needs to know of rendered models: never their text, only whether it is another."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy.api.ensemble import Ensemble
from argosy.api.inferencemodel import InferenceModel
from argosy.planning.migration.forms import Form, FormKeys
from argosy.planning.plan import Placement, ServerPlan
from argosy.render.alike import Alike
from argosy.render.config.ensemble_config import ensemble_config
from argosy.render.config.model_config import Devices, local_devices, model_config
from argosy_agent.contract import RenderedModel, RenderedRepository
from argosy_agent.contract.sizes import config_bytes
from argosy_runtime.modelconfig.inplace import IN_PLACE

OF_ARGOSY = frozenset(IN_PLACE) - {"max_batch_size"}
"""What the bundled server changes in place. A batch limit it only lowers so, and which one it loaded with is not known
here: what a change of it may take is counted as a reload."""
OF_TRITON = frozenset({"version_policy", "instance_group"})
"""What NVIDIA's server changes in place."""


@dataclass(frozen=True, slots=True)
class RenderedKeys:
    """Keys of what is rendered: all of a config but which versions are served, and for a reload without what the pool's
    server changes `in_place`. A `ReloadKeys`.

    `served_names`: what clients call a model that is declared under another name.
    """

    served_names: Mapping[str, str] = field(default_factory=dict)
    in_place: frozenset[str] = OF_ARGOSY

    def of_model(self, model: InferenceModel, placement: Placement, server: ServerPlan) -> FormKeys:
        """Return the keys of a model that is placed there."""
        return _model_keys(Alike(model), local_devices(placement, server), self.in_place)

    def of_ensemble(self, ensemble: Ensemble, pins: Mapping[str, int]) -> FormKeys:
        """Return the keys of an ensemble that runs these versions."""
        names = tuple((step, self.served_names.get(step, step)) for step in sorted(pins))
        return _ensemble_key(Alike(ensemble), tuple(sorted(pins.items())), names)


def forms_by_server(repositories: Iterable[RenderedRepository]) -> dict[str, dict[str, Form]]:
    """Return the forms of each server's models and ensembles, by name."""
    return {each.server: _forms(each) for each in repositories}


def _forms(repository: RenderedRepository) -> dict[str, Form]:
    declared = {model.name: model.declared_name for model in repository.models}
    return {model.declared_name: _form(model, declared) for model in repository.models}


def _form(model: RenderedModel, declared: Mapping[str, str]) -> Form:
    """A rendered model without its text, and by the names that resources have."""
    steps = {declared.get(step, step): version for step, version in model.steps.items()}
    return Form(
        model.declared_name,
        model.versions,
        model.gpus,
        model.reload_key,
        steps,
        model.config_key,
        model.instances,
        config_bytes(model.config_text),
    )


@lru_cache(maxsize=4096)
def _model_keys(model: Alike[InferenceModel], devices: Devices, in_place: frozenset[str]) -> FormKeys:
    config = model_config(model.resource, devices, ())
    whole = _key(config)
    for name in in_place:
        config.ClearField(name)
    return FormKeys(whole, _key(config))


@lru_cache(maxsize=4096)
def _ensemble_key(
    ensemble: Alike[Ensemble], pins: tuple[tuple[str, int], ...], served_names: tuple[tuple[str, str], ...]
) -> FormKeys:
    key = _key(ensemble_config(ensemble.resource, dict(pins), dict(served_names)))
    return FormKeys(key, key)


def _key(config: ModelConfig) -> str:
    config.ClearField("version_policy")
    return hashlib.sha256(config.SerializeToString(deterministic=True)).hexdigest()[:16]
