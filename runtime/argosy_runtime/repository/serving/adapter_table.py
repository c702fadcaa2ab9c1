"""The LoRA adapters that a model has loaded, and their loading into its instances."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from argosy_runtime.backends.engines.commands import AddAdapter, Command, RemoveAdapter
from argosy_runtime.errors import ErrorKind, ServingError

Manage = Callable[[Command], Awaitable[None]]
"""Has one instance, or every instance of a version, carry out a command. Raises ServingError."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadedAdapter:
    """An adapter with the folder of its files. The same folder may be loaded again: two of them are never equal."""

    name: str
    path: Path


NO_ADAPTERS: Final[Mapping[str, LoadedAdapter]] = MappingProxyType({})


class AdapterTable:
    """The adapters of a model, by name, and why some could not be loaded into an instance.

    `refused`: adapters that do not fit a variant, though they may fit the others of its routed model.
    """

    def __init__(self) -> None:
        self.loaded: dict[str, LoadedAdapter] = {}
        self.failures: dict[str, str] = {}
        self.refused: dict[str, LoadedAdapter] = {}
        self._first: set[str] = set()

    def holds(self, name: str) -> bool:
        """Return whether requests may name an adapter."""
        return name in self.loaded and name not in self.failures and name not in self._first

    @property
    def present(self) -> dict[str, LoadedAdapter]:
        """The adapters that every instance has now, as far as is known, by name: those that have not failed."""
        return {name: adapter for name, adapter in self.loaded.items() if name not in self.failures}

    async def add(self, adapter: LoadedAdapter, manage: Manage) -> None:
        """Record an adapter and load it. Raises ServingError, and restores what had its name then."""
        name, before = adapter.name, self.loaded.get(adapter.name)
        self.loaded[name] = adapter
        self.failures.pop(name, None)
        self.refused.pop(name, None)
        if before is None:
            self._first.add(name)
        try:
            await manage(AddAdapter(name, str(adapter.path)))
        except ServingError as error:
            self._restore(name, before)
            with suppress(ServingError):
                await manage(RemoveAdapter(name) if before is None else AddAdapter(name, str(before.path)))
            raise error
        finally:
            self._first.discard(name)

    def expect(self, adapter: LoadedAdapter, failure: str) -> None:
        """Record an adapter that could not be loaded now: the next instance gets it."""
        self.loaded[adapter.name] = adapter
        self.failures[adapter.name] = failure

    def refuse(self, adapter: LoadedAdapter, failure: str) -> None:
        """Record that an adapter does not fit."""
        self.refused[adapter.name] = adapter
        self.failures[adapter.name] = failure

    def decided(self, adapter: LoadedAdapter) -> bool:
        """Return whether an adapter is recorded, as one that fits or as one that does not."""
        return adapter in (self.loaded.get(adapter.name), self.refused.get(adapter.name))

    def forget_refusal(self, adapter: LoadedAdapter) -> None:
        """Forget that an adapter does not fit."""
        if self.refused.get(adapter.name) is adapter:
            del self.refused[adapter.name]
            self.failures.pop(adapter.name, None)

    async def remove(self, adapter: LoadedAdapter, manage: Manage) -> None:
        """Forget an adapter and unload it, unless another one has its name by now. Raises ServingError."""
        if self.loaded.get(adapter.name) is not adapter:
            return
        del self.loaded[adapter.name]
        if adapter.name not in self.refused:
            self.failures.pop(adapter.name, None)
        await manage(RemoveAdapter(adapter.name))

    async def load(
        self, manage: Manage, present: Mapping[str, LoadedAdapter] = NO_ADAPTERS
    ) -> list[tuple[str, ServingError]]:
        """Load the adapters into one instance that has those of `present`, and unload others from it.

        Return those that it refused, which also become `failures`. Raises ServingError where one is not unloaded.
        """
        refused: list[tuple[str, ServingError]] = []
        for name in present.keys() - self.loaded.keys():
            await _remove(name, manage)
        for name, adapter in list(self.loaded.items()):
            if present.get(name) is adapter:
                continue
            try:
                await manage(AddAdapter(name, str(adapter.path)))
            except ServingError as error:
                self.failures[name] = error.message
                refused.append((name, error))
            else:
                self.failures.pop(name, None)
        return refused

    def _restore(self, name: str, before: LoadedAdapter | None) -> None:
        if before is None:
            self.loaded.pop(name, None)
        else:
            self.loaded[name] = before


async def _remove(name: str, manage: Manage) -> None:
    """Unload an adapter from an instance, which may lack it: its load may have failed since it was recorded."""
    try:
        await manage(RemoveAdapter(name))
    except ServingError as error:
        if error.kind is not ErrorKind.NOT_FOUND:
            raise
