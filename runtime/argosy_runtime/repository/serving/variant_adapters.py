"""Adapters of a routed model: loaded into each variant that takes them, which answer the requests for them."""

import logging
from collections.abc import Sequence

from argosy_runtime.backends.adapters.named import no_adapter
from argosy_runtime.errors import ErrorKind, ServingError, invalid

from .adapter_table import LoadedAdapter
from .served import ServedModel

_log = logging.getLogger("argosy.repository")


class VariantAdapters:
    """The adapters of the variants that a routed model has now; `models` has None for one that is not loaded."""

    def __init__(self, name: str, models: Sequence[object]) -> None:
        self._name = name
        self._models = tuple(model if isinstance(model, ServedModel) else None for model in models)

    @property
    def _loaded(self) -> list[ServedModel]:
        return [model for model in self._models if model is not None]

    def without(self, name: str) -> list[int]:
        """Return the indices of the variants without an adapter. Raises ServingError (NOT_FOUND) where none has it."""
        lacking = [i for i, model in enumerate(self._models) if model is None or not model.holds_adapter(name)]
        if self._loaded and len(lacking) == len(self._models):
            raise no_adapter(self._name, name, {other for model in self._loaded for other in model.adapters.loaded})
        return lacking

    def takes(self, name: str) -> bool:
        """Return whether a variant can answer requests that name an adapter."""
        return any(model.takes_adapter(name) for model in self._loaded)

    def problem(self, name: str) -> str:
        """Return why no variant can answer requests that name an adapter, "" if one can."""
        if self.takes(name):
            return ""
        reasons = [f"'{model.name}': {model.adapter_problem(name) or 'it is not loaded'}" for model in self._loaded]
        return f"no variant has adapter '{name}': {'; '.join(reasons)}"

    def caution(self, name: str) -> str:
        """Return which variants do not have an adapter, and why: its requests go to the others."""
        missing = [model for model in self._loaded if not model.holds_adapter(name)]
        reasons = [f"{model.name}: {model.adapter_problem(name)}" for model in missing if model.adapter_problem(name)]
        return f"variants without it, which get no requests for it: {'; '.join(reasons)}" if reasons else ""

    def lacks(self, adapter: LoadedAdapter) -> bool:
        """Return whether a variant neither has an adapter nor has refused it."""
        return bool(self._new(adapter))

    async def add(self, adapter: LoadedAdapter) -> None:
        """Load an adapter into every variant. Raises ServingError where none takes it.

        A variant that refuses it is left out; one that could not answer gets it with its next instance.
        """
        errors: list[ServingError] = []
        models = self._new(adapter)
        for model in models:
            try:
                await model.add_adapter(adapter)
            except ServingError as error:
                errors.append(error)
                _note(model, adapter, error)
        if any(model.holds_adapter(adapter.name) for model in self._loaded):
            return
        await self.remove(adapter)
        if not errors:
            raise invalid(f"model '{self._name}' has no variant that could take adapter '{adapter.name}'")
        raise errors[0]

    async def remove(self, adapter: LoadedAdapter) -> None:
        """Unload an adapter from every variant."""
        for model in self._loaded:
            model.adapters.forget_refusal(adapter)
            await model.remove_adapter(adapter)

    def _new(self, adapter: LoadedAdapter) -> list[ServedModel]:
        return [model for model in self._loaded if not model.adapters.decided(adapter)]


def _note(model: ServedModel, adapter: LoadedAdapter, error: ServingError) -> None:
    _log.warning("variant '%s' does not take adapter '%s': %s", model.name, adapter.name, error.message)
    if error.kind in (ErrorKind.UNSUPPORTED, ErrorKind.INVALID_ARG):
        model.adapters.refuse(adapter, error.message)
    else:
        model.adapters.expect(adapter, error.message)
