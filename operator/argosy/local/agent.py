"""Brings one server's models to what they should be, over its public control protocol.

It is called again and again with the whole desired repository (`converge`) and starts what is missing: fetch
the files, place them beside those that are served, load, and drop the old ones when the server has. The
server swaps in the background, so requests never notice. What fails is taken back, told with its reason, and
tried again later; it holds up nothing else.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from argosy.fleet.facts import LoadedModel, LoadState
from argosy.render.repository import RenderedModel, RenderedRepository, in_load_order

from .control import ControlError, RefusedError, UnreachableError
from .ledger import Ledger
from .reasons import load_failure
from .repository import RepositoryFolder, Target
from .storage import Storage, StorageError

LOADS_AT_ONCE = 4
DRAIN_POLL_S = 0.1


class Controls(Protocol):
    """What the agent asks of a server; `control.Control` does it over HTTP."""

    async def index(self) -> tuple[LoadedModel, ...]:
        """Every model version that is loaded, or was tried."""

    async def load(self, model: str) -> None:
        """Load or reload a model."""

    async def unload(self, model: str) -> None:
        """Drop a model."""


class Agent:
    """One server's models. Not thread-safe: it lives on one event loop. `ledger` is for others to read."""

    def __init__(
        self, folder: RepositoryFolder, storage: Storage, control: Controls, clock: Callable[[], float]
    ) -> None:
        self._folder, self._storage, self._control, self._clock = folder, storage, control, clock
        self.ledger = Ledger(folder.applied())
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(LOADS_AT_ONCE)

    @property
    def busy(self) -> bool:
        """Whether anything is being fetched, loaded or dropped."""
        return bool(self._tasks)

    @property
    def progressing(self) -> bool:
        """Whether anything is under way beyond another try of what failed before."""
        return any(not self.ledger.has_failed(name) for name in self._tasks)

    async def observe(self) -> bool:
        """Read the server's index. Whether the server answered; if not, nothing is known to be loaded."""
        try:
            index = await self._control.index()
        except ControlError:
            self.forget()
            return False
        self.ledger.observed(index)
        return True

    def forget(self) -> None:
        """The server does not answer."""
        self.ledger.observed(())

    async def converge(self, desired: RenderedRepository) -> None:
        """Start what brings the server nearer to `desired`. Call after `observe`."""
        self.ledger.wanted(desired, await self._targets(desired))
        for model in in_load_order(desired.models):
            target = self.ledger.targets.get(model.name)
            if target is not None and self.ledger.is_due(target, self._clock()):
                self._start(model.name, self._bring(target))
        for name in self.ledger.unwanted(self._folder.names()):
            self._start(name, self._drop(name))

    async def stop(self) -> None:
        """Give up what is under way, and wait until it has been taken back."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _targets(self, desired: RenderedRepository) -> dict[str, Target]:
        targets: dict[str, Target] = {}
        for model in desired.models:
            try:
                keys = await asyncio.to_thread(self._keys, model)
            except StorageError as error:
                self.ledger.without_files(model.name, str(error), self._clock())
            else:
                targets[model.name] = Target(model, keys)
        return targets

    def _keys(self, model: RenderedModel) -> dict[int, str]:
        return {
            version: self._storage.key(source.uri, source.digest) if source.uri else ""
            for version, source in model.versions.items()
        }

    def _start(self, name: str, work: Coroutine[None, None, None]) -> None:
        self.ledger.doing[name] = "queued"
        task = asyncio.create_task(work, name=name)
        self._tasks[name] = task
        task.add_done_callback(lambda _: self._ended(name))

    def _ended(self, name: str) -> None:
        self._tasks.pop(name, None)
        self.ledger.doing.pop(name, None)

    async def _bring(self, target: Target) -> None:
        try:
            await self._load(target)
            self.ledger.failures.pop(target.model.name, None)
        except (StorageError, ControlError, OSError) as error:
            self.ledger.failed(target, str(error), self._clock(), alone=isinstance(error, UnreachableError))

    async def _load(self, target: Target) -> None:
        name = target.model.name
        files = await self._fetch(target)
        before = self.ledger.applied.get(name)
        change = await asyncio.to_thread(self._folder.stage, target, before, files)
        try:
            async with self._slots:
                self.ledger.doing[name] = "loading"
                await self._ask_to_load(target)
        except BaseException as error:
            change.revert()
            if before is not None and isinstance(error, RefusedError):
                await self._restore(before)
            raise
        if before is not None:
            await self._drained(name, set(before.model.versions) - set(target.model.versions))
        await asyncio.to_thread(change.commit)
        self.ledger.applied[name] = target

    async def _fetch(self, target: Target) -> dict[int, Path]:
        files: dict[int, Path] = {}
        name = target.model.name
        for version, source in target.model.versions.items():
            if not source.uri:
                continue

            def tell(done: int, total: int, version: int = version) -> None:
                self.ledger.doing[name] = f"fetching version {version}: {_mebibytes(done, total)}"

            files[version] = await asyncio.to_thread(self._storage.fetch, source.uri, source.digest, tell)
        return files

    async def _ask_to_load(self, target: Target) -> None:
        """Load, and see that every version is ready. Raises RefusedError with what the index says of the first that
        is not, which is shorter than the answer to the load.
        """
        name, refused = target.model.name, ""
        try:
            await self._control.load(name)
        except RefusedError as error:
            refused = str(error)
        self.ledger.index = await self._control.index()
        unready = [v for v in sorted(target.model.versions) if self.ledger.state(name, v) is not LoadState.READY]
        if refused or unready:
            said = next((reason for v in unready if (reason := self.ledger.reason(name, v))), refused)
            raise RefusedError(self._explained(target, said or f"version {unready[0]} is not ready"))

    def _explained(self, target: Target, words: str) -> str:
        uris = {version: source.uri for version, source in target.model.versions.items()}
        return load_failure(words, self._folder.root / target.model.name, uris, self._folder.log)

    async def _restore(self, before: Target) -> None:
        """After a load was refused.

        Most servers go on serving what they had; load it again where one does not.
        """
        name = before.model.name
        with suppress(ControlError):
            self.ledger.index = await self._control.index()
            if not self.ledger.is_ready(before.model):
                await self._control.load(name)

    async def _drop(self, name: str) -> None:
        self.ledger.doing[name] = "unloading"
        try:
            await self._control.unload(name)
            target = self.ledger.applied.get(name)
            await self._drained(name, set(target.model.versions) if target else set())
        except RefusedError:
            pass  # it never was loaded
        except UnreachableError:
            return  # it stays in the folder, and the next round tries again
        await asyncio.to_thread(self._folder.remove, name)
        self.ledger.dropped(name)

    async def _drained(self, name: str, versions: set[int]) -> None:
        """Wait until the server has answered the last request of each version and dropped it."""
        while True:
            self.ledger.index = await self._control.index()
            if not self.ledger.holds(name, versions):
                return
            await asyncio.sleep(DRAIN_POLL_S)


def _mebibytes(done: int, total: int) -> str:
    return f"{done / 2**20:.0f} of {total / 2**20:.0f} MiB" if total else f"{done / 2**20:.0f} MiB"
