"""Every model of the server: loads and unloads in order, and the versions that serve.

Loads and unloads are the registry's own work: the client of one may go, and it is done all the same.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from argosy_runtime.errors import ServingError, unavailable
from argosy_runtime.execution.shadow.comparing import ComparisonWork
from argosy_runtime.messages import InferRequest
from argosy_runtime.telemetry.machine.attribution import OnGpu

from .folders.layout import ModelFolder
from .folders.overrides import OverrideStore
from .folders.repositories import Repositories, RepositoryModels
from .lifecycle.lifecycle import Lifecycle, Purpose
from .lifecycle.loading import Loader, NewVersion
from .namespaces import NamedModels
from .options import RepositoryOptions
from .preparing import Preparer
from .records import ModelRecord, find_version
from .retirement import Retirement
from .serving.version import Destination, ServedVersion
from .work import OwnedWork


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
        loader = Loader(self.models, preparer, new_version, self._retirement, options.load_retries)
        self._lifecycle = Lifecycle(
            self.repositories, self.models, loader, self._retirement, self._overrides, options.parallel_loads
        )
        self._work = OwnedWork()

    def scan(self) -> dict[str, ModelFolder]:
        """Read the repositories from the disk. Return the folders by identifier."""
        return self.repositories.scan()

    async def repository_models(self) -> RepositoryModels:
        """Return the models that have a folder, and the adapters that loaded models list. Raises ServingError."""
        models = await self.repositories.models()
        return replace(models, names={**self._lifecycle.adapters.names, **models.names})

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

    def on_gpus(self) -> dict[tuple[str, int], Mapping[int, OnGpu]]:
        """Return the instances of each version in service that is on GPUs, by ordinal."""
        return {
            (record.identifier, number): on_gpus
            for record in self._records.values()
            for number, served in ((number, version.served) for number, version in record.versions.items())
            if served is not None and (on_gpus := served.on_gpus)
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
        return await self._work.run(self._lifecycle.load_many(list(folders)))

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
        purpose = Purpose(for_model=for_model, on_demand=on_demand)
        await self._work.run(self._lifecycle.load(name, override, files, purpose))

    async def not_loaded(self, name: str) -> tuple[list[ModelFolder], frozenset[str]]:
        """Return the folders that a load would load, and all steps, as `Lifecycle`. Raises ServingError."""
        return await self._lifecycle.not_loaded(name)

    async def evict(self, name: str, held: Callable[[str], bool]) -> bool:
        """Unload a model and wait until its memory is free. Return False where it is in use or `held` by now."""
        if not await self._work.run(self._lifecycle.unload(name, False, unless=held)):
            return False
        await self._retirement.released(name)
        return True

    async def divide(self, name: str) -> None:
        """Divide a serving model's requests as its folder declares now; load nothing. Raises ServingError."""
        await self._lifecycle.divide(name)

    async def unload(self, name: str, unload_dependents: bool) -> None:
        """Take a model out of service.

        With `unload_dependents` also an ensemble's steps that nothing else uses and no client has loaded by
        name.
        """
        await asyncio.gather(*(self.remove(record, unload_dependents) for record in self.models.of_name(name)))

    async def remove(self, record: ModelRecord, unload_dependents: bool = False) -> None:
        """Take one of the models of a name out of service. Otherwise as `unload`."""
        await self._work.run(self._lifecycle.unload(record.identifier, unload_dependents))

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
