"""One model from its folder into service.

Every version that is new or has changed is loaded beside what serves. When all of them are ready they take over at
once; where one is not, none does, what had loaded is released, and what served goes on.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager

from argosy_runtime.errors import ErrorKind, ServingError, internal, invalid

from . import ensembles, unsupported
from .folders.layout import ModelFolder
from .preparing import Prepared, Preparer
from .records import ModelRecord
from .retirement import Retirement
from .serving.served import LoadingVersion, ServedVersion
from .work import serving_error

_log = logging.getLogger("argosy.repository")


NewVersion = Callable[[Prepared, int], LoadingVersion]


Slots = AbstractAsyncContextManager[object]
"""Held while a version is opened: so many are at a time."""


class Loader:
    """Loads models; `records` are all of the server's."""

    def __init__(
        self,
        records: Mapping[str, ModelRecord],
        preparer: Preparer,
        new_version: NewVersion,
        retirement: Retirement,
    ) -> None:
        self._records = records
        self._preparer = preparer
        self._new_version = new_version
        self._retirement = retirement

    async def load(self, record: ModelRecord, folder: ModelFolder, override: str | None, slots: Slots) -> None:
        """Have the folder's model serve. Raises ServingError; the record tells of it."""
        polled = self._poll(record, folder, override)
        try:
            with record.loading(polled.versions):
                prepared = await self._complete(polled, slots)
                fresh = await self._fresh(record, prepared, override, slots)
        except _LoadError as failure:
            record.fail(failure.errors, polled.versions)
            raise invalid(failure.told) from failure
        except Exception as cause:
            error = serving_error(cause)
            record.fail(dict.fromkeys(polled.versions, error), polled.versions)
            raise error from cause
        self._take_over(record, prepared, override, fresh)

    def _poll(self, record: ModelRecord, folder: ModelFolder, override: str | None) -> Prepared:
        try:
            return self._preparer.poll(folder, override)
        except Exception as cause:
            error = serving_error(cause)
            versions = folder.versions[-1:] or (1,)
            record.fail(dict.fromkeys(versions, error), versions)
            text = f"failed to load '{folder.name}', failed to poll from model repository: {error.message}"
            raise internal(text) from cause

    async def _complete(self, polled: Prepared, slots: Slots) -> Prepared:
        try:
            async with slots:
                return await self._preparer.complete(polled)
        except Exception as cause:
            raise _LoadError(polled.folder.name, dict.fromkeys(polled.versions, serving_error(cause))) from cause

    async def _fresh(
        self, record: ModelRecord, prepared: Prepared, override: str | None, slots: Slots
    ) -> Mapping[int, ServedVersion]:
        """What is to take over: every version of an ensemble, of a model those that nothing unchanged serves."""
        if not prepared.is_ensemble:
            changed = [v for v in prepared.versions if not _is_current(record, v, prepared.key(v))]
            return await self._started(record, prepared, changed, slots)
        if not record.serves:
            # Should its steps not be there yet, it serves once they are.
            _adopt(record, prepared, override)
        return {version: ensembles.compile_version(prepared, version, self._records) for version in prepared.versions}

    async def _started(
        self, record: ModelRecord, prepared: Prepared, versions: Iterable[int], slots: Slots
    ) -> dict[int, LoadingVersion]:
        started: dict[int, LoadingVersion] = {}
        errors: dict[int, ServingError] = {}

        async def start(version: int) -> None:
            _log.info("loading: %s:%d", record.name, version)
            try:
                async with slots:
                    served = self._new_version(prepared, version)
                    await served.start()
            except Exception as cause:
                errors[version] = serving_error(cause)
                _log.error("failed to load '%s' version %d: %s", record.name, version, errors[version].message)
            else:
                started[version] = served

        try:
            async with asyncio.TaskGroup() as group:
                for version in versions:
                    group.create_task(start(version))
            if errors:
                raise _LoadError(record.name, errors)
        except BaseException:
            await asyncio.gather(*(self._retirement.discard(each) for each in started.values()))
            raise
        return started

    def _take_over(
        self, record: ModelRecord, prepared: Prepared, override: str | None, fresh: Mapping[int, ServedVersion]
    ) -> None:
        for version, served in fresh.items():
            self._retirement.replace(record, version, served, () if prepared.is_ensemble else prepared.key(version))
            _log.info("successfully loaded '%s' version %d", record.name, version)
        for version in [v for v in record.versions if v not in prepared.versions]:
            self._retirement.retire(record, version)
        _adopt(record, prepared, override)
        record.failure = ""
        if record.without_effect:
            _log.warning("model '%s': %s", record.name, record.without_effect)


def _adopt(record: ModelRecord, prepared: Prepared, override: str | None) -> None:
    record.prepared, record.folder, record.override = prepared, prepared.folder, override
    record.without_effect = unsupported.without_effect(prepared.config)


class _LoadError(Exception):
    """Versions that did not load, and why."""

    def __init__(self, name: str, errors: Mapping[int, ServingError]) -> None:
        details = "".join(
            f"version {version} is at UNAVAILABLE state: {_label(error.kind)}: {error.message};\n"
            for version, error in sorted(errors.items())
        )
        self.told = f"load failed for model '{name}': {details}"
        self.errors = errors
        super().__init__(self.told)


def _is_current(record: ModelRecord, version: int, key: tuple[str, ...]) -> bool:
    held = record.versions.get(version)
    return held is not None and held.key == key and held.served is not None and held.served.ready


def _label(kind: ErrorKind) -> str:
    """How Triton writes an error's kind before its message."""
    return {
        ErrorKind.INVALID_ARG: "Invalid argument",
        ErrorKind.NOT_FOUND: "Not found",
        ErrorKind.ALREADY_EXISTS: "Already exists",
    }.get(kind, kind.value.capitalize())
