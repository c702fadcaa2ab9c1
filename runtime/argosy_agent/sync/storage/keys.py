"""The keys of models' files, looked up by one thread for each storage. What is known stands while it is asked again."""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

from argosy_agent.cache.storage import Storage
from argosy_agent.contract import RenderedRepository, VersionSource
from argosy_agent.transfer.errors import StorageError

from .threads import Call, StorageThreads, storage_of

PATIENCE_S = 0.2
"""How long a round waits for keys, which most storages have in a moment."""
STORAGES_AT_ONCE = 32
Files = tuple[str, str, str, int]
"""What a key is of: URI, digest, Secret and version."""


class Keys:
    """Looks up keys, again at each call of `look`. `news` is called when some come after it. On one event loop."""

    def __init__(self, storage: Storage, clock: Callable[[], float], news: Callable[[], None]) -> None:
        self._storage, self._clock, self._news = storage, clock, news
        self._threads = StorageThreads(clock, STORAGES_AT_ONCE, per_storage=1)
        self._keys: dict[Files, str | StorageError] = {}
        self._calls: dict[str, Call[None]] = {}
        self._overdue: set[str] = set()

    async def look(self, desired: RenderedRepository) -> None:
        """Look up all keys again; a storage that takes long is not waited for."""
        lookups: dict[str, list[Files]] = {}
        for model in desired.models:
            for version, source in model.versions.items():
                if source.uri:
                    lookups.setdefault(storage_of(source.uri), []).append(_files(source, version))
        for files in self._keys.keys() - {files for batch in lookups.values() for files in batch}:
            del self._keys[files]
        for storage, batch in lookups.items():
            if storage not in self._calls:
                self._begin(storage, batch)
        self._threads.start_due()
        await self._wait()

    def key(self, source: VersionSource, version: int) -> str | None:
        """Return the key of a version's files; None where it is not known yet. Raises StorageError where
        there is none.
        """
        key = self._keys.get(_files(source, version))
        if isinstance(key, StorageError):
            raise key
        return key

    def silent(self) -> dict[str, float]:
        """Return the storages that do not answer, and for how long, in seconds."""
        return {call.storage: silent_s for call, silent_s in self._threads.silent()}

    async def ended(self, timeout_s: float) -> None:
        """Wait until no thread is under way, at most so long."""
        await self._threads.ended(timeout_s)

    def _begin(self, storage: str, batch: Iterable[Files]) -> None:
        call = self._threads.submit(storage, "", partial(self._look_up, tuple(batch)))
        self._calls[storage] = call
        call.result.add_done_callback(partial(self._ended, storage))

    def _ended(self, storage: str, result: asyncio.Future[None]) -> None:
        self._calls.pop(storage, None)
        if storage in self._overdue:
            self._overdue.discard(storage)
            self._news()

    async def _wait(self) -> None:
        waiting = {call.result for storage, call in self._calls.items() if storage not in self._overdue}
        if waiting:
            await asyncio.wait(waiting, timeout=PATIENCE_S)
            self._overdue |= self._calls.keys()

    def _look_up(self, batch: Iterable[Files], call: Call[None]) -> None:
        for files in batch:
            self._keys[files] = self._looked_up(files)
            call.heard(self._clock())

    def _looked_up(self, files: Files) -> str | StorageError:
        try:
            return self._storage.key(*files)
        except StorageError as error:
            return error
        except Exception as error:  # a fault of ours, in what one model says, holds up no other
            return StorageError(f"{type(error).__name__}: {error}")


def _files(source: VersionSource, version: int) -> Files:
    return source.uri, source.digest, source.secret, version
