"""Every model of the server: loads and unloads in order, and the versions that serve.

Loads and unloads are the registry's own work: the client of one may go, and it is done all the same.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace

from argosy_runtime.errors import ServingError, internal, invalid, unavailable
from argosy_runtime.execution.shadow.comparing import ComparisonWork
from argosy_runtime.messages import InferRequest
from argosy_runtime.modelconfig.ensembles import nesting

from . import ensembles
from .adapters.listed import ListedAdapters
from .folders import layout
from .folders.layout import ModelFolder
from .folders.overrides import OverridePathError, OverrideStore
from .folders.repositories import ListedModels, Repositories
from .loading import Loader, NewVersion, Slots, without_empty_lines
from .namespaces import NamedModels
from .options import RepositoryOptions
from .preparing import Preparer
from .records import ModelRecord, find_version
from .retirement import Retirement
from .serving.version import Destination, ServedVersion
from .traffic.declared import DeclaredTraffic, declared_traffic, next_number, undeclared
from .work import OwnedWork

_log = logging.getLogger("argosy.repository")


@dataclass(frozen=True, slots=True)
class _Purpose:
    """Purpose of a load: ensembles that need it (a cycle ends there, and fails by its rule), or a waiting model.

    `on_demand`: a request needs it, and it may leave again without a client's word.
    """

    within: frozenset[str] = frozenset()
    for_model: bool = False
    on_demand: bool = False


class Registry:
    """Models by name. All methods but `scan` run on the event loop, and none of those waits for the disk."""

    def __init__(self, options: RepositoryOptions, preparer: Preparer, new_version: NewVersion) -> None:
        self.options = options
        self.serves = True
        """False where the repositories cannot be read, so that every request is refused."""
        self.repositories = Repositories(options.paths, options.config_name, options.namespaces)
        self._comparisons = ComparisonWork()
        self.models = NamedModels(options.namespaces, self._comparisons)
        self._records = self.models.records
        self._by_name = self.models.by_name
        self._overrides = OverrideStore()
        self._retirement = Retirement(options.unload_grace, self._overrides)
        self._loader = Loader(self.models, preparer, new_version, self._retirement, options.load_retries)
        parallel = max(1, options.parallel_loads)
        self._slots = Slots(asyncio.Semaphore(parallel), asyncio.Semaphore(parallel))
        self._work = OwnedWork()
        self._listed = ListedAdapters(
            self._records,
            lambda folder: self._load_folder(folder, None, _Purpose(within=frozenset({folder.declared_by}))),
            self._unload_listed,
        )

    async def _unload_listed(self, identifier: str, listed_by: str) -> None:
        await self._unload(identifier, False, listed_by)

    def scan(self) -> dict[str, ModelFolder]:
        """Read the repositories from the disk. Return the folders by identifier."""
        return self.repositories.scan()

    async def listed(self) -> ListedModels:
        """Return the models that have a folder, and the adapters that loaded models list. Raises ServingError."""
        models = await self.repositories.models()
        return replace(models, names={**self._listed.names, **models.names})

    @property
    def records(self) -> Mapping[str, ModelRecord]:
        """Every model that was ever loaded, by identifier."""
        return self._records

    def processes(self) -> dict[tuple[str, int], Sequence[int]]:
        """Return the processes of each version in service that has some."""
        return {
            (record.identifier, number): served.pids
            for record in self._records.values()
            for number, served in ((number, version.served) for number, version in record.versions.items())
            if served is not None and served.pids
        }

    def find(self, name: str, version: str = "") -> ServedVersion:
        """Return the version that answers; the latest ready one where none is named. Raises ServingError."""
        record = self._by_name.get(name)
        if record is not None:
            served = record.answering.get(version)
            if served is not None and served.ready:
                return served
        return self._find(name, version)

    def route(self, request: InferRequest) -> Destination:
        """Return the version that answers a request, and count it where the model's versions share the traffic.

        Without a version in the request, the stable one with its shadow if it has one. A request of a sequence that has
        begun goes to the version where it did, also if that leaves service. Raises ServingError.
        """
        record = self._by_name.get(request.model_name)
        if record is not None:
            destination: Destination | None = None
            if record.split is None or request.model_version:
                served = record.answering.get(request.model_version)
                if served is not None and served.ready:
                    destination = served
            else:
                destination = record.destination(request)
            if request.sequence_id and (destination is None or not destination.continues(request)):
                destination = record.begun(request) or destination
            if destination is not None:
                return destination
        return self._find(request.model_name, request.model_version)

    def require_working(self) -> None:
        """Raise ServingError, in Triton's words, where the repositories cannot be read."""
        if not self.serves:
            raise unavailable("Server not ready")

    def _find(self, name: str, version: str) -> ServedVersion:
        self.require_working()
        return find_version(self._records, self.models.identifier(name), version)

    def end_shadows(self) -> None:
        """Withdraw all copies of requests, and make no further ones: they must not delay the end of the server."""
        for record in self._records.values():
            if record.shadowed is not None:
                record.shadowed.close()
        self._comparisons.close()

    async def load_many(self, folders: Iterable[ModelFolder]) -> dict[str, ServingError]:
        """Load models, ensembles after their steps. Return the errors of those that failed."""
        return await self._work.run(self._load_many(list(folders)))

    async def load(
        self,
        name: str,
        override: str | None,
        files: Mapping[str, bytes],
        for_model: bool = False,
        on_demand: bool = False,
    ) -> None:
        """Load or reload one model, and an ensemble's steps before it. Raises ServingError.

        `for_model`: the caller is a model, which may be loading itself. `on_demand`: it may be evicted.
        """
        purpose = _Purpose(for_model=for_model, on_demand=on_demand)
        await self._work.run(self._load(name, override, files, purpose))

    async def not_loaded(self, name: str) -> tuple[list[ModelFolder], frozenset[str]]:
        """Return the folders that a load of a model would load: its own, and of an ensemble those of its steps.

        The second are all steps that were found, loaded or not. Raises ServingError where the repositories have no
        such model.
        """
        folders = {name: (await self._folders(name))[0]}
        pending = ensembles.steps_of(folders[name], None)
        steps = set[str]()
        while pending:
            step = pending.pop()
            steps.add(step)
            if step not in folders and not self._is_loaded("", step) and layout.is_model_name(step):
                with suppress(ServingError):
                    folders[step] = (await self._folders(step))[0]
                    pending += ensembles.steps_of(folders[step], None)
        return list(folders.values()), frozenset(steps)

    async def evict(self, name: str, held: Callable[[str], bool]) -> bool:
        """Unload a model and wait until its memory is free. Return False where it is in use or `held` by now."""
        if not await self._work.run(self._unload(name, False, unless=held)):
            return False
        await self._retirement.released(name)
        return True

    async def divide(self, name: str) -> None:
        """Divide a serving model's requests as its folder declares now, also while loads of it run; load nothing.

        Raises ServingError where the model does not serve, or declares no division that can be read.
        """
        number = next_number()
        records = [record for record in self.models.of_name(name) if record.serves]
        if not records:
            raise invalid(f"cannot divide the requests of model '{name}': it is not loaded")
        for folder in await self._folders(name):
            override = next((record.override for record in records if record.folder == folder), None)
            self._divide(number, folder, override, required=True)

    async def unload(self, name: str, unload_dependents: bool) -> None:
        """Take a model out of service.

        With `unload_dependents` also an ensemble's steps that nothing else uses and no client has loaded by
        name.
        """
        await asyncio.gather(*(self.remove(record, unload_dependents) for record in self.models.of_name(name)))

    async def remove(self, record: ModelRecord, unload_dependents: bool = False) -> None:
        """Take one of the models of a name out of service. Otherwise as `unload`."""
        await self._work.run(self._unload(record.identifier, unload_dependents))

    @property
    def owes(self) -> bool:
        """Whether some version, in service or leaving it, has requests to answer."""
        return self._owing() is not None or self._retirement.owes

    async def answered(self, grace: float) -> None:
        """Wait until every serving version has answered its requests, at most `grace` seconds.

        All stay in service meanwhile: a version may have to call any other to answer.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                while (owing := self._owing()) is not None:
                    await owing.answered()

    def _owing(self) -> ServedVersion | None:
        every = (version.served for record in self._records.values() for version in record.versions.values())
        return next((served for served in every if served is not None and served.owes), None)

    async def close(self, grace: float) -> None:
        """Cancel loads; answer the accepted requests, within `grace` seconds; release every model."""
        self._retirement.limit(grace)
        await self._work.cancel()
        for record in self._records.values():
            self.models.desire(record, False)
            for version in list(record.versions):
                self._retirement.retire(record, version)
        await self._retirement.finished()
        await self._overrides.clear()

    async def _load_many(self, folders: list[ModelFolder]) -> dict[str, ServingError]:
        failures: dict[str, ServingError] = {}

        async def load(folder: ModelFolder) -> None:
            try:
                await self._load_folder(folder, None, _Purpose())
            except ServingError as error:
                failures[folder.identifier] = error

        by_identifier = {folder.identifier: folder for folder in folders}
        steps = ensembles.steps_among(folders)
        async with asyncio.TaskGroup() as group:
            for folder in folders:
                if folder.identifier not in steps:
                    group.create_task(load(folder))
        for identifier in nesting.inner_first(steps):
            await load(by_identifier[identifier])
        return failures

    async def _load(self, name: str, override: str | None, files: Mapping[str, bytes], purpose: _Purpose) -> None:
        layout.refuse_traversal(name)
        if not layout.is_model_name(name):
            raise _unknown(name)
        number = next_number()
        if not files:
            folders = await self._folders(name)
            for record in self.models.vanished(name, folders):
                await self._unload(record.identifier, False)
            await _all_of(self._load_with_steps(number, folder, override, purpose) for folder in folders)
            return
        try:
            path = await self._overrides.write(name, override, files)
        except (OSError, OverridePathError) as error:
            raise internal(f"{_unknown(name).message}: {getattr(error, 'strerror', error)}") from error
        try:
            folder = await asyncio.to_thread(layout.read_folder, path)
            await self._load_with_steps(number, folder, override, purpose)
        finally:
            self._overrides.release(path)

    async def _load_with_steps(self, number: int, folder: ModelFolder, override: str | None, purpose: _Purpose) -> None:
        declared = self._divide(number, folder, override)
        outer = replace(purpose, within=purpose.within | {folder.name})
        for step in ensembles.steps_of(folder, override):
            if step not in outer.within and not self._is_loaded(folder.namespace, step):
                try:
                    await self._load(step, None, {}, outer)
                except ServingError as error:
                    if not ensembles.serves_without(folder, override):
                        raise ensembles.step_missing(folder.name, step, error) from error
        await self._load_folder(folder, override, purpose, declared)

    def _divide(
        self, number: int, folder: ModelFolder, override: str | None, required: bool = False
    ) -> DeclaredTraffic | None:
        """Divide a serving model's requests as its folder declares, before its load, which may take minutes.

        Return what it declares. Versions that this load is to bring lose their share until they are ready. Without a
        declaration the requests are divided as before until the load takes over: the latest version may be on its way
        out. Raises ServingError for a configuration that cannot be read, or has no division, where it is `required`.
        """
        declared = declared_traffic(number, folder, override, required)
        record = self._records.get(folder.identifier)
        if record is not None and record.serves and declared is not None and declared.traffic is not None:
            record.declare(declared)
            record.divide()
            ensembles.follow(self.models, record, self._retirement)
        return declared

    def _slots_for(self, purpose: _Purpose) -> Slots:
        """Return the slots of a load: none for a model's, which holds one itself and would wait for it."""
        return Slots(nullcontext(), nullcontext()) if purpose.for_model else self._slots

    def _is_loaded(self, namespace: str, name: str) -> bool:
        record = self.models.meant_by_step(namespace, name)
        return record is not None and any(True for _ in record.serving())

    async def _folders(self, name: str) -> list[ModelFolder]:
        """Return the folders of the models of a name: one, or one for each namespace. Raises ServingError."""
        folders = await asyncio.to_thread(self.repositories.named, name) or self._listed.named(name)
        if not folders:
            raise _unknown(name)
        return folders

    async def _load_folder(
        self, folder: ModelFolder, override: str | None, purpose: _Purpose, declared: DeclaredTraffic | None = None
    ) -> None:
        record = self.models.add(folder)
        declared = declared or self._divide(next_number(), folder, override)
        async with record.lock:
            if folder.declared_by:
                if folder.declared_by in purpose.within and self._listed.owner(folder.identifier) == folder.identifier:
                    return
                self._listed.claim(folder)
            if override is None and record.folder == folder and record.prepared is not None:
                override = record.override
            self.models.desire(record, True)
            record.requested = record.requested or not (purpose.within or purpose.on_demand)
            if declared is not None:
                record.declare(declared)
            try:
                await self._loader.load(record, folder, override, self._slots_for(purpose))
            except ServingError as error:
                _log.error("%s", without_empty_lines(error.message))
                raise
            finally:
                ensembles.follow(self.models, record, self._retirement)
        if not folder.declared_by:
            await self._listed.hide_adapters(folder.identifier)
            await self._listed.follow(record)

    async def _unload(
        self, name: str, unload_dependents: bool, listed_by: str = "", unless: Callable[[str], bool] | None = None
    ) -> bool:
        """Unload a model; with `listed_by` only if it is still an adapter that this model lists.

        With `unless` only if that is false of it, it may leave, and no ensemble runs it. Return whether it is unloaded.
        """
        record = self._records.get(name)
        if record is None:
            return True
        declared = undeclared()
        async with record.lock:
            if listed_by and self._listed.owner(name) != listed_by:
                return False
            if unless is not None and (unless(name) or not record.may_leave or name in ensembles.needed(self.models)):
                return False
            frees_name = self._listed.withdraw(name)
            steps = self.models.steps_of(record)
            record.requested = False
            self.models.desire(record, False)
            record.failure = ""
            record.prepared = record.folder = record.override = None
            for version in list(record.versions):
                self._retirement.retire(record, version)
            record.declare(declared)
            record.divide()
            ensembles.follow(self.models, record, self._retirement)
        if frees_name:
            await self._listed.unloaded(name)
            await self._listed.release_name(name)
        if unload_dependents:
            needed = ensembles.needed(self.models)
            for step in sorted(steps - needed):
                if step in self._records and not self._records[step].requested:
                    await self._unload(step, unload_dependents)
        return True


async def _all_of(loads: Iterable[Coroutine[None, None, None]]) -> None:
    """Wait for all loads. Raises the first error of any."""
    for result in await asyncio.gather(*loads, return_exceptions=True):
        if result is not None:
            raise result


def _unknown(name: str) -> ServingError:
    return internal(f"failed to load '{name}', failed to poll from model repository")
