"""Versions that have left service: each answers its accepted requests, then releases its resources."""

import asyncio
import logging
from time import monotonic

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends import brings_environment
from argosy_runtime.backends.environments.unpacked import remove_unused

from .folders.overrides import OverrideStore
from .preparing import LoadedRevision
from .records import UNLOADED, ModelRecord, VersionRecord
from .serving.version import ServedVersion

_log = logging.getLogger("argosy.repository")


class Retirement:
    """Closing of versions in the background. `grace`: seconds that each may take to answer its accepted requests."""

    def __init__(self, grace: float, overrides: OverrideStore) -> None:
        self.grace = grace
        self._overrides = overrides
        self._closings: dict[asyncio.Task[None], _Closing] = {}

    def limit(self, grace: float) -> None:
        """Let versions take at most `grace` seconds from now on, those that have left service already among them."""
        self.grace = grace
        for closing in self._closings.values():
            closing.limit(grace)

    def replace(
        self, record: ModelRecord, version: int, served: ServedVersion, revision: LoadedRevision | None = None
    ) -> None:
        """Put a version into service, and close the one that it replaces."""
        self._overrides.hold(served.folder)
        old = record.put(version, served, revision)
        if old is not None:
            self._begin(record, old)

    def retire(self, record: ModelRecord, version: int, why: str = UNLOADED) -> None:
        """Take one version out of service; no new request finds it from now on."""
        served = record.take(version, why)
        if served is not None:
            version_record = record.versions[version]
            version_record.closings += 1
            self._begin(record, served).add_done_callback(lambda _: _closed(version_record))

    async def discard(self, served: ServedVersion) -> None:
        """Close a version that was never in service."""
        await _close(served, 0.0)

    @property
    def owes(self) -> bool:
        """Whether a version that has left service has requests to answer."""
        return any(closing.served.owes for closing in self._closings.values())

    async def released(self, name: str) -> None:
        """Wait until all versions of a model that have left service are closed."""
        if closings := [task for task, closing in self._closings.items() if closing.served.name == name]:
            await asyncio.wait(closings)

    async def finished(self) -> None:
        """Wait until everything is closed."""
        while self._closings:
            await asyncio.wait(self._closings)

    def _begin(self, record: ModelRecord, served: ServedVersion) -> asyncio.Task[None]:
        closing = _Closing(served, self.grace)
        record.leaving.append(served)
        task = asyncio.get_running_loop().create_task(self._end(closing))
        self._closings[task] = closing
        task.add_done_callback(self._closings.pop)
        task.add_done_callback(lambda _: record.leaving.remove(served))
        return task

    async def _end(self, closing: "_Closing") -> None:
        try:
            await closing.run()
        finally:
            self._overrides.release(closing.served.folder)


class _Closing:
    """The end of a version, which may take `grace` seconds."""

    def __init__(self, served: ServedVersion, grace: float) -> None:
        self.served = served
        self._end = monotonic() + grace
        self._task: asyncio.Task[None] | None = None
        self._shortened = False

    def limit(self, grace: float) -> None:
        """Shorten the time that is left to `grace` seconds."""
        end = monotonic() + grace
        if end < self._end:
            self._end = end
            if self._task is not None:
                self._shortened = self._task.cancel()

    async def run(self) -> None:
        """Close the version, once more whenever its time is shortened."""
        # In the task of the caller: a version without open requests has left by the loop's next turn.
        self._task = asyncio.current_task()
        closed = False
        while not closed:
            try:
                await _close(self.served, max(0.0, self._end - monotonic()))
                closed = True
            except asyncio.CancelledError:
                if self._task is None or not self._shortened:
                    raise
                self._shortened = False
                self._task.uncancel()


async def _close(served: ServedVersion, grace: float) -> None:
    try:
        await served.close(grace)
    except Exception:
        _log.exception("releasing '%s' version %d failed", served.name, served.version)
    await tidy(served.config)


async def tidy(config: ModelConfig) -> None:
    """Remove the unpacked environment of a model of this configuration, unless it is still in use."""
    if brings_environment(config):
        await asyncio.to_thread(remove_unused)


def _closed(record: VersionRecord) -> None:
    record.closings -= 1
