"""One model from its folder into service.

Every version that is new or has changed is loaded next to the serving ones. When all of them are ready they take over
at once; where one is not, none does, the loaded ones are released, and the serving ones go on. A version whose
instances suit the new configuration is not loaded again but changed in place, at the same moment.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import cast

from argosy_runtime.errors import ErrorKind, ServingError, internal, invalid

from . import ensembles, unsupported
from .adapters.loading import load as load_adapter
from .folders.layout import ModelFolder
from .preparing import Prepared, Preparer
from .records import ModelRecord
from .retirement import Retirement, tidy
from .serving.served import PreparedChange, ServedModel
from .serving.version import ServedVersion
from .work import serving_error

_log = logging.getLogger("argosy.repository")


NewVersion = Callable[[Prepared, int], ServedModel]


@dataclass(frozen=True, slots=True)
class Slots:
    """Limits of how many versions are `opening`, and how many serving ones are `changing`, at a time.

    A change must not wait for versions that are being loaded.
    """

    opening: AbstractAsyncContextManager[object]
    changing: AbstractAsyncContextManager[object]


@dataclass(frozen=True, slots=True)
class _Ready:
    """Loaded versions and changes of serving versions that are to take over."""

    fresh: dict[int, ServedVersion] = field(default_factory=dict)
    changes: dict[int, PreparedChange] = field(default_factory=dict)


class Loader:
    """Loader of models; `records` are all of the server's."""

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
        """Load the folder's model into service. Raises ServingError, which the record has too.

        Surplus instances have finished what they ran, where that takes no longer than an unload may.
        """
        polled = self._poll(record, folder, override)
        try:
            with record.loading(polled.versions):
                prepared = await self._complete(polled, record, slots)
                ready = await self._ready(record, prepared, override, slots)
        except _LoadError as failure:
            record.fail(failure.errors, polled.versions)
            await tidy(polled.config)
            raise invalid(failure.message) from failure
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
            completed = polled.completed_like(record.prepared)
            async with slots.opening if completed is None else slots.changing:
                return await self._preparer.complete(polled, completed)
        except Exception as cause:
            raise _LoadError(polled.folder.name, dict.fromkeys(polled.versions, serving_error(cause))) from cause

    async def _ready(self, record: ModelRecord, prepared: Prepared, override: str | None, slots: Slots) -> _Ready:
        """Return what is to take over: every version of an ensemble, the new and changed versions of a model."""
        if prepared.is_adapter:
            return _Ready({v: await load_adapter(prepared, v, self._records) for v in prepared.versions})
        if not prepared.is_ensemble:
            return await self._started(record, prepared, slots)
        if not record.serves:
            # Where its steps are not loaded yet, it serves once they are.
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
                *(self._retirement.discard(served) for served in ready.fresh.values()),
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
                served.adapters = record.adapters
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
            self._retirement.replace(
                record, version, served, None if prepared.is_ensemble else prepared.revision(version)
            )
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
    """Versions that did not load, with their errors."""

    def __init__(self, name: str, errors: Mapping[int, ServingError]) -> None:
        details = "".join(
            f"version {version} is at UNAVAILABLE state: {_label(error.kind)}: {error.message};\n"
            for version, error in sorted(errors.items())
        )
        self.message = f"load failed for model '{name}': {details}"
        self.errors = errors
        super().__init__(self.message)


def _suitable(record: ModelRecord, prepared: Prepared, version: int) -> ServedModel | None:
    """Return the serving version that can go on as `prepared`; None where it must be loaded."""
    loaded = record.versions.get(version)
    if loaded is None or loaded.revision is None or loaded.served is None or not loaded.served.ready:
        return None
    # Only versions with instances have a revision.
    return cast(ServedModel, loaded.served) if loaded.revision.suits(prepared.revision(version)) else None


def _label(kind: ErrorKind) -> str:
    """Return an error's kind as Triton writes it before the message."""
    return {
        ErrorKind.INVALID_ARG: "Invalid argument",
        ErrorKind.NOT_FOUND: "Not found",
        ErrorKind.ALREADY_EXISTS: "Already exists",
    }.get(kind, kind.value.capitalize())
