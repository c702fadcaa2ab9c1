"""Revisions: one model or ensemble as a server has loaded it or will load it, without its rendered text."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, Protocol

from argosy.api.ensemble import Ensemble
from argosy.api.inferencemodel import InferenceModel
from argosy.api.values.reuse import Reused
from argosy.planning.plan import Placement, ServerPlan
from argosy_agent.contract import RenderedModel, RenderedRepository, VersionSource
from argosy_agent.contract.sizes import config_bytes, texts_bytes


class RevisionKeys(NamedTuple):
    """The keys of a revision; `reload` leaves out of `config` what a server changes in place."""

    config: str
    reload: str

    def is_like(self, other: "RevisionKeys") -> bool:
        """Return whether a server comes from one to the other without a reload."""
        same = self.config == other.config or self.reload == other.reload
        return same and bool(self.config or self.reload)


@dataclass(frozen=True, slots=True)
class ModelRevision:
    """One folder of a server's model repository.

    `gpus` are indexes among the server's own GPUs, from 0; none is its CPU. `instances`: how many run on each device, 0
    where that is unknown. Two revisions with one `config_key` have one configuration; of two on the same GPUs with one
    `reload_key` a server comes from one to the other in place, but for versions whose files differ. `steps` are an
    ensemble's models, with their versions. The keys and steps are those of versions without a configuration of their
    own, which has its own ones, and no text here. `config_bytes`: of what is loaded, the size of its texts as JSON.
    """

    name: str
    versions: Mapping[int, VersionSource]
    gpus: tuple[int, ...] = ()
    reload_key: str = ""
    steps: Mapping[str, int] = field(default_factory=dict)
    config_key: str = ""
    instances: int = 0
    config_bytes: int = 0

    @property
    def keys(self) -> RevisionKeys:
        """The keys of versions without a configuration of their own."""
        return RevisionKeys(self.config_key, self.reload_key)

    def keys_of(self, version: int) -> RevisionKeys:
        """Return the keys of what a version is configured by."""
        own = self.versions[version].own
        return self.keys if own is None else RevisionKeys(own.config_key, own.reload_key)

    def steps_of(self, version: int) -> Mapping[str, int]:
        """Return the models that a version runs, with their versions."""
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
        """Return whether a server with this revision serves what is declared. It may have further versions."""
        if not declared.versions:
            return (self.config_key, dict(self.steps)) == (declared.config_key, dict(declared.steps))
        return self._has_files(declared) and all(
            self.keys_of(version).config == declared.keys_of(version).config
            and dict(self.steps_of(version)) == dict(declared.steps_of(version))
            for version in declared.versions
        )

    def serves_but_for_amounts(self, declared: "ModelRevision") -> bool:
        """Return whether it serves what is declared, except for instances and batching."""
        return self.stays_loaded(declared) and not declared.steps and self._has_files(declared)

    def _has_files(self, declared: "ModelRevision") -> bool:
        files = {version: source.files for version, source in self.versions.items()}
        return {version: source.files for version, source in declared.versions.items()}.items() <= files.items()

    def sources(self, instances: int) -> dict[int, VersionSource]:
        """Return its versions, each with the memory of this number of instances."""
        if instances == self.instances or not (instances and self.instances):
            return dict(self.versions)
        return {v: replace(s, memory=s.memory * instances // self.instances) for v, s in self.versions.items()}

    def stays_loaded(self, former: "ModelRevision") -> bool:
        """Return whether a server with the former revision comes to this one without reloading the versions that it
        has.
        """
        common = self.versions.keys() & former.versions.keys()
        pairs = [(self.keys_of(version), former.keys_of(version)) for version in common]
        return self.gpus == former.gpus and all(mine.is_like(its) for mine, its in pairs or [(self.keys, former.keys)])

    def retains(self, former: "ModelRevision", version: int) -> bool:
        """Return whether a version of the former revision stays loaded as it is, or changes in place."""
        if version not in self.versions or version not in former.versions or self.gpus != former.gpus:
            return False
        same_files = self.versions[version].files == former.versions[version].files
        return same_files and self.keys_of(version).is_like(former.keys_of(version))


class ReloadKeys(Protocol):
    """Keys that distinguish the revisions of a model, and those that need a reload. The renderer implements it."""

    @property
    def versions_differ(self) -> bool:
        """Whether the pool's servers take versions with configurations of their own."""

    def of_model(self, model: InferenceModel, placement: Placement, server: ServerPlan) -> RevisionKeys:
        """Return the keys of a model that is placed there."""

    def of_ensemble(self, ensemble: Ensemble, pins: Mapping[str, int]) -> RevisionKeys:
        """Return the keys of an ensemble that runs these versions of its steps' models."""


def revisions_by_server(
    repositories: Iterable[RenderedRepository], reused: Reused | None = None
) -> dict[str, dict[str, ModelRevision]]:
    """Return the revisions of each server's models and ensembles, by name. `reused`: those of the round before."""
    values = reused or Reused()
    return {
        repository.server: values.value(repository.server, repository, partial(_revisions, repository))
        for repository in repositories
    }


def _revisions(repository: RenderedRepository) -> dict[str, ModelRevision]:
    declared = {model.name: model.declared_name for model in repository.models}
    return {model.declared_name: _revision(model, declared) for model in repository.models}


def _revision(model: RenderedModel, declared: Mapping[str, str]) -> ModelRevision:
    """Return a rendered model without its texts, by the names that resources have."""
    steps = {declared.get(step, step): version for step, version in model.steps.items()}
    own_texts = (source.own.text for source in model.versions.values() if source.own is not None)
    return ModelRevision(
        model.declared_name,
        {version: _without_text(source, declared) for version, source in model.versions.items()},
        model.gpus,
        model.reload_key,
        steps,
        model.config_key,
        model.instances,
        config_bytes(model.config_text) + texts_bytes(model.texts) + sum(map(config_bytes, own_texts)),
    )


def _without_text(source: VersionSource, declared: Mapping[str, str]) -> VersionSource:
    if source.own is None:
        return source
    steps = {declared.get(step, step): version for step, version in source.own.steps.items()}
    return replace(source, own=replace(source.own, text="", steps=steps))
