"""The adapters of one model that requests may name."""

from typing import Generic, TypeVar

from argosy_runtime.errors import not_found

T = TypeVar("T")


class NamedAdapters(Generic[T]):
    """The adapters of a model by name, as the values that its engine takes."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._adapters: dict[str, T] = {}

    def put(self, name: str, adapter: T) -> T | None:
        """Let requests name an adapter. Return the one that had the name before."""
        before = self._adapters.get(name)
        self._adapters[name] = adapter
        return before

    def find(self, name: str) -> T:
        """Return an adapter. Raises ServingError (NOT_FOUND)."""
        adapter = self._adapters.get(name)
        if adapter is None:
            there = ", ".join(sorted(self._adapters)) or "none"
            raise not_found(f"model '{self._model}' has no adapter '{name}'; it has {there}")
        return adapter

    def remove(self, name: str) -> T:
        """Let no request name an adapter any more, and return it. Raises ServingError (NOT_FOUND)."""
        adapter = self.find(name)
        del self._adapters[name]
        return adapter
