"""A ledger of one server's models: desired, loaded, under way, failed.

The agent writes it; nothing here calls a server, touches a file or reads a clock.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from argosy_agent.contract import FailureKind, LoadedModel, LoadState, RenderedModel, RenderedRepository
from argosy_agent.folder.target import Target
from argosy_common import crash_loops
from argosy_common.backoff import backoff_s

RETRY_FIRST_S, RETRY_MOST_S = 2.0, 60.0
COSTLY_FIRST_S, COSTLY_MOST_S = 60.0, 1800.0
"""The pauses where another try would fetch all of a model once more, to the same end."""
LOADING = "loading"
"""The reason of a model while the server loads it."""
QUEUED = "queued"
"""The reason of a model before its turn has come."""
LOADED_STATES = (LoadState.READY, LoadState.LOADING, LoadState.UNLOADING)
"""States in which a server still has a version."""
_OF_LOADS = (FailureKind.SERVER, FailureKind.LOAD)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a target is not served, at which step it failed, and when it is tried again.

    `alone`: the server ended while it loaded this, so it waits while another is loaded. `version`: the one whose files
    are missing, 0 for any.
    """

    target: Target | None
    reason: str
    kind: FailureKind
    attempts: int
    retry_at: float
    alone: bool = False
    version: int = 0


