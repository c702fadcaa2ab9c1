"""The files of a model's versions: those that stand in its folder, and those that the storage has or gets."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from argosy_agent.cache.storage import Storage
from argosy_agent.contract import VersionSource
from argosy_agent.folder.repository import RepositoryFolder
from argosy_agent.folder.target import Target
from argosy_agent.transfer.flow import Progress

FETCHES_AT_ONCE = 4
"""Each takes a thread of those that also look after the rest: never all of them."""


class Fetching:
    """Gets files for one server's folder. It lives on one event loop."""

    def __init__(self, folder: RepositoryFolder, storage: Storage) -> None:
        self._folder, self._storage = folder, storage
        self._slots = asyncio.Semaphore(FETCHES_AT_ONCE)

    async def files(self, target: Target, before: Target | None, tell: Callable[[str], None]) -> dict[int, Path]:
        """Where each version's files are; an ensemble's have none. `before` is what was loaded last.

        `tell` is told how far it is, and ends it by raising. Raises StorageError.
        """
        files = await asyncio.to_thread(self._folder.standing, target, before)
        for version, source in target.model.versions.items():
            if source.uri and version not in files:
                here = await asyncio.to_thread(self._storage.whole, target.keys[version])
                files[version] = here or await self._fetched(source, _progress(version, tell))
        return files

    async def _fetched(self, source: VersionSource, progress: Progress) -> Path:
        async with self._slots:
            return await asyncio.to_thread(self._storage.fetch, source.uri, source.digest, progress, source.secret)


def _progress(version: int, tell: Callable[[str], None]) -> Progress:
    return lambda done, total: tell(f"fetching version {version}: {_mebibytes(done, total)}")


def _mebibytes(done: int, total: int) -> str:
    return f"{done / 2**20:.0f} of {total / 2**20:.0f} MiB" if total else f"{done / 2**20:.0f} MiB"
