"""One model from its folder into service.

Every version that is new or has changed is loaded next to the serving ones. When all of them are ready they take over
at once; where one is not, none does, the loaded ones are released, and the serving ones go on. A version whose
instances suit the new configuration is not loaded again but changed in place, at the same moment.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar, cast

from argosy_runtime.errors import ServingError, internal, invalid
from argosy_runtime.repository import ensembles, unsupported
from argosy_runtime.repository.adapters.loading import load as load_adapter
from argosy_runtime.repository.folders.layout import ModelFolder
from argosy_runtime.repository.namespaces import NamedModels
from argosy_runtime.repository.preparing import NoVersionError, Prepared, PreparedModel, Preparer
from argosy_runtime.repository.records import ModelRecord
from argosy_runtime.repository.retirement import Retirement, tidy
from argosy_runtime.repository.serving.served import PreparedChange, ServedModel
from argosy_runtime.repository.serving.version import ServedVersion
from argosy_runtime.repository.work import serving_error

_log = logging.getLogger("argosy.repository")


NewVersion = Callable[[Prepared, int], ServedModel]
_Result = TypeVar("_Result")


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
    """Loader of models; `models` are all of the server's. A version that fails is tried `retries` more times."""

    def __init__(
        self,
        models: NamedModels,
        preparer: Preparer,
        new_version: NewVersion,
        retirement: Retirement,
        retries: int = 0,
    ) -> None:
        self._models = models
        self._preparer = preparer
        self._new_version = new_version
        self._retirement = retirement
        self._retries = retries

    async def load(self, record: ModelRecord, folder: ModelFolder, override: str | None, slots: Slots) -> None:
        """Load the folder's model into service. Raises ServingError, which the record has too.

        Surplus instances have finished what they ran, where that takes no longer than an unload may.
        """
        polled = await self._poll(record, folder, override)
        record.registered = record.registered or not polled.is_composite
        try:
            with record.loading(polled.numbers):
                prepared = await self._complete(polled, record, slots)
                ready = await self._ready(record, prepared, override, slots)
        except _LoadError as failure:
            await _fail(record, polled, failure.errors)
            raise invalid(failure.message) from failure
        except Exception as cause:
            error = serving_error(cause)
            await _fail(record, polled, dict.fromkeys(polled.numbers, error))
            raise error from cause
        gone = [change.commit() for change in ready.changes.values()]
        self._take_over(record, prepared, override, ready.fresh)
        if gone:
            await asyncio.wait(map(asyncio.ensure_future, gone), timeout=self._retirement.grace)

    async def _poll(self, record: ModelRecord, folder: ModelFolder, override: str | None) -> PreparedModel:
        try:
            polled = self._preparer.poll(folder, override)
            await self._preparer.run_agents(polled, record.prepared if record.serves else None)
            return polled
        except NoVersionError as nothing:
            record.registered, record.failure = True, str(nothing)
            record.fail({}, ())
            raise invalid(f"load failed for model '{folder.name}': {nothing}\n") from nothing
        except Exception as cause:
            error = serving_error(cause)
            record.failure = error.message
            versions = () if folder.also_in else folder.versions[-1:]
            record.fail(dict.fromkeys(versions, error), versions, polled=False)
            text = f"failed to load '{folder.name}', failed to poll from model repository: {error.message}"
            raise internal(text) from cause

    async def _complete(self, polled: PreparedModel, record: ModelRecord, slots: Slots) -> PreparedModel:
        """Complete the configuration of each version. Raises _LoadError."""
        errors = dict(polled.broken)
        completed: dict[int, Prepared] = {}
        for one in polled.configurations if not errors else ():
            try:
                work = partial(self._completed, one, record, slots)
                completed |= dict.fromkeys(one.versions, await self._attempted(record, one.versions[0], work))
            except Exception as cause:
                errors |= dict.fromkeys(one.versions, serving_error(cause))
        if errors:
            raise _LoadError(polled.folder.name, errors)
        return replace(polled, versions={version: completed[version] for version in polled.versions})

    async def _completed(self, polled: Prepared, record: ModelRecord, slots: Slots) -> Prepared:
        former = record.prepared.versions.get(polled.versions[0]) if record.prepared is not None else None
        completed = polled.completed_like(former)
        async with slots.opening if completed is None else slots.changing:
            return await self._preparer.complete(polled, completed)

    async def _ready(self, record: ModelRecord, model: PreparedModel, override: str | None, slots: Slots) -> _Ready:
        """Return what is to take over: every version of an ensemble, the new and changed versions of a model."""
        ready = _Ready()
        composites = {v: prepared for v, prepared in model.versions.items() if prepared.is_ensemble}
        if any(not prepared.is_adapter for prepared in composites.values()) and not record.serves:
            # Where its steps are not loaded yet, it serves once they are.
            _adopt(record, model, override)
        try:
            for version in composites:
                ready.fresh[version] = await self._composed(model, version)
            await self._started(record, model, slots, ready)
        except BaseException:
            await asyncio.gather(
                *(self._retirement.discard(served) for served in ready.fresh.values()),
                *(change.discard() for change in ready.changes.values()),
            )
            raise
        return ready

    async def _composed(self, model: PreparedModel, version: int) -> ServedVersion:
        if model.versions[version].is_adapter:
            return await load_adapter(model, version, self._models.seen_from(model.folder.namespace))
        return ensembles.compile_version(model.versions[version], version, self._models)

    async def _started(self, record: ModelRecord, model: PreparedModel, slots: Slots, ready: _Ready) -> None:
        """Add the versions with instances to what is ready. Raises _LoadError when all of them have ended."""
        errors: dict[int, ServingError] = {}

        async def start(version: int, prepared: Prepared) -> None:
            try:
                work = partial(self._start, record, prepared, version, slots, ready)
                await self._attempted(record, version, work)
            except Exception as cause:
                errors[version] = serving_error(cause)
                _log.error(
                    "failed to load '%s' version %d: %s",
                    record.name,
                    version,
                    without_empty_lines(errors[version].message),
                )

        async with asyncio.TaskGroup() as group:
            for version, prepared in model.versions.items():
                if not prepared.is_ensemble:
                    group.create_task(start(version, prepared))
        if errors:
            raise _LoadError(record.name, errors)

    async def _attempted(self, record: ModelRecord, version: int, work: Callable[[], Awaitable[_Result]]) -> _Result:
        """Return what the work returns, which is done again where it fails. Raises what the last attempt raises."""
        for _ in range(self._retries):
            try:
                return await work()
            except Exception as cause:
                why = without_empty_lines(serving_error(cause).message)
                _log.error("failed to load '%s' version %d, trying again: %s", record.name, version, why)
        return await work()

    async def _start(self, record: ModelRecord, prepared: Prepared, version: int, slots: Slots, ready: _Ready) -> None:
        serving = _suitable(record, prepared, version)
        if serving is None:
            _log.info("loading: %s:%d", record.identifier, version)
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
        self, record: ModelRecord, model: PreparedModel, override: str | None, fresh: Mapping[int, ServedVersion]
    ) -> None:
        for version, served in fresh.items():
            prepared = model.versions[version]
            self._retirement.replace(
                record, version, served, None if prepared.is_ensemble else prepared.revision(version)
            )
            _log.info("successfully loaded '%s' version %d", record.identifier, version)
        for version in [v for v in record.versions if v not in model.versions]:
            self._retirement.retire(record, version)
        _adopt(record, model, override)
        record.failure = ""
        for text in dict.fromkeys(record.versions[version].without_effect for version in model.versions):
            if text:
                _log.warning("model '%s': %s", record.name, text)


def _adopt(record: ModelRecord, model: PreparedModel, override: str | None) -> None:
    record.prepared, record.folder, record.override = model, model.folder, override
    record.divide()
    for version, prepared in model.versions.items():
        record.versions[version].without_effect = unsupported.without_effect(prepared.config, prepared.features.off)


async def _fail(record: ModelRecord, polled: PreparedModel, errors: Mapping[int, ServingError]) -> None:
    """Record a failed load, and remove what it unpacked."""
    record.fail(errors, polled.numbers)
    for version in errors:
        if version in polled.versions:
            record.versions[version].failed_tags = dict(polled.versions[version].config.metric_tags)
    for prepared in polled.configurations:
        await tidy(prepared.config)


def without_empty_lines(message: str) -> str:
    """Return a message of several lines for the log."""
    return "\n".join(line for line in message.splitlines() if line)


class _LoadError(Exception):
    """Versions that did not load, with their errors."""

    def __init__(self, name: str, errors: Mapping[int, ServingError]) -> None:
        details = "".join(
            f"version {version} is at UNAVAILABLE state: {error.label}{error.message};\n"
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
