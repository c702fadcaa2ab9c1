"""One model from its folder into service.

Every version that is new or has changed is loaded beside what serves. When all of them are ready they take over at
once; where one is not, none does, what had loaded is released, and what served goes on. A version whose
instances suit the new configuration is not loaded anew but changed where it serves, at the same moment.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import cast

from argosy_runtime.errors import ErrorKind, ServingError, internal, invalid

from . import ensembles, unsupported
from .folders.layout import ModelFolder
from .preparing import Prepared, Preparer
from .records import ModelRecord
from .retirement import Retirement, tidy
from .serving.served import Change, LoadingVersion, ServedVersion
from .work import serving_error

_log = logging.getLogger("argosy.repository")


NewVersion = Callable[[Prepared, int], LoadingVersion]


@dataclass(frozen=True, slots=True)
class Slots:
    """Held while a version is `opening`, and while one that serves is `changing`: so many are at a time, of each kind.
    What a model needs now is not to wait behind others that come.
    """

    opening: AbstractAsyncContextManager[object]
    changing: AbstractAsyncContextManager[object]


@dataclass(frozen=True, slots=True)
class _Ready:
    """What is to take over: versions that are loaded, and changes of versions that serve."""

    fresh: dict[int, ServedVersion] = field(default_factory=dict)
    changes: dict[int, Change] = field(default_factory=dict)


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
        """Have the folder's model serve. Raises ServingError; the record tells of it.

        Instances that are too many have finished what they ran, where that takes no longer than an unload may.
        """
        polled = self._poll(record, folder, override)
        try:
            with record.loading(polled.versions):
                prepared = await self._complete(polled, record, slots)
                ready = await self._ready(record, prepared, override, slots)
        except _LoadError as failure:
            record.fail(failure.errors, polled.versions)
            await tidy(polled.config)
            raise invalid(failure.told) from failure
        except Exception as cause:
            error = serving_error(cause)
            record.fail(dict.fromkeys(polled.versions, error), polled.versions)
            await tidy(polled.config)
            raise error from cause
        gone = [change.commit() for change in ready.changes.values()]
        self._take_over(record, prepared, override, ready.fresh)
        if gone:
            await asyncio.wait(map(asyncio.ensure_future, gone), timeout=self._retirement.grace)

    def _poll(self, record: ModelRecord, folder: ModelFolder, override: str | None) -> Prepared:
        try:
            return self._preparer.poll(folder, override)
        except Exception as cause:
            error = serving_error(cause)
            versions = folder.versions[-1:] or (1,)
            record.fail(dict.fromkeys(versions, error), versions)
            text = f"failed to load '{folder.name}', failed to poll from model repository: {error.message}"
            raise internal(text) from cause

    async def _complete(self, polled: Prepared, record: ModelRecord, slots: Slots) -> Prepared:
        try:
            known = polled.completed_like(record.prepared)
            async with slots.opening if known is None else slots.changing:
                return await self._preparer.complete(polled, known)
        except Exception as cause:
            raise _LoadError(polled.folder.name, dict.fromkeys(polled.versions, serving_error(cause))) from cause

    async def _ready(self, record: ModelRecord, prepared: Prepared, override: str | None, slots: Slots) -> _Ready:
        """Return what is to take over: every version of an ensemble, of a model what is new or has changed."""
        if not prepared.is_ensemble:
            return await self._started(record, prepared, slots)
        if not record.serves:
            # Should its steps not be there yet, it serves once they are.
            _adopt(record, prepared, override)
        return _Ready({v: ensembles.compile_version(prepared, v, self._records) for v in prepared.versions})

    async def _started(self, record: ModelRecord, prepared: Prepared, slots: Slots) -> _Ready:
        ready = _Ready()
        errors: dict[int, ServingError] = {}

        async def start(version: int) -> None:
            try:
                await self._start(record, prepared, version, slots, ready)
            except Exception as cause:
                errors[version] = serving_error(cause)
                _log.error("failed to load '%s' version %d: %s", record.name, version, errors[version].message)

        try:
            async with asyncio.TaskGroup() as group:
                for version in prepared.versions:
                    group.create_task(start(version))
            if errors:
                raise _LoadError(record.name, errors)
        except BaseException:
            await asyncio.gather(
                *(self._retirement.discard(each) for each in ready.fresh.values()),
                *(change.discard() for change in ready.changes.values()),
            )
            raise
        return ready

    async def _start(self, record: ModelRecord, prepared: Prepared, version: int, slots: Slots, ready: _Ready) -> None:
        serving = _suitable(record, prepared, version)
        if serving is None:
            _log.info("loading: %s:%d", record.name, version)
            async with slots.opening:
                served = self._new_version(prepared, version)
                await served.start()
            ready.fresh[version] = served
        elif serving.config != prepared.config:
            _log.info("changing where it serves: %s:%d", record.name, version)
            async with slots.changing:
                ready.changes[version] = await serving.change(prepared)

    def _take_over(
        self, record: ModelRecord, prepared: Prepared, override: str | None, fresh: Mapping[int, ServedVersion]
    ) -> None:
        for version, served in fresh.items():
            self._retirement.replace(record, version, served, None if prepared.is_ensemble else prepared.form(version))
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


def _suitable(record: ModelRecord, prepared: Prepared, version: int) -> LoadingVersion | None:
    """Return what serves a version and can go on as `prepared` says; None where it has to be loaded."""
    held = record.versions.get(version)
    if held is None or held.form is None or held.served is None or not held.served.ready:
        return None
    # Only what has instances has a form.
    return cast(LoadingVersion, held.served) if held.form.suits(prepared.form(version)) else None


def _label(kind: ErrorKind) -> str:
    """Return how Triton writes an error's kind before its message."""
    return {
        ErrorKind.INVALID_ARG: "Invalid argument",
        ErrorKind.NOT_FOUND: "Not found",
        ErrorKind.ALREADY_EXISTS: "Already exists",
    }.get(kind, kind.value.capitalize())
