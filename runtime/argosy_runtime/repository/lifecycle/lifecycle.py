"""Loads and unloads of models, with what each brings along: steps of ensembles, listed adapters, divided requests."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace

from argosy_runtime.errors import ServingError, internal, invalid
from argosy_runtime.modelconfig.ensembles import nesting
from argosy_runtime.repository import ensembles
from argosy_runtime.repository.adapters.listed import ListedAdapters
from argosy_runtime.repository.folders import layout
from argosy_runtime.repository.folders.layout import ModelFolder
from argosy_runtime.repository.folders.overrides import OverridePathError, OverrideStore
from argosy_runtime.repository.folders.repositories import Repositories
from argosy_runtime.repository.namespaces import NamedModels
from argosy_runtime.repository.retirement import Retirement
from argosy_runtime.repository.traffic.declared import DeclaredTraffic, declared_traffic, next_number, undeclared

from .loading import Loader, Slots, without_empty_lines

_log = logging.getLogger("argosy.repository")


@dataclass(frozen=True, slots=True)
class Purpose:
    """Purpose of a load: ensembles that need it (a cycle ends there, and fails by its rule), or a waiting model.

    `on_demand`: a request needs it, and it may leave again without a client's word.
    """

    within: frozenset[str] = frozenset()
    for_model: bool = False
    on_demand: bool = False


class Lifecycle:
    """The loads and unloads of all models, of each model one at a time."""

    def __init__(
        self,
        repositories: Repositories,
        models: NamedModels,
        loader: Loader,
        retirement: Retirement,
        overrides: OverrideStore,
        parallel_loads: int,
    ) -> None:
        self._repositories = repositories
        self._models = models
        self._records = models.records
        self._loader = loader
        self._retirement = retirement
        self._overrides = overrides
        parallel = max(1, parallel_loads)
        self._slots = Slots(asyncio.Semaphore(parallel), asyncio.Semaphore(parallel))
        self.adapters = ListedAdapters(
            self._records,
            lambda folder: self._load_folder(folder, None, Purpose(within=frozenset({folder.declared_by}))),
            self._unload_listed,
        )

    async def _unload_listed(self, identifier: str, listed_by: str) -> None:
        await self.unload(identifier, False, listed_by)

    async def load_many(self, folders: list[ModelFolder]) -> dict[str, ServingError]:
        """Load models, ensembles after their steps. Return the errors of those that failed."""
        failures: dict[str, ServingError] = {}

        async def load(folder: ModelFolder) -> None:
            try:
                await self._load_folder(folder, None, Purpose())
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

    async def load(self, name: str, override: str | None, files: Mapping[str, bytes], purpose: Purpose) -> None:
        """Load or reload one model, and an ensemble's steps before it. Raises ServingError."""
        layout.refuse_traversal(name)
        if not layout.is_model_name(name):
            raise _unknown(name)
        number = next_number()
        if not files:
            folders = await self._folders(name)
            for record in self._models.vanished(name, folders):
                await self.unload(record.identifier, False)
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

    async def divide(self, name: str) -> None:
        """Divide a serving model's requests as its folder declares now, also while loads of it run; load nothing.

        Raises ServingError where the model does not serve, or declares no division that can be read.
        """
        number = next_number()
        records = [record for record in self._models.of_name(name) if record.serves]
        if not records:
            raise invalid(f"cannot divide the requests of model '{name}': it is not loaded")
        for folder in await self._folders(name):
            override = next((record.override for record in records if record.folder == folder), None)
            self._divide(number, folder, override, required=True)

    async def _load_with_steps(self, number: int, folder: ModelFolder, override: str | None, purpose: Purpose) -> None:
        declared = self._divide(number, folder, override)
        outer = replace(purpose, within=purpose.within | {folder.name})
        for step in ensembles.steps_of(folder, override):
            if step not in outer.within and not self._is_loaded(folder.namespace, step):
                try:
                    await self.load(step, None, {}, outer)
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
            ensembles.follow(self._models, record, self._retirement)
        return declared

    def _slots_for(self, purpose: Purpose) -> Slots:
        """Return the slots of a load: none for a model's, which holds one itself and would wait for it."""
        return Slots(nullcontext(), nullcontext()) if purpose.for_model else self._slots

    def _is_loaded(self, namespace: str, name: str) -> bool:
        record = self._models.meant_by_step(namespace, name)
        return record is not None and any(True for _ in record.serving())

    async def _folders(self, name: str) -> list[ModelFolder]:
        """Return the folders of the models of a name: one, or one for each namespace. Raises ServingError."""
        folders = await asyncio.to_thread(self._repositories.named, name) or self.adapters.named(name)
        if not folders:
            raise _unknown(name)
        return folders

    async def _load_folder(
        self, folder: ModelFolder, override: str | None, purpose: Purpose, declared: DeclaredTraffic | None = None
    ) -> None:
        record = self._models.add(folder)
        declared = declared or self._divide(next_number(), folder, override)
        async with record.lock:
            if folder.declared_by:
                if folder.declared_by in purpose.within and self.adapters.owner(folder.identifier) == folder.identifier:
                    return
                self.adapters.claim(folder)
            if override is None and record.folder == folder and record.prepared is not None:
                override = record.override
            self._models.desire(record, True)
            record.requested = record.requested or not (purpose.within or purpose.on_demand)
            if declared is not None:
                record.declare(declared)
            try:
                await self._loader.load(record, folder, override, self._slots_for(purpose))
            except ServingError as error:
                _log.error("%s", without_empty_lines(error.message))
                raise
            finally:
                ensembles.follow(self._models, record, self._retirement)
        if not folder.declared_by:
            await self.adapters.hide_adapters(folder.identifier)
            await self.adapters.follow(record)

    async def unload(
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
            if listed_by and self.adapters.owner(name) != listed_by:
                return False
            if unless is not None and (unless(name) or not record.may_leave or name in ensembles.needed(self._models)):
                return False
            frees_name = self.adapters.withdraw(name)
            steps = self._models.steps_of(record)
            record.requested = False
            self._models.desire(record, False)
            record.failure = ""
            record.prepared = record.folder = record.override = None
            for version in list(record.versions):
                self._retirement.retire(record, version)
            record.declare(declared)
            record.divide()
            ensembles.follow(self._models, record, self._retirement)
        if frees_name:
            await self.adapters.unloaded(name)
            await self.adapters.release_name(name)
        if unload_dependents:
            needed = ensembles.needed(self._models)
            for step in sorted(steps - needed):
                if step in self._records and not self._records[step].requested:
                    await self.unload(step, unload_dependents)
        return True


async def _all_of(loads: Iterable[Coroutine[None, None, None]]) -> None:
    """Wait for all loads. Raises the first error of any."""
    for result in await asyncio.gather(*loads, return_exceptions=True):
        if result is not None:
            raise result


def _unknown(name: str) -> ServingError:
    return internal(f"failed to load '{name}', failed to poll from model repository")
