"""Revisions: one model or ensemble as a server has loaded it or will load it, without its rendered text."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from argosy.api.ensemble import Ensemble
from argosy.api.inferencemodel import InferenceModel
from argosy.planning.plan import Placement, ServerPlan
from argosy_agent.contract import RenderedModel, RenderedRepository, VersionSource
from argosy_agent.contract.sizes import config_bytes, texts_bytes


@dataclass(frozen=True, slots=True)
class ModelRevision:
    """One folder of a server's model repository.

    `gpus` are indexes among the server's own GPUs, from 0; none is its CPU. `instances`: how many run on each device, 0
    where that is unknown. Two revisions with one `config_key` have one configuration; of two on the same GPUs with one
    `reload_key` a server comes from one to the other in place, but for versions whose files differ. `steps` are an
    ensemble's models, with their versions; a version with a configuration of its own, which is another revision of the
    ensemble, has its own steps. `config_bytes`: of what is loaded, the size of its text as JSON.
    """

    name: str
    versions: Mapping[int, VersionSource]
    gpus: tuple[int, ...] = ()
    reload_key: str = ""
    steps: Mapping[str, int] = field(default_factory=dict)
    config_key: str = ""
    instances: int = 0
    config_bytes: int = 0

    def steps_of(self, version: int) -> Mapping[str, int]:
        """Return the models, with their versions, that a version of an ensemble runs."""
        own = self.versions[version].own
        return self.steps if own is None else own.steps

    @property
    def runs(self) -> frozenset[tuple[str, int]]:
        """The models that an ensemble runs, each with its version, of all its versions."""
        return frozenset(step for version in self.versions for step in self.steps_of(version).items())

    @property
    def step_names(self) -> frozenset[str]:
        """The models that an ensemble runs, of all its versions."""
        return frozenset(name for name, _ in self.runs)

    def serves(self, declared: "ModelRevision") -> bool:
        """Return whether a server with this revision serves what is declared. A model may have other versions in
        addition.
        """
        if any(source.own for source in declared.versions.values()):
            return all(self._has_own(version, source) for version, source in declared.versions.items())
        if (self.config_key, dict(self.steps)) != (declared.config_key, dict(declared.steps)):
            return False
        return self._has_files(declared)

    def serves_but_for_amounts(self, declared: "ModelRevision") -> bool:
        """Return whether it serves what is declared, except for instances and batching."""
        return self.stays_loaded(declared) and not declared.steps and self._has_files(declared)

    def _has_files(self, declared: "ModelRevision") -> bool:
        files = {version: source.files for version, source in self.versions.items()}
        desired = {version: source.files for version, source in declared.versions.items()}
        return files == desired if declared.steps else desired.items() <= files.items()

    def _has_own(self, version: int, source: VersionSource) -> bool:
        """Return whether it has this version in the same configuration, be it its own or that of all versions."""
        if version not in self.versions or self.versions[version].files != source.files:
            return False
        own = self.versions[version].own
        key = self.config_key if own is None else own.config_key
        return source.own is not None and key == source.own.config_key

    def sources(self, instances: int) -> dict[int, VersionSource]:
        """Return its versions, each with the memory of this number of instances."""
        if instances == self.instances or not (instances and self.instances):
            return dict(self.versions)
        return {v: replace(s, memory=s.memory * instances // self.instances) for v, s in self.versions.items()}

    def stays_loaded(self, former: "ModelRevision") -> bool:
        """Return whether a server with the former revision comes to this one without reloading the versions that it
        has.
        """
        alike = self.config_key == former.config_key or self.reload_key == former.reload_key
        return alike and bool(self.config_key or self.reload_key) and self.gpus == former.gpus


class RevisionKeys(NamedTuple):
    """The keys of a revision; `reload` leaves out of `config` what a server changes in place."""

    config: str
    reload: str


class ReloadKeys(Protocol):
    """Keys that distinguish the revisions of a model, and those that need a reload. The renderer implements it."""

    def of_model(self, model: InferenceModel, placement: Placement, server: ServerPlan) -> RevisionKeys:
        """Return the keys of a model that is placed there."""

    def of_ensemble(self, ensemble: Ensemble, pins: Mapping[str, int]) -> RevisionKeys:
        """Return the keys of an ensemble that runs these versions of its steps' models."""


def revisions_by_server(repositories: Iterable[RenderedRepository]) -> dict[str, dict[str, ModelRevision]]:
    """Return the revisions of each server's models and ensembles, by name."""
    return {repository.server: _revisions(repository) for repository in repositories}


def _revisions(repository: RenderedRepository) -> dict[str, ModelRevision]:
    declared = {model.name: model.declared_name for model in repository.models}
    return {model.declared_name: _revision(model, declared) for model in repository.models}


def _revision(model: RenderedModel, declared: Mapping[str, str]) -> ModelRevision:
    """Return a rendered model without its text, by the names that resources have."""
    steps = _by_resource(model.steps, declared)
    versions = {version: _with_own(source, declared) for version, source in model.versions.items()}
    return ModelRevision(
        model.declared_name,
        versions,
        model.gpus,
        model.reload_key,
        steps,
        model.config_key,
        model.instances,
        config_bytes(model.config_text) + texts_bytes(model.texts),
    )


def _with_own(source: VersionSource, declared: Mapping[str, str]) -> VersionSource:
    """Return a version without the text of its own configuration, with steps by the names that resources have."""
    if source.own is None:
        return source
    return replace(source, own=replace(source.own, text="", steps=_by_resource(source.own.steps, declared)))


def _by_resource(steps: Mapping[str, int], declared: Mapping[str, str]) -> dict[str, int]:
    return {declared.get(step, step): version for step, version in steps.items()}
