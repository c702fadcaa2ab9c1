"""The LoRA adapters that a model has loaded, and their loading into its instances."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from argosy_runtime.backends.commands import AddAdapter, Command, RemoveAdapter
from argosy_runtime.errors import ServingError

Manage = Callable[[Command], Awaitable[None]]
"""Has one instance, or every instance of a version, carry out a command. Raises ServingError."""


class AdapterTable:
    """The adapters of a model, by name: their `paths`, and why some could not be loaded into an instance."""

    def __init__(self) -> None:
        self.paths: dict[str, Path] = {}
        self.failures: dict[str, str] = {}

    async def add(self, name: str, path: Path, manage: Manage) -> None:
        """Record an adapter and load it. Raises ServingError, and restores what had its name then."""
        before = self.paths.get(name)
        self.paths[name] = path
        self.failures.pop(name, None)
        try:
            await manage(AddAdapter(name, str(path)))
        except ServingError as error:
            self._restore(name, before)
            with suppress(ServingError):
                await manage(RemoveAdapter(name) if before is None else AddAdapter(name, str(before)))
            raise error

    async def remove(self, name: str, path: Path, manage: Manage) -> None:
        """Forget an adapter and unload it, unless another path has its name by now. Raises ServingError."""
        if self.paths.get(name) != path:
            return
        del self.paths[name]
        self.failures.pop(name, None)
        await manage(RemoveAdapter(name))

    async def load(self, manage: Manage) -> list[tuple[str, ServingError]]:
        """Load all adapters into one instance. Return those that it refused, which also become `failures`."""
        refused: list[tuple[str, ServingError]] = []
        for name, path in list(self.paths.items()):
            try:
                await manage(AddAdapter(name, str(path)))
            except ServingError as error:
                self.failures[name] = error.message
                refused.append((name, error))
            else:
                self.failures.pop(name, None)
        return refused

    def _restore(self, name: str, before: Path | None) -> None:
        if before is None:
            self.paths.pop(name, None)
        else:
            self.paths[name] = before
