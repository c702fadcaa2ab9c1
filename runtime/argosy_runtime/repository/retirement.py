"""Versions that have left service: each answers its accepted requests, then releases its resources."""

import asyncio
import logging

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
        self._closings: dict[asyncio.Task[None], ServedVersion] = {}

    def replace(
        self, record: ModelRecord, version: int, served: ServedVersion, revision: LoadedRevision | None = None
    ) -> None:
        """Put a version into service, and close the one that it replaces."""
        self._overrides.hold(served.folder)
        old = record.put(version, served, revision)
        if old is not None:
            self._begin(old)

    def retire(self, record: ModelRecord, version: int, why: str = UNLOADED) -> None:
        """Take one version out of service; no new request finds it from now on."""
        served = record.take(version, why)
        if served is not None:
            version_record = record.versions[version]
            version_record.closings += 1
            self._begin(served).add_done_callback(lambda _: _closed(version_record))

    async def discard(self, served: ServedVersion) -> None:
        """Close a version that was never in service."""
        await _close(served, 0.0)

    @property
    def owes(self) -> bool:
        """Whether a version that has left service has requests to answer."""
        return any(served.owes for served in self._closings.values())

    async def finished(self) -> None:
        """Wait until everything is closed."""
        while self._closings:
            await asyncio.wait(self._closings)

    def _begin(self, served: ServedVersion) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._end(served))
        self._closings[task] = served
        task.add_done_callback(self._closings.pop)
        return task

    async def _end(self, served: ServedVersion) -> None:
        try:
            await _close(served, self.grace)
        finally:
            self._overrides.release(served.folder)


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
