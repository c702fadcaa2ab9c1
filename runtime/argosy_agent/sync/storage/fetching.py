"""The files of a model's versions: those that stand in its folder, and those that the storage has or gets."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from argosy_agent.cache.storage import Storage
from argosy_agent.contract import VersionSource
from argosy_agent.folder.repository import RepositoryFolder
from argosy_agent.folder.target import Target
from argosy_agent.transfer.errors import StorageStoppedError

from .threads import Call, StorageThreads, storage_of, unanswered

FETCHES_AT_ONCE = 4
"""As many take what a network gives; as many of one storage may hang."""
CACHE = "the model cache"
"""What is said of a model that waits for the disk of the cache."""
Result = TypeVar("Result")
Report = Callable[[str], None]
"""Told how far a model is; ends what is under way by raising."""


class Fetching:
    """Gets files for one server's folder. It lives on one event loop."""

    def __init__(self, folder: RepositoryFolder, storage: Storage, clock: Callable[[], float]) -> None:
        self._folder, self._storage, self._clock = folder, storage, clock
        self._threads = StorageThreads(clock, FETCHES_AT_ONCE, FETCHES_AT_ONCE)
        self._cache = StorageThreads(clock, FETCHES_AT_ONCE, FETCHES_AT_ONCE)
        self._reports: dict[Call[Path], Report] = {}

    async def files(self, target: Target, before: Target | None, report: Report) -> dict[int, Path]:
        """Return where each version's files are; an ensemble's have none. `before` is what was loaded last.

        `report` receives the progress, and cancels by raising. Raises StorageError.
        """
        files = await asyncio.to_thread(self._folder.standing, target, before)
        for version, source in target.model.versions.items():
            if source.uri and version not in files:
                here = await self.in_cache(target.model.name, partial(self._storage.cached, target.keys[version]))
                files[version] = here or await self._fetched(target.model.name, version, source, report)
        return files

    async def digests(self, target: Target) -> dict[str, str]:
        """Return the digests of the contents of a target's copies, by key."""
        return await self.in_cache(target.model.name, partial(self._storage.digests, set(target.keys.values())))

    async def in_cache(self, model: str, work: Callable[[], Result]) -> Result:
        """Return what `work` returns, which reads the cache's disk: that may hang as well."""
        return await self._cache.submit(CACHE, model, lambda _: work()).result

    def silent(self) -> dict[str, str]:
        """Return the reasons of the models whose storage does not answer.

        A fetch that is not wanted any more is given up: it would hold up what is wanted instead.
        """
        messages: dict[str, str] = {}
        for threads in (self._threads, self._cache):
            threads.start_due()
            for call, silent_s in threads.silent():
                messages[call.model] = unanswered(call.storage, silent_s)
        for call, report in tuple(self._reports.items()):
            if call.model in messages and not call.result.done():
                try:
                    report(messages[call.model])
                except StorageStoppedError as error:
                    call.result.set_exception(error)
                    del messages[call.model]
        return messages

    async def ended(self, timeout_s: float) -> None:
        """Wait until no thread is under way, at most so long."""
        await asyncio.gather(self._threads.ended(timeout_s), self._cache.ended(timeout_s))

    async def _fetched(self, model: str, version: int, source: VersionSource, report: Report) -> Path:
        def fetch(call: Call[Path]) -> Path:
            def progress(done: int, total: int) -> None:
                call.heard(self._clock())
                call.complete = 0 < total <= done
                report(f"fetching version {version}: {_mebibytes(done, total)}")

            return self._storage.fetch(source.uri, source.digest, progress, source.secret, version)

        call = self._threads.submit(storage_of(source.uri), model, fetch)
        self._reports[call] = report
        try:
            return await call.result
        finally:
            del self._reports[call]


def _mebibytes(done: int, total: int) -> str:
    return f"{done / 2**20:.0f} of {total / 2**20:.0f} MiB" if total else f"{done / 2**20:.0f} MiB"
