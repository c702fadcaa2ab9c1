"""The values between the operator and an agent: what a server should have, and what it reports. Pure.

A server's model repository as values, before it is written:

<model>/config.pbtxt        `config_text`
<model>/<version>/          the files at `versions[version].uri`, and those of `texts`; empty for an ensemble
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
    a load or in executions.
    """

    DOWNLOAD = "Download"
    DIGEST = "Digest"
    LOAD = "Load"
    CRASH = "Crash"
    DEVICE = "Device"


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
class VersionSource:
    """The source of one version's files. An ensemble's version has no files: `uri` is empty.

    `filename`: the name of a single file in the version's folder; empty keeps its own name. `memory`: bytes on each of
    its GPUs, 0 if unknown; `exclusive`: it shares them with no other model. `secret`: the Secret with the credentials
    for the files; empty: the pool's.
    """

    uri: str = ""
    digest: str = ""
    filename: str = ""
    memory: int = 0
    exclusive: bool = False
    secret: str = ""

    @property
    def files(self) -> tuple[str, str, str, str]:
        """What decides which files they are: with other credentials they may be others, or none."""
        return self.uri, self.digest, self.filename, self.secret


@dataclass(frozen=True, slots=True)
class RenderedModel:
    """One folder of a repository. `steps` are the models that must be loaded first: an ensemble's own. Where they are
    `alternatives`, as variants are, one of them is enough. `base`: the model that an adapter is loaded into.

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
        return bool(self.steps)

    def changes_live(self, former: "RenderedModel") -> bool:
        """Return whether a server that serves the former has nothing to load but further instances."""
        files = {version: source.files for version, source in former.versions.items()}
        return (
            bool(self.reload_key)
            and self.reload_key == former.reload_key
            and all(files.get(version) == source.files for version, source in self.versions.items())
        )

    def serves_like(self, other: "RenderedModel") -> bool:
        """Return whether a server would load the same: the memory is only reported, and may change without a reload."""
        mine = (self.name, self.config_text, self.steps, self.texts)
        return mine == (other.name, other.config_text, other.steps, other.texts) and {
            version: source.files for version, source in self.versions.items()
        } == {version: source.files for version, source in other.versions.items()}


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
    waits = {model.name: model.steps.keys() & by_name.keys() for model in models}
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
