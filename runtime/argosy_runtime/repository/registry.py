"""Every model of the server, and the swaps between their versions.

A version is loaded beside what serves; only when it is ready do requests go to it, and only then is the old one drained
and released. Whatever fails to load leaves what was serving in service.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from argosy_runtime.errors import ErrorKind, ServingError, internal, invalid
from argosy_runtime.execution.calls import ServerCalls

from . import ensembles, layout, lookup
from .catalog import Catalog
from .layout import ModelFolder
from .options import RepositoryOptions
from .overrides import OverrideStore
from .preparing import Prepared, Preparer
from .records import UNLOADED, ModelRecord, State, VersionRecord
from .retirement import Retirement
from .served import ServedModel, ServedVersion

_log = logging.getLogger("argosy.repository")


class Registry:
    """Models by name. All methods run on the event loop."""

    def __init__(self, options: RepositoryOptions, gpus: Sequence[int], calls: ServerCalls) -> None:
        self.options = options
        self._gpus = gpus
        self._calls = calls
        self._catalog = Catalog(options.paths)
        self._preparer = Preparer(options, gpus, calls)
        self._records: dict[str, ModelRecord] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._loads = asyncio.Semaphore(options.parallel_loads)
        self._overrides = OverrideStore()
        self._retirement = Retirement(options.unload_grace)

    def scan(self) -> dict[str, ModelFolder]:
        """The repositories as they lie on disk now."""
        return layout.scan_all(self.options.paths, self.options.config_name)

    async def names(self) -> frozenset[str]:
        """The models that lie in the repositories now, loaded or not. Raises ServingError."""
        return await asyncio.to_thread(self._catalog.names)

    @property
    def records(self) -> Mapping[str, ModelRecord]:
        """Every model ever asked for."""
        return self._records

    def find(self, name: str, version: str = "") -> ServedVersion:
        """The version that answers; the latest ready one where none is named. Raises ServingError."""
        return lookup.find(self._records, name, version)

    async def load_many(self, folders: Iterable[ModelFolder]) -> dict[str, ServingError]:
        """Load models, ensembles after their steps; the errors of those that failed."""
        failures: dict[str, ServingError] = {}

        async def load(folder: ModelFolder) -> None:
            try:
                await self._load_folder(folder, None)
            except ServingError as error:
                failures[folder.name] = error
                _log.error("%s", error.message)

        chosen = list(folders)
        plain = [folder for folder in chosen if not ensembles.looks_like_one(folder)]
        await asyncio.gather(*(load(folder) for folder in plain))
        for folder in ensembles.in_order([folder for folder in chosen if ensembles.looks_like_one(folder)]):
            await load(folder)
        return failures

    async def load(
        self, name: str, override: str | None, files: Mapping[str, bytes], within: frozenset[str] = frozenset()
    ) -> None:
        """Load or reload one model, and an ensemble's steps before it. Raises ServingError.

        `within` are the ensembles that this one is loaded for: a cycle ends there, and fails by its rule.
        """
        folder = await self._folder(name, override, files)
        outer = within | {name}
        for step in ensembles.steps_of(folder, override):
            if step not in outer and not self._is_loaded(step):
                await self.load(step, None, {}, outer)
        await self._load_folder(folder, override, asked_for=not within)

    def _is_loaded(self, name: str) -> bool:
        record = self._records.get(name)
        return record is not None and any(True for _ in record.serving())

    async def _folder(self, name: str, override: str | None, files: Mapping[str, bytes]) -> ModelFolder:
        if files:
            path = await asyncio.to_thread(self._overrides.write, name, override, files)
            return await asyncio.to_thread(layout.read_folder, path)
        found = await asyncio.to_thread(self._look_for, name)
        if found is None:
            raise internal(f"failed to load '{name}', failed to poll from model repository")
        return found

    def _look_for(self, name: str) -> ModelFolder | None:
        if Path(name).name != name:
            return None
        paths = [repository / name for repository in self.options.paths if (repository / name).is_dir()]
        if not paths:
            return None
        folders = [layout.read_folder(path, self.options.config_name) for path in paths]
        if len(folders) == 1:
            return folders[0]
        return layout.scan_all(self.options.paths, self.options.config_name)[name]

    async def _load_folder(self, folder: ModelFolder, override: str | None, asked_for: bool = True) -> None:
        async with self._locks.setdefault(folder.name, asyncio.Lock()):
            record = self._records.setdefault(folder.name, ModelRecord(folder.name))
            if override is None and record.folder == folder and record.prepared is not None:
                override = record.override
            record.wanted = True
            record.asked_for = record.asked_for or asked_for
            try:
                await self._reload(record, folder, override)
            finally:
                self._refresh_ensembles()

    async def _reload(self, record: ModelRecord, folder: ModelFolder, override: str | None) -> None:
        try:
            polled = self._preparer.poll(folder, override)
        except ServingError as error:
            self._note_failure(record, folder.versions[-1:] or (1,), error)
            raise internal(
                f"failed to load '{folder.name}', failed to poll from model repository: {error.message}"
            ) from error
        try:
            prepared = await self._preparer.complete(polled)
        except ServingError as error:
            self._note_failure(record, polled.versions, error)
            raise invalid(_load_failed(folder.name, dict.fromkeys(polled.versions, error))) from error
        record.failure = ""
        if prepared.is_ensemble:
            record.prepared, record.folder, record.override = prepared, folder, override
            self._swap_ensemble(record, prepared)
            return
        await self._load_versions(record, prepared, override)

    def _note_failure(self, record: ModelRecord, versions: Iterable[int], error: ServingError) -> None:
        """A model that serves nothing shows its failure in the index, at the versions it would have had."""
        record.failure = error.message
        if not any(held.served is not None for held in record.versions.values()):
            record.versions = {version: VersionRecord(State.UNAVAILABLE, error.message) for version in versions}

    async def _load_versions(self, record: ModelRecord, prepared: Prepared, override: str | None) -> None:
        shared = _shared_key(prepared)
        wanted = {version: (*shared, _version_key(prepared, version)) for version in prepared.versions}
        fresh = [v for v, key in wanted.items() if v not in record.versions or not _keeps(record.versions[v], key)]
        results = await asyncio.gather(*(self._load_version(record, prepared, v, wanted[v]) for v in fresh))
        errors = {v: error for v, error in zip(fresh, results, strict=True) if error is not None}
        if errors:
            raise invalid(_load_failed(record.name, errors))
        record.prepared, record.folder, record.override = prepared, prepared.folder, override
        for version in [v for v in record.versions if v not in wanted]:
            self._retirement.retire(record, version)

    async def _load_version(
        self, record: ModelRecord, prepared: Prepared, version: int, key: tuple[str, ...]
    ) -> ServingError | None:
        held = record.versions.get(version)
        if held is None or held.served is None:
            held = record.versions[version] = VersionRecord(State.LOADING)
        _log.info("loading: %s:%d", record.name, version)
        try:
            async with self._loads:
                served = ServedModel(prepared, version, self._gpus, self._calls, self.options)
                await served.start()
        except ServingError as error:
            if held.served is None:
                held.state, held.reason = State.UNAVAILABLE, error.message
            _log.error("failed to load '%s' version %d: %s", record.name, version, error.message)
            return error
        old = held.served
        record.versions[version] = VersionRecord(State.READY, served=served, key=key)
        _log.info("successfully loaded '%s' version %d", record.name, version)
        if old is not None:
            self._retirement.close(old)
        return None

    def _swap_ensemble(self, record: ModelRecord, prepared: Prepared) -> None:
        error: ServingError | None = None
        for version in prepared.versions:
            held = record.versions.get(version) or VersionRecord(State.UNAVAILABLE)
            record.versions[version] = held
            try:
                held.served = ensembles.compile_version(prepared, version, self._records, held.served)
                held.state, held.reason = State.READY, ""
            except ServingError as problem:
                reason = UNLOADED if ensembles.lost_step(prepared, self._records) else problem.message
                held.served, held.state, held.reason = None, State.UNAVAILABLE, reason
                error = problem
        for version in [v for v in record.versions if v not in prepared.versions]:
            self._retirement.retire(record, version)
        if error is not None:
            raise error

    def _refresh_ensembles(self) -> None:
        """Models came or went: every ensemble is checked against them anew."""
        waiting = [record for record in self._records.values() if record.wanted and record.is_ensemble]
        for record in ensembles.inner_first(waiting):
            assert record.prepared is not None
            try:
                self._swap_ensemble(record, record.prepared)
            except ServingError as error:
                _log.warning("ensemble '%s' cannot serve: %s", record.name, error.message)

    async def unload(self, name: str, unload_dependents: bool) -> None:
        """Take a model out of service; with `unload_dependents` also an ensemble's steps that nothing else uses, and
        nobody has asked for by name.
        """
        record = self._records.get(name)
        if record is None:
            return
        async with self._locks.setdefault(name, asyncio.Lock()):
            record.wanted = record.asked_for = False
            record.failure = ""
            steps = ensembles.step_names(record.prepared) if record.is_ensemble and record.prepared else set()
            for version in list(record.versions):
                self._retirement.retire(record, version)
            record.folder = record.override = None
        self._refresh_ensembles()
        if unload_dependents:
            kept = ensembles.needed(self._records.values())
            for step in sorted(steps - kept):
                if step in self._records and not self._records[step].asked_for:
                    await self.unload(step, unload_dependents)

    async def close(self, grace: float) -> None:
        """Answer what has been accepted, within `grace` seconds, and release every model."""
        self._retirement.grace = grace
        for record in self._records.values():
            record.wanted = False
            for version in list(record.versions):
                self._retirement.retire(record, version)
        await self._retirement.finished()
        self._overrides.clear()


def _keeps(held: VersionRecord, key: tuple[str, ...]) -> bool:
    return held.key == key and held.ready


def _shared_key(prepared: Prepared) -> tuple[str, ...]:
    """What calls for a reload of every version: all of the configuration but its policy, and files of no version."""
    config = type(prepared.config)()
    config.CopyFrom(prepared.config)
    config.ClearField("version_policy")
    folder = prepared.folder
    return (str(folder.path), config.SerializeToString(deterministic=True).hex(), folder.shared_fingerprint)


def _version_key(prepared: Prepared, version: int) -> str:
    return layout.fingerprint(prepared.folder.version_path(version))


def _load_failed(name: str, errors: Mapping[int, ServingError]) -> str:
    details = "".join(
        f"version {version} is at UNAVAILABLE state: {_label(error.kind)}: {error.message};\n"
        for version, error in sorted(errors.items())
    )
    return f"load failed for model '{name}': {details}"


def _label(kind: ErrorKind) -> str:
    """How Triton writes an error's kind before its message."""
    return {
        ErrorKind.INVALID_ARG: "Invalid argument",
        ErrorKind.NOT_FOUND: "Not found",
        ErrorKind.ALREADY_EXISTS: "Already exists",
    }.get(kind, kind.value.capitalize())
