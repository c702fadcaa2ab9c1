"""What a server holds, or is to hold, of one model or ensemble, as the decision sees it: without its rendered text."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from argosy.api.ensemble import Ensemble
from argosy.api.inferencemodel import InferenceModel
from argosy.fleet.plan import Placement, ServerPlan
from argosy_agent.contract import VersionSource


@dataclass(frozen=True, slots=True)
class Form:
    """One folder of a server's model repository.

    `gpus` are indexes among the server's own GPUs, from 0; none is its CPU. Of two forms with one `reload_key` a server
    loads nothing anew but the versions whose files differ. `steps` are an ensemble's models, with their versions.
    """

    name: str
    versions: Mapping[int, VersionSource]
    gpus: tuple[int, ...] = ()
    reload_key: str = ""
    steps: Mapping[str, int] = field(default_factory=dict)

    def serves(self, declared: "Form") -> bool:
        """Whether a server that holds this serves what is declared, be it with other versions beside it.

        An ensemble has one version, and no other beside it.
        """
        if (self.reload_key, dict(self.steps)) != (declared.reload_key, dict(declared.steps)):
            return False
        files = {version: source.files for version, source in self.versions.items()}
        wanted = {version: source.files for version, source in declared.versions.items()}
        return files == wanted if declared.steps else wanted.items() <= files.items()


class ReloadKeys(Protocol):
    """Tells the forms of one model apart that a server would load anew; the renderer is one."""

    def of_model(self, model: InferenceModel, placement: Placement, server: ServerPlan) -> str:
        """The key of a model that is placed there."""

    def of_ensemble(self, ensemble: Ensemble, pins: Mapping[str, int]) -> str:
        """The key of an ensemble that runs these versions of its steps' models."""


class FakeReloadKeys:
    """Keys for tests: a model's by what its spec says of how it runs, an ensemble's by its graph."""

    def of_model(self, model: InferenceModel, placement: Placement, server: ServerPlan) -> str:
        """As in `ReloadKeys`."""
        spec, sits = model.spec, [server.gpus.index(gpu) for gpu in placement.gpus]
        runs = (spec.backend, spec.max_batch_size, spec.inputs, spec.outputs, spec.config)
        return repr((runs, sits, placement.instances))

    def of_ensemble(self, ensemble: Ensemble, pins: Mapping[str, int]) -> str:
        """As in `ReloadKeys`."""
        spec = ensemble.spec
        return repr((spec.inputs, spec.outputs, spec.steps, sorted(pins.items())))
