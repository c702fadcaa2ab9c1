"""Keys of rendered models and ensembles: those that distinguish revisions, and those of caches.

Decisions never see a rendered text, only whether it changed.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy.api.ensemble import Ensemble
from argosy.api.inferencemodel import InferenceModel
from argosy.api.servingpool import RuntimeName
from argosy.api.values.derived import cached_with_spec
from argosy.planning.migration.revisions import RevisionKeys
from argosy.planning.plan import Placement, ServerPlan
from argosy.render.config.ensemble_config import ensemble_config
from argosy.render.config.model_config import Devices, local_devices, model_config
from argosy.render.config.version_texts import version_texts
from argosy_runtime.modelconfig.inplace import CHANGEABLE

Member = TypeVar("Member", InferenceModel, Ensemble)


@dataclass(frozen=True, slots=True, eq=False)
class Alike(Generic[Member]):
    """Two are the same that have the same name and one spec, which is frozen: an unchanged resource keeps its own."""

    resource: Member

    def __hash__(self) -> int:
        return hash((self.resource.name, id(self.resource.spec)))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Alike)
            and self.resource.spec is other.resource.spec
            and self.resource.name == other.resource.name
        )


_OF_ARGOSY = frozenset(CHANGEABLE) - {"max_batch_size"}
"""What the bundled server changes in place. A batch limit it only lowers so, and which one it loaded with is not known
here: what a change of it may take is counted as a reload."""
_OF_TRITON = frozenset({"version_policy", "instance_group"})
"""What NVIDIA's server changes in place."""
INPLACE: Mapping[RuntimeName, frozenset[str]] = {RuntimeName.ARGOSY: _OF_ARGOSY, RuntimeName.TRITON: _OF_TRITON}
"""The fields of a configuration that each server changes in place."""


@dataclass(frozen=True, slots=True)
class RenderedKeys:
    """Keys of rendered configurations, without the served versions; those for reloads also without the fields that the
    pool's server, of `runtime`, changes in place. Implements `ReloadKeys`.

    `served_names`: the names of models for clients, where they differ from the declared ones.
    """

    served_names: Mapping[str, str] = field(default_factory=dict)
    runtime: RuntimeName = RuntimeName.ARGOSY

    @property
    def versions_differ(self) -> bool:
        """Whether the server reads configurations of versions, which NVIDIA's does not."""
        return self.runtime is RuntimeName.ARGOSY

    def of_model(self, model: InferenceModel, placement: Placement, server: ServerPlan) -> RevisionKeys:
        """Return the keys of a model that is placed there."""
        return _model_keys(model, local_devices(placement, server, self.runtime))

    def of_ensemble(self, ensemble: Ensemble, pins: Mapping[str, int]) -> RevisionKeys:
        """Return the keys of an ensemble that runs these versions."""
        names = tuple((step, self.served_names.get(step, step)) for step in sorted(pins))
        return _ensemble_key(ensemble, tuple(sorted(pins.items())), names)


@cached_with_spec
def _model_keys(model: InferenceModel, devices: Devices) -> RevisionKeys:
    config, texts = model_config(model, devices, ()), version_texts(model, devices)
    full = _key(config, texts)
    for name in INPLACE[devices.runtime]:
        config.ClearField(name)
    return RevisionKeys(full, _key(config, texts))


@cached_with_spec
def _ensemble_key(
    ensemble: Ensemble, pins: tuple[tuple[str, int], ...], served_names: tuple[tuple[str, str], ...]
) -> RevisionKeys:
    key = _key(ensemble_config(ensemble, dict(pins), dict(served_names)))
    return RevisionKeys(key, key)


def _key(config: ModelConfig, texts: Mapping[str, str] | None = None) -> str:
    config.ClearField("version_policy")
    written = json.dumps(texts, sort_keys=True).encode() if texts else b""
    return hashlib.sha256(config.SerializeToString(deterministic=True) + written).hexdigest()[:16]
