"""The values between the operator and an agent: what a server should have, and what it reports. Pure.

A server's model repository as values, before it is written:

<model>/config.pbtxt        `config_text`
<model>/<version>/          the files at `versions[version].uri`, and those of `texts`; empty for an ensemble
<model>/<version>/argosy.pbtxt      the text of `versions[version].own`, where a version has one
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import heapify, heappop, heappush

VERSION = "${version}"
"""What stands for the number of a version in a text that is written into its folder."""


class LoadState(StrEnum):
    """A model version's state on one server, as the repository index says it."""

    LOADING = "LOADING"
    READY = "READY"
    UNAVAILABLE = "UNAVAILABLE"
    UNLOADING = "UNLOADING"


class FailureKind(StrEnum):
    """At which step a version failed: its files could not be had, were not those asked for, or did not load; or it
    loaded and ends again and again before it answers. DEVICE: the GPU, or the driver below it, does not work, be it in
    a load or in executions. FILES: the storage answers, and has none, or files of no use.
    SERVER: the server gave no answer while it loaded this, for the first time in a row.
    """

    DOWNLOAD = "Download"
    DIGEST = "Digest"
    FILES = "Files"
    LOAD = "Load"
    CRASH = "Crash"
    DEVICE = "Device"
    SERVER = "Server"


WAY_OUT = "mend its files or the manifest and it is loaded again by itself"
"""How a failed load ends, in its reason. It is not so of a revision that is held."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """What is reported of one version of a model, by its declared name; `reason` says why it is unavailable, `failure`
    at which step.

    `former`: it is not yet, or cannot be, in the form that it should have, and goes on answering in its former one.
    What has FailureKind.CRASH may be READY for a moment, each time that it has started again. `attempts`: of a load
    that failed for the device, how often in a row it did; 0 of all else. `digest` is that of the
    files that it answers from: of their content, or `listing:` and that of their names, sizes and ETags; empty where
    it is not known.
    """

    model: str
    version: int
    state: LoadState
    reason: str = ""
    failure: FailureKind | None = None
    former: bool = False
    digest: str = ""
    attempts: int = 0

    @property
    def answers(self) -> bool:
        """Whether requests are answered, be it in a former form."""
        return self.former or self.state is LoadState.READY

    @property
    def lasts(self) -> bool:
        """Return whether it is ready, and neither a crash loop nor a device error is known of it."""
        return self.state is LoadState.READY and self.failure not in (FailureKind.CRASH, FailureKind.DEVICE)


@dataclass(frozen=True, slots=True)
class VersionConfig:
    """The configuration that one version has in place of its model's, so that both are served next to each other.

    `text`: that of its `argosy.pbtxt`; empty in decisions, which see no texts. The keys and `steps` are as in
    `RenderedModel`. What decides between versions (which of them are served, and their traffic) is the model's alone.
    """

    text: str = ""
    config_key: str = ""
    reload_key: str = ""
    steps: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VersionSource:
    """The source of one version's files. An ensemble's version has no files: `uri` is empty.

    `filename`: the name of a single file in the version's folder; empty keeps its own name. `memory`: bytes on each of
    its GPUs, 0 if unknown; `exclusive`: it shares them with no other model. `secret`: the Secret with the credentials
    for the files; empty: the pool's. `own`: its own configuration, None where it has the model's.
    """

    uri: str = ""
    digest: str = ""
    filename: str = ""
    memory: int = 0
    exclusive: bool = False
    secret: str = ""
    own: VersionConfig | None = None

    @property
    def files(self) -> tuple[str, str, str, str]:
        """What decides which files they are: with other credentials they may be others, or none."""
        return self.uri, self.digest, self.filename, self.secret


@dataclass(frozen=True, slots=True)
class RenderedModel:
    """One folder of a repository. `steps` are the models that must be loaded first: an ensemble's own. Where they are
    `alternatives`, as variants are, one of them is enough. A version with a configuration of its own has its own steps.
    `base`: the model that an adapter is loaded into.

    `gpus` are those of the server that the model sits on, by index from 0, and `instances` how many of it run on each
    device, 0 where that is not known. `config_key` is another where the config differs in anything but the versions
    that are served, `reload_key` where a server cannot change to it in place. All are the operator's, and given back to
    it as they are. `name` is what clients ask for, `resource` what declares it where that is called otherwise. `texts`:
    files that each version's folder gets where the version's own have none of that name, by name; `VERSION` in them
    stands for the version's number.
    """

    name: str
    config_text: str
    versions: Mapping[int, VersionSource]
    steps: Mapping[str, int] = field(default_factory=dict)
    gpus: tuple[int, ...] = ()
    reload_key: str = ""
    resource: str = ""
    config_key: str = ""
    instances: int = 0
    texts: Mapping[str, str] = field(default_factory=dict)
    alternatives: bool = False
    base: str = ""

    @property
    def declared_name(self) -> str:
        """The name of the resource that declares it: what an agent reports it as."""
        return self.resource or self.name

    @property
    def is_ensemble(self) -> bool:
        """Whether it composes other models instead of holding one."""
        return bool(self.needs)

    @property
    def needs(self) -> frozenset[str]:
        """The models that any of its versions runs."""
        return frozenset(self.steps).union(*(source.own.steps for source in self.versions.values() if source.own))

    def steps_of(self, version: int) -> Mapping[str, int]:
        """Return the models that a version runs, with their versions."""
        own = self.versions[version].own
        return self.steps if own is None else own.steps

    def config_of(self, version: int) -> VersionConfig:
        """Return what a version is configured by: its own configuration, or the model's."""
        own = self.versions[version].own
        return own or VersionConfig(self.config_text, self.config_key, self.reload_key, self.steps)

    def configures_like(self, other: "RenderedModel", version: int) -> bool:
        """Return whether a version, which both have, is configured alike in both, be it by the model's configuration or
        by its own; its files are not compared.
        """
        mine, its = self.config_of(version), other.config_of(version)
        keys = (mine.config_key, its.config_key)
        same = keys[0] == keys[1] if all(keys) else mine.text == its.text
        return same and (self.name, mine.steps, self.texts) == (other.name, its.steps, other.texts)

    def changes_live(self, former: "RenderedModel") -> bool:
        """Return whether a server that serves the former has nothing to load but further instances."""
        return all(self._changes_live(former, version) for version in self.versions)

    def _changes_live(self, former: "RenderedModel", version: int) -> bool:
        if version not in former.versions:
            return False
        key = self.config_of(version).reload_key
        same_key = bool(key) and key == former.config_of(version).reload_key
        return same_key and self.versions[version].files == former.versions[version].files

    def serves_like(self, other: "RenderedModel") -> bool:
        """Return whether a server would load the same: the memory is only reported, and may change without a reload."""
        mine = (self.name, self.config_text, self.steps, self.texts)
        return mine == (other.name, other.config_text, other.steps, other.texts) and {
            version: (source.files, source.own) for version, source in self.versions.items()
        } == {version: (source.files, source.own) for version, source in other.versions.items()}


