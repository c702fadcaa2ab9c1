"""Adapters that models list themselves, under names of their own: which of them have their name, and which are hidden.

A name belongs to a model that a client or the repository loads under it. While there is none, it belongs to the first
model that lists an adapter or an alias of that name. A hidden adapter is loaded all the same: `lora_name` names it. One
that a client unloads by its name stays so until it is loaded by its name, or the model that lists it is loaded again.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from argosy_runtime.errors import ServingError
from argosy_runtime.modelconfig.parameters.adapters import may_be_adapter
from argosy_runtime.repository.folders.layout import ModelFolder
from argosy_runtime.repository.records import ModelRecord
from argosy_runtime.repository.serving.adapter_table import LoadedAdapter
from argosy_runtime.repository.serving.served import ServedModel

from .declared import folders_of

_log = logging.getLogger("argosy.repository")
_Load = Callable[[ModelFolder], Awaitable[None]]
_Unload = Callable[[str, str], Awaitable[None]]


class ListedAdapters:
    """The lists of all loaded models; `records` are those of all models. Names are identifiers.

    `load` and `unload` are the registry's: the first of a folder, the second of a name and of the model that lists it.
    Both leave alone a model that has the name by then.
    """

    def __init__(self, records: Mapping[str, ModelRecord], load: _Load, unload: _Unload) -> None:
        self._records = records
        self._load = load
        self._unload = unload
        self._folders: dict[str, dict[str, ModelFolder]] = {}
        self._claims: dict[str, str] = {}
        self._hidden: dict[tuple[str, str], LoadedAdapter] = {}
        self._changing: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def named(self, name: str) -> list[ModelFolder]:
        """Return the folders of the adapters and aliases of a client's name, one for each namespace."""
        every = (folder for folders in self._folders.values() for folder in folders.values() if folder.name == name)
        return list({folder.identifier: folder for folder in reversed(list(every))}.values())

    @property
    def names(self) -> dict[str, str]:
        """Names of the adapters and aliases that are listed now, by identifier."""
        return {identifier: one.name for folders in self._folders.values() for identifier, one in folders.items()}

    def folder(self, name: str) -> ModelFolder | None:
        """Return the folder of an adapter or alias that a loaded model lists."""
        return next((folders[name] for folders in self._folders.values() if name in folders), None)

    async def follow(self, record: ModelRecord) -> None:
        """Load what a model lists now, and unload what it lists no more. An error is that of the adapter alone."""
        async with self._changing[record.identifier]:
            prepared = record.prepared
            if prepared is None:
                return
            try:
                folders = await asyncio.to_thread(folders_of, prepared)
            except ServingError as error:
                _log.error("%s", error.message)
                return
            if record.prepared is prepared:  # else a later load or unload of it waits to change its list
                await self._replace(record, folders)

    async def _replace(self, record: ModelRecord, folders: dict[str, ModelFolder]) -> None:
        before = self._folders.pop(record.identifier, {})
        if folders:
            self._folders[record.identifier] = folders
        for name in before.keys() - folders.keys():
            await self._forget(record, name)
        for name, folder in folders.items():
            owner = self.owner(name)
            if owner in ("", record.identifier):
                await self._load_listed(folder)
            else:
                await self._hide(record, folder, owner)

    async def hide_adapters(self, name: str) -> None:
        """Hide the adapters of a name that a model has now."""
        for base, folders in list(self._folders.items()):
            if name in folders and self.owner(name) != base:
                await self._hide(self._records[base], folders[name], self.owner(name))

    async def release_name(self, name: str) -> None:
        """Give the name of a model that was unloaded to the first adapter that is listed under it."""
        folder = self.folder(name)
        if folder is not None and not self.owner(name):
            self._hidden.pop((folder.declared_by, name), None)
            await self._load_listed(folder)

    async def unloaded(self, base: str) -> None:
        """Unload the adapters that a model lists that was unloaded."""
        async with self._changing[base]:
            for name in self._folders.pop(base, {}):
                await self._forget(self._records[base], name)

    def withdraw(self, name: str) -> bool:
        """Take its name from a model that is to be unloaded. Return whether it owned the name."""
        is_own = self.owner(name) == name
        self._claims.pop(name, None)
        return is_own

    def owner(self, name: str) -> str:
        """Return the model that a name belongs to: itself, or the one that lists it; "" where it is free."""
        record = self._records.get(name)
        if record is None or not record.desired:
            return ""
        if record.folder is not None:
            return record.folder.declared_by or name
        return self._claims.get(name, name)

    def claim(self, folder: ModelFolder) -> None:
        """Note that the name of a listed adapter that is to be loaded belongs to the model that lists it."""
        self._claims[folder.identifier] = folder.declared_by

    async def _load_listed(self, folder: ModelFolder) -> None:
        with suppress(ServingError):  # logged, and in the index
            await self._load(folder)

    async def _forget(self, record: ModelRecord, name: str) -> None:
        hidden = self._hidden.pop((record.identifier, name), None)
        if self.owner(name) == record.identifier:
            await self._unload(name, record.identifier)
            await self.release_name(name)
        elif hidden is not None:
            for served in record.answering.values():
                if isinstance(served, ServedModel):
                    await served.remove_adapter(hidden)

    async def _hide(self, record: ModelRecord, folder: ModelFolder, owner: str) -> None:
        whose = "the model of that name" if owner == folder.identifier else f"the adapter of model '{owner}'"
        _log.warning(
            "adapter '%s' of model '%s' is hidden by %s; lora_name names it", folder.name, record.identifier, whose
        )
        served = record.answering.get("")
        if may_be_adapter(folder.config_text or "") and isinstance(served, ServedModel):
            adapter = self._hidden[record.identifier, folder.identifier] = LoadedAdapter(folder.name, folder.path)
            try:
                await served.add_adapter(adapter)
            except ServingError as error:
                _log.error(
                    "adapter '%s' of model '%s' cannot be loaded: %s", folder.name, record.identifier, error.message
                )
