"""Brings one server's models to what they should be, over its public control protocol.

It is called again and again with the whole desired repository (`converge`) and starts what is missing: fetch
the files, place them beside those that are served, load, and drop the old ones when the server has. The
server swaps in the background, so requests never notice. What fails is taken back, told with its reason, and
tried again later; it holds up nothing else.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from argosy.fleet.facts import LoadedModel, LoadState
from argosy.render.repository import RenderedModel, RenderedRepository, in_load_order

from .control import ControlError, RefusedError, UnreachableError
from .repository import RepositoryFolder, Target
from .storage import Storage, StorageError

LOADS_AT_ONCE = 4
RETRY_FIRST_S, RETRY_MOST_S = 2.0, 60.0
DRAIN_POLL_S = 0.1
FORMER = " (its former files and config go on serving)"
HELD = (LoadState.READY, LoadState.LOADING, LoadState.UNLOADING)


class Controls(Protocol):
    """What the agent asks of a server; `control.Control` does it over HTTP."""

    async def index(self) -> tuple[LoadedModel, ...]:
        """Every model version that is loaded, or was tried."""

    async def load(self, model: str) -> None:
        """Load or reload a model."""

    async def unload(self, model: str) -> None:
        """Drop a model."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a target is not served, and when it is tried again.

    `alone`: the server ended while it loaded this.
    """

    target: Target | None
    reason: str
    attempts: int
    retry_at: float
    alone: bool = False


class Agent:
    """One server's models. Not thread-safe: it lives on one event loop."""

    def __init__(
        self, folder: RepositoryFolder, storage: Storage, control: Controls, clock: Callable[[], float]
    ) -> None:
        self._folder, self._storage, self._control, self._clock = folder, storage, control, clock
        self.applied = folder.applied()
        self.failures: dict[str, Failure] = {}
        self.doing: dict[str, str] = {}
        self._index: tuple[LoadedModel, ...] = ()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(LOADS_AT_ONCE)
        self._unsettled: set[str] = set()
        self._targets: dict[str, Target] = {}
        self._desired: RenderedRepository | None = None

    @property
    def busy(self) -> bool:
        """Whether anything is being fetched, loaded or dropped."""
        return bool(self._tasks)

    def copies(self) -> set[str]:
        """The copies of model files that are served or being loaded."""
        targets = [*self.applied.values(), *self._targets.values()]
        return {key for target in targets for key in target.keys.values()}

    @property
    def progressing(self) -> bool:
        """Whether anything is under way beyond another try of what failed before."""
        return any(not self._failed(name) for name in self._tasks)

    async def observe(self) -> bool:
        """Read the server's index. Whether the server answered."""
        self._unsettled = set(self._tasks)
        try:
            self._index = await self._control.index()
        except ControlError:
            self._index = ()
            return False
        return True

    def forget(self) -> None:
        """The server does not answer: nothing is known to be loaded."""
        self._index = ()

    def loaded(self) -> tuple[LoadedModel, ...]:
        """The index as last read, with what this agent knows better.

        What it is doing, and why something failed.
        """
        seen = {(each.model, each.version): each for each in self._index}
        for model in self._desired.models if self._desired else ():
            for entry in self._known(model):
                seen[entry.model, entry.version] = entry
        return tuple(seen[key] for key in sorted(seen))

    async def converge(self, desired: RenderedRepository) -> None:
        """Start what brings the server nearer to `desired`. Call after `observe`."""
        self._desired = desired
        targets = self._targets = await self._read_targets(desired)
        for model in in_load_order(desired.models):
            target = targets.get(model.name)
            if target is not None and self._due(target):
                self._start(model.name, self._bring(target))
        for name in self._unwanted(desired):
            self._start(name, self._drop(name))

    async def stop(self) -> None:
        """Give up what is under way, and wait until it has been taken back."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def is_served(self, target: Target) -> bool:
        """Whether the server serves exactly this: these files, this config."""
        return self.applied.get(target.model.name) == target and self._ready(target.model)

    async def _read_targets(self, desired: RenderedRepository) -> dict[str, Target]:
        targets: dict[str, Target] = {}
        for model in desired.models:
            try:
                keys = await asyncio.to_thread(self._keys, model)
            except StorageError as error:
                self.failures[model.name] = Failure(None, str(error), 0, self._clock())
            else:
                targets[model.name] = Target(model, keys)
        return targets

    def _keys(self, model: RenderedModel) -> dict[int, str]:
        return {
            version: self._storage.key(source.uri, source.digest) if source.uri else ""
            for version, source in model.versions.items()
        }

    def _due(self, target: Target) -> bool:
        name, failure = target.model.name, self.failures.get(target.model.name)
        if name in self._tasks or name in self._unsettled:
            return False
        if self.is_served(target):
            self.failures.pop(name, None)
            return False
        if (
            failure
            and failure.target == target
            and (self._clock() < failure.retry_at or (failure.alone and self._tasks))
        ):
            return False
        return all(self._step_ready(step, version) for step, version in target.model.steps.items())

    def _step_ready(self, model: str, version: int) -> bool:
        return model not in self._tasks and self._state(model, version) is LoadState.READY

    def _unwanted(self, desired: RenderedRepository) -> list[str]:
        wanted = {model.name for model in desired.models}
        used = {step for target in self.applied.values() for step in target.model.steps}
        there = set(self.applied) | self._folder.names()
        return sorted(there - wanted - used - set(self._tasks) - self._unsettled)

    def _start(self, name: str, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks[name] = task
        task.add_done_callback(lambda _: self._tasks.pop(name, None))

    async def _bring(self, target: Target) -> None:
        name = target.model.name
        try:
            await self._load(target)
            self.failures.pop(name, None)
        except (StorageError, ControlError, OSError) as error:
            before = self.failures.get(name)
            attempts = before.attempts + 1 if before and before.target == target else 1
            wait = min(RETRY_FIRST_S * 2 ** (attempts - 1), RETRY_MOST_S)
            alone = isinstance(error, UnreachableError)
            self.failures[name] = Failure(target, str(error), attempts, self._clock() + wait, alone)
        finally:
            self.doing.pop(name, None)

    async def _load(self, target: Target) -> None:
        name = target.model.name
        files = await self._fetch(target)
        before = self.applied.get(name)
        change = await asyncio.to_thread(self._folder.stage, target, before, files)
        try:
            async with self._slots:
                self.doing[name] = "loading"
                await self._control.load(name)
            await self._check(target)
        except BaseException as error:
            change.revert()
            if before is not None and isinstance(error, RefusedError):
                await self._restore(before)
            raise
        if before is not None:
            await self._drained(name, set(before.model.versions) - set(target.model.versions))
        await asyncio.to_thread(change.commit)
        self.applied[name] = target

    async def _fetch(self, target: Target) -> dict[int, Path]:
        files: dict[int, Path] = {}
        name = target.model.name
        for version, source in target.model.versions.items():
            if not source.uri:
                continue

            def tell(done: int, total: int, version: int = version) -> None:
                self.doing[name] = f"fetching version {version}: {_mebibytes(done, total)}"

            files[version] = await asyncio.to_thread(self._storage.fetch, source.uri, source.digest, tell)
        return files

    async def _check(self, target: Target) -> None:
        self._index = await self._control.index()
        for version in sorted(target.model.versions):
            if self._state(target.model.name, version) is not LoadState.READY:
                raise RefusedError(self._reason(target.model.name, version) or f"version {version} is not ready")

    async def _restore(self, before: Target) -> None:
        """After a load was refused.

        Most servers go on serving what they had; load it again where one does not.
        """
        name = before.model.name
        with suppress(ControlError):
            self._index = await self._control.index()
            if not self._ready(before.model):
                await self._control.load(name)

    async def _drop(self, name: str) -> None:
        self.doing[name] = "unloading"
        try:
            await self._control.unload(name)
            target = self.applied.get(name)
            await self._drained(name, set(target.model.versions) if target else set())
        except RefusedError:
            pass  # it never was loaded
        except UnreachableError:
            return  # it stays in the folder, and the next round tries again
        finally:
            self.doing.pop(name, None)
        await asyncio.to_thread(self._folder.remove, name)
        self.applied.pop(name, None)
        self.failures.pop(name, None)

    async def _drained(self, name: str, versions: set[int]) -> None:
        """Wait until the server has answered the last request of each version and dropped it."""
        while True:
            self._index = await self._control.index()
            if not any(self._state(name, version) in HELD for version in versions):
                return
            await asyncio.sleep(DRAIN_POLL_S)

    def _known(self, model: RenderedModel) -> list[LoadedModel]:
        """What stands instead of the index for versions that are not served as they should be."""
        failure, doing = self.failures.get(model.name), self.doing.get(model.name)
        known: list[LoadedModel] = []
        for version in model.versions:
            ready = self._state(model.name, version) is LoadState.READY
            if ready and not self._outdated(model, version):
                continue
            former = FORMER if ready else ""
            if doing is not None and not self._failed(model.name):
                known.append(LoadedModel(model.name, version, LoadState.LOADING, doing + former))
            elif failure is not None:
                known.append(LoadedModel(model.name, version, LoadState.UNAVAILABLE, failure.reason + former))
            else:
                known.append(LoadedModel(model.name, version, LoadState.LOADING, self._waiting(model) + former))
        return known

    def _outdated(self, model: RenderedModel, version: int) -> bool:
        """Whether the server serves this version, but from former files or with a former config."""
        applied, target = self.applied.get(model.name), self._targets.get(model.name)
        if applied is None or target is None:
            return True
        same_files = applied.keys.get(version) == target.keys.get(version)
        only_config = applied.model.versions.keys() == model.versions.keys()
        return not same_files or (only_config and applied != target)

    def _failed(self, name: str) -> bool:
        """Whether the model, as it should be now, failed when it was last tried."""
        failure = self.failures.get(name)
        return failure is not None and failure.target == self._targets.get(name)

    def _waiting(self, model: RenderedModel) -> str:
        waits = [step for step, version in model.steps.items() if not self._step_ready(step, version)]
        return f"waiting for {', '.join(sorted(waits))}" if waits else "waiting"

    def _ready(self, model: RenderedModel) -> bool:
        return all(self._state(model.name, version) is LoadState.READY for version in model.versions)

    def _state(self, name: str, version: int) -> LoadState | None:
        return next((each.state for each in self._index if (each.model, each.version) == (name, version)), None)

    def _reason(self, name: str, version: int) -> str:
        return next((each.reason for each in self._index if (each.model, each.version) == (name, version)), "")


def _mebibytes(done: int, total: int) -> str:
    return f"{done / 2**20:.0f} of {total / 2**20:.0f} MiB" if total else f"{done / 2**20:.0f} MiB"
