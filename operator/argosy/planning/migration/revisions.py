"""What a server holds, or is to hold, of one model or ensemble, as the decision sees it: without its rendered text."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from argosy.api.ensemble import Ensemble
from argosy.api.inferencemodel import InferenceModel
from argosy.planning.plan import Placement, ServerPlan
from argosy_agent.contract import RenderedModel, RenderedRepository, VersionSource
from argosy_agent.contract.sizes import config_bytes


@dataclass(frozen=True, slots=True)
class Form:
    """One folder of a server's model repository.

    `gpus` are indexes among the server's own GPUs, from 0; none is its CPU. `instances`: how many run on each device, 0
    where that is not known. Two forms with one `config_key` have one configuration; of two on the same GPUs with one
    `reload_key` a server comes from one to the other in place, but for versions whose files differ. `steps` are an
    ensemble's models, with their versions. `config_bytes`: of what is loaded, the size of its text as JSON.
    """

    name: str
    versions: Mapping[int, VersionSource]
    gpus: tuple[int, ...] = ()
    reload_key: str = ""
    steps: Mapping[str, int] = field(default_factory=dict)
    config_key: str = ""
    instances: int = 0
    config_bytes: int = 0

    def serves(self, declared: "Form") -> bool:
        """Return whether a server that holds this serves what is declared, be it with other versions beside it.

        An ensemble has one version, and no other beside it.
        """
        if (self.config_key, dict(self.steps)) != (declared.config_key, dict(declared.steps)):
            return False
        return self._has_files(declared)

    def serves_but_for_amounts(self, declared: "Form") -> bool:
        """Return the same, where the instances and the batching of the two may differ."""
        return self.stays_loaded(declared) and not declared.steps and self._has_files(declared)

    def _has_files(self, declared: "Form") -> bool:
        files = {version: source.files for version, source in self.versions.items()}
        wanted = {version: source.files for version, source in declared.versions.items()}
        return files == wanted if declared.steps else wanted.items() <= files.items()

    def sources(self, instances: int) -> dict[int, VersionSource]:
        """Return its versions, each of the size that so many instances take."""
        if instances == self.instances or not (instances and self.instances):
            return dict(self.versions)
        return {v: replace(s, memory=s.memory * instances // self.instances) for v, s in self.versions.items()}

    def stays_loaded(self, former: "Form") -> bool:
        """Return whether a server that holds the former comes to this without loading anew what it has of it."""
        alike = self.config_key == former.config_key or self.reload_key == former.reload_key
        return alike and bool(self.config_key or self.reload_key) and self.gpus == former.gpus


class FormKeys(NamedTuple):
    """A form's keys; `reload` says less than `config` by what a server changes in place."""

    config: str
    reload: str


class ReloadKeys(Protocol):
    """Tells the forms of one model apart, and those that a server would load anew; the renderer is one."""

    def of_model(self, model: InferenceModel, placement: Placement, server: ServerPlan) -> FormKeys:
        """Return the keys of a model that is placed there."""

    def of_ensemble(self, ensemble: Ensemble, pins: Mapping[str, int]) -> FormKeys:
        """Return the keys of an ensemble that runs these versions of its steps' models."""


def revisions_by_server(repositories: Iterable[RenderedRepository]) -> dict[str, dict[str, Form]]:
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
