"""The adapters of one model that requests may name."""

from collections.abc import Collection
from typing import Generic, TypeVar

from argosy_runtime.errors import ServingError, not_found

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
            raise no_adapter(self._model, name, self._adapters)
        return adapter

    def remove(self, name: str) -> T:
        """Let no request name an adapter any more, and return it. Raises ServingError (NOT_FOUND)."""
        adapter = self.find(name)
        del self._adapters[name]
        return adapter


def no_adapter(model: str, name: str, there: Collection[str]) -> ServingError:
    """Return the error of a request that names an adapter which is not among those of its model."""
    return not_found(f"model '{model}' has no adapter '{name}'; it has {', '.join(sorted(there)) or 'none'}")