@dataclass(frozen=True, slots=True)
class RenderedRepository:
    """The models and ensembles of one server: models before the ensembles that use them, by name."""

    server: str
    models: tuple[RenderedModel, ...] = ()

    def model(self, name: str) -> RenderedModel | None:
        """Return the folder named `name`, if the repository has it."""
        return next((model for model in self.models if model.name == name), None)


def in_load_order(models: tuple[RenderedModel, ...]) -> tuple[RenderedModel, ...]:
    """Return models by name, then the ensembles, each behind the ensembles it uses."""
    by_name = {model.name: model for model in models}
    waits = {model.name: model.needs & by_name.keys() for model in models}
    users: dict[str, list[str]] = {}
    for name, steps in waits.items():
        for step in steps:
            users.setdefault(step, []).append(name)
    ready = [_rank(by_name[name]) for name, steps in waits.items() if not steps]
    heapify(ready)
    ordered: list[RenderedModel] = []
    while waits:
        # A cycle is refused before it gets here; never loop on one.
        _, name = heappop(ready) if ready else min(_rank(by_name[name]) for name in waits)
        ordered.append(by_name[name])
        del waits[name]
        for user in users.get(name, ()):
            if user in waits:
                waits[user] = waits[user] - {name}
                if not waits[user]:
                    heappush(ready, _rank(by_name[user]))
    return tuple(ordered)


def _rank(model: RenderedModel) -> tuple[bool, str]:
    return model.is_ensemble, model.name