class Ledger:
    """One server's models, by name. Times are seconds of one steady clock."""

    def __init__(self, applied: dict[str, Target]) -> None:
        self.applied = applied
        self.targets: dict[str, Target] = {}
        self.failures: dict[str, Failure] = {}
        self._relapses: dict[str, Failure] = {}
        self.doing: dict[str, str] = {}
        self.silent: dict[str, str] = {}
        """The reasons of the models that wait for a storage which does not answer."""
        self.digests: Mapping[str, str] = {}
        """The digests of the contents of copies, by key."""
        self.desired: tuple[RenderedModel, ...] = ()
        self._index: dict[tuple[str, int], LoadedModel] = {}
        self._unsettled: set[str] = set()
        self._begun_since: set[str] = set()
        self._noted_since: set[str] = set()

    @property
    def unsettled(self) -> bool:
        """Whether a model's state is not known since something of it has ended."""
        return not self._unsettled <= self.doing.keys()

    def begins(self, name: str) -> None:
        """Take note that work on a model has begun."""
        self.doing[name] = QUEUED
        self._begun_since.add(name)

    def ended(self, name: str, observed: bool) -> None:
        """Take note that work on a model has ended. `observed`: the ledger has its result on the server already."""
        self.doing.pop(name, None)
        (self._unsettled.discard if observed else self._unsettled.add)(name)

    def index_requested(self) -> None:
        """Take note that the server's index is requested now: later events may not be in it."""
        self._begun_since, self._noted_since = set(self.doing), set()

    def observed(self, index: Iterable[LoadedModel]) -> bool:
        """Store the server's index, and return whether it has news.

        For models that are under way it may be out of date by the time it is used.
        """
        loaded = {(model.model, model.version): model for model in index if model.model not in self._noted_since}
        loaded |= {key: model for key, model in self._index.items() if key[0] in self._noted_since}
        new, self._index = loaded != self._index, loaded
        self._unsettled = set(self._begun_since)
        return new

    def noted(self, name: str, versions: Iterable[int]) -> None:
        """Take note that these versions are ready."""
        self._index.update({(name, version): LoadedModel(name, version, LoadState.READY) for version in versions})
        self._noted_since.add(name)

    def lost(self) -> None:
        """Forget what is loaded, as the server does not answer."""
        self._index.clear()

    def ready(self) -> list[tuple[str, int]]:
        """Return every version that the server reported ready, by its model's name."""
        return [key for key, loaded in self._index.items() if loaded.state is LoadState.READY]

    def desire(self, desired: RenderedRepository, targets: dict[str, Target]) -> None:
        """Set what should be served; `targets` are the models whose files can be had.

        The memory of a model may change while it is loaded.
        """
        self.desired, self.targets = desired.models, targets
        self.applied.update({name: target for name, target in targets.items() if self.applied.get(name) == target})

    def failed(
        self, target: Target, reason: str, kind: FailureKind, now: float, *, alone: bool = False, costly: bool = False
    ) -> None:
        """Record that a target could not be loaded; it is tried again after a pause that grows.

        A server that gives no answer may have been killed, or not; where it gives none once more, to the same load, it
        is this that ends it.
        """
        name = target.model.name
        failures = self._relapses if target == self._former(name) else self.failures
        before = failures.get(name)
        again = before is not None and before.target == target
        attempts = before.attempts + 1 if before is not None and again else 1
        if kind is FailureKind.SERVER and before is not None and again and before.kind in _OF_LOADS:
            kind = FailureKind.LOAD
        first, most = (COSTLY_FIRST_S, COSTLY_MOST_S) if costly else (RETRY_FIRST_S, RETRY_MOST_S)
        wait = backoff_s(attempts, first, most)
        failures[name] = Failure(target, reason, kind, attempts, now + wait, alone)

    def brought(self, target: Target) -> None:
        """Record that a target was loaded."""
        name = target.model.name
        self._relapses.pop(name, None)
        if target == self.targets.get(name):
            self.failures.pop(name, None)

    def without_files(self, name: str, version: int, reason: str, kind: FailureKind, now: float) -> None:
        """Record that the files of a model's version cannot be had; that is checked every round."""
        self.failures[name] = Failure(None, reason, kind, 0, now, version=version)

    def dropped(self, name: str) -> None:
        """Forget a model that is no longer here."""
        self.applied.pop(name, None)
        self.failures.pop(name, None)
        self._relapses.pop(name, None)

    def cache_keys(self) -> set[str]:
        """Return the keys of the copies that are served or being loaded."""
        targets = [*self.applied.values(), *self.targets.values()]
        return {key for target in targets for key in target.keys.values()}

    def has_failed(self, name: str) -> bool:
        """Return whether the model, as it should be now, failed when it was last tried, or waits for a silent
        storage.
        """
        failure = self.failures.get(name)
        return name in self.silent or (failure is not None and failure.target == self.targets.get(name))

    def is_served(self, target: Target) -> bool:
        """Return whether the server serves exactly this: these files, this config."""
        return self.applied.get(target.model.name) == target and self.is_ready(target.model)

    def is_ready(self, model: RenderedModel) -> bool:
        """Return whether the server has every version of a model ready."""
        return all(self.state(model.name, version) is LoadState.READY for version in model.versions)

    def crashes(self, target: Target) -> bool:
        """Return whether the server has exactly this, which ends again and again. The server starts it by itself, after
        pauses that another load would cut short.
        """
        return self.applied.get(target.model.name) == target and any(
            self._crashes(target.model.name, version) for version in target.model.versions
        )

    def _crashes(self, name: str, version: int) -> bool:
        loaded = self._index.get((name, version))
        return loaded is not None and crash_loops.matches(loaded.reason)

    def state(self, name: str, version: int) -> LoadState | None:
        """Return a version's state, or None if the server does not report it."""
        loaded = self._index.get((name, version))
        return loaded.state if loaded is not None else None

    def reason(self, name: str, version: int) -> str:
        """Return the server's own words about a version."""
        loaded = self._index.get((name, version))
        return loaded.reason if loaded is not None else ""

    def holds(self, name: str, versions: set[int]) -> bool:
        """Return whether the server still has any of these versions."""
        return any(self.state(name, version) in LOADED_STATES for version in versions)

    def due(self, name: str, now: float) -> Target | None:
        """Return the target of a model that is to be loaded now.

        A target that served before and is no longer loaded has precedence: its files are in the folder, while those of
        the desired one may be unavailable. After it fails it comes last, since the desired one may fix the failure.
        """
        target = self.targets.get(name)
        if name in self.doing or name in self._unsettled:
            return None
        if target is not None and (self.is_served(target) or self.crashes(target)):
            self.failures.pop(name, None)
            return None
        order = [self._lost(name), target]
        if name in self._relapses:
            order.reverse()
        candidates = filter(None, order)
        return next((target for target in candidates if self._may_be_brought(target, now)), None)

    def wants(self, name: str) -> bool:
        """Return whether a model should be here."""
        return any(model.name == name for model in self.desired)

    def unwanted(self, folders: set[str]) -> list[str]:
        """Return the models that are here, or have a folder here, and should not be."""
        desired = {model.name for model in self.desired}
        used = {step for target in self.applied.values() for step in target.model.needs}
        return sorted((set(self.applied) | folders) - desired - used - set(self.doing) - self._unsettled)

    def loaded(self) -> tuple[LoadedModel, ...]:
        """Return the index, by declared names, with what is under way and why something failed.

        A server's index goes on naming versions that it has unloaded; these are left out.
        """
        seen = {key: model for key, model in self._index.items() if model.state in LOADED_STATES or model.failure}
        for model in self.desired:
            for version in model.versions:
                ready = self.state(model.name, version) is LoadState.READY
                crashes = self._crashes(model.name, version) and model.name not in self.doing
                if (not ready and not crashes) or self._outdated(model, version):
                    former = ready and model.name in self.applied
                    seen[model.name, version] = replace(self._instead(model, version), version=version, former=former)
        models = [*(target.model for target in self.applied.values()), *self.desired]
        declared = {model.name: model.declared_name for model in models}
        return tuple(
            replace(seen[key], model=declared.get(key[0], key[0]), digest=self._digest(seen[key]))
            for key in sorted(seen)
        )

    def learned(self, digests: Mapping[str, str]) -> None:
        """Store the digests of copies; those of copies that are neither served nor being loaded are dropped."""
        keys = self.cache_keys()
        self.digests = {key: digest for key, digest in {**self.digests, **digests}.items() if key in keys}

    def has_been_tried(self, name: str) -> bool:
        """Return whether a model is served as it should be, has failed, or waits for a step that will not come by
        itself.
        """
        target = self.targets.get(name)
        there = target is not None and (self.is_served(target) or self.crashes(target))
        return there or self._is_stuck(name, frozenset())

    def _digest(self, loaded: LoadedModel) -> str:
        """Return the digest of the files that a version answers from."""
        applied = self.applied.get(loaded.model)
        if applied is None or not loaded.answers:
            return ""
        return self.digests.get(applied.keys.get(loaded.version, ""), "")

    def _former(self, name: str) -> Target | None:
        """Return the target that was last loaded and is complete in the folder, where another one should be served."""
        before = self.applied.get(name)
        if before is None or before == self.targets.get(name) or before.keys.keys() != before.model.versions.keys():
            return None
        return before

    def _lost(self, name: str) -> Target | None:
        former = self._former(name)
        return None if former is None or self.is_ready(former.model) or self.crashes(former) else former

    def _may_be_brought(self, target: Target, now: float) -> bool:
        name = target.model.name
        failures = [self.failures.get(name), self._relapses.get(name)]
        failure = next((failure for failure in failures if failure is not None and failure.target == target), None)
        if failure is not None and (now < failure.retry_at or (failure.alone and LOADING in self.doing.values())):
            return False
        return not self._missing_steps(target.model)

    def _is_stuck(self, name: str, users: frozenset[str]) -> bool:
        model = next((desired for desired in self.desired if desired.name == name), None)
        if model is None or name in users or self.has_failed(name):
            return True
        return any(self._is_stuck(step, users | {name}) for step in self._missing_steps(model))

    def _instead(self, model: RenderedModel, version: int) -> LoadedModel:
        """Return the reported state of a version that is not served as it should be, in place of the index's.

        Where another version's files are missing, this one cannot be had either, and is not at fault.
        """
        failure, doing = self.failures.get(model.name), self.doing.get(model.name)
        if doing is not None and not self.has_failed(model.name):
            return LoadedModel(model.name, 0, LoadState.LOADING, doing)
        if model.name in self.silent:
            return LoadedModel(model.name, 0, LoadState.UNAVAILABLE, self.silent[model.name], FailureKind.DOWNLOAD)
        if failure is not None:
            attempts = failure.attempts if failure.kind is FailureKind.DEVICE else 0
            kind = failure.kind if failure.version in (0, version) else FailureKind.DOWNLOAD
            return LoadedModel(model.name, 0, LoadState.UNAVAILABLE, failure.reason, kind, attempts=attempts)
        waits = self._missing_steps(model)
        return LoadedModel(model.name, 0, LoadState.LOADING, f"waiting for {', '.join(waits)}" if waits else "waiting")

    def _outdated(self, model: RenderedModel, version: int) -> bool:
        """Return whether the server serves this version from former files or with a former config."""
        applied, target = self.applied.get(model.name), self.targets.get(model.name)
        if applied is None or target is None:
            return True
        if version not in applied.model.versions or applied.keys.get(version) != target.keys.get(version):
            return True
        has_own = applied.model.versions[version].own is not None and model.versions[version].own is not None
        only_config = applied.model.versions.keys() == model.versions.keys()
        return (has_own or only_config) and not applied.model.configures_like(model, version)

    def _missing_steps(self, model: RenderedModel) -> list[str]:
        """Return the steps that a model waits for: of an ensemble all that are not loaded, of alternatives none once
        one of them is.
        """
        if model.base and not self._serves(model.base):
            return [model.base]
        missing: set[str] = set()
        for version in model.versions:
            steps = model.steps_of(version)
            lacks = {step for step, at in steps.items() if not self._has_step(step, at)}
            if not model.alternatives or len(lacks) == len(steps):
                missing |= lacks
        return sorted(missing)

    def _has_step(self, name: str, version: int) -> bool:
        return name not in self.doing and self.state(name, version) is LoadState.READY

    def _serves(self, name: str) -> bool:
        """Return whether any version of a model is loaded."""
        return any(key[0] == name and model.state is LoadState.READY for key, model in self._index.items())
