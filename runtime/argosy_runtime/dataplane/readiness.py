"""Which models are ready, those asked that say so themselves (`is_ready` of a Python model)."""

import asyncio
from collections.abc import Awaitable, Iterator, Sequence

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.ondemand.loads import OnDemandLoads
from argosy_runtime.repository.registry import Registry
from argosy_runtime.repository.serving.version import ServedVersion


class Readiness:
    """Readiness of the server's models. Where it is `strict`, that of all of them counts for the server's own."""

    def __init__(self, registry: Registry, on_demand: OnDemandLoads | None, strict: bool) -> None:
        self._registry = registry
        self._on_demand = on_demand
        self._strict = strict

    def all_ready(self) -> bool:
        """Return whether every model serves or was unloaded, those whose configuration cannot be read aside."""
        if not self._strict:
            return True
        if not all(record.settled for record in self._registry.records.values()):
            return False
        return not any(model.unready for model in self._checked())

    def ready(self, name: str, version: str) -> bool:
        """Return whether a model serves, or a request would load it. Raises ServingError."""
        self._registry.require_working()
        try:
            served = self._registry.find(name, version)
            return served.ready and not served.unready
        except ServingError as error:
            not_serving = error.kind in (ErrorKind.NOT_FOUND, ErrorKind.UNAVAILABLE)
            if not_serving or not self._registry.models.means_one(name):
                return self._on_demand is not None and self._on_demand.may_load(name)
            raise

    def check(self, name: str = "", version: str = "") -> Awaitable[None] | None:
        """Return the work of asking a model, or for "" all that count, whether they are ready; None where none says."""
        if not name:
            models = list(self._checked()) if self._strict else []
            return _check_all(models) if models else None
        try:
            served = self._registry.find(name, version)
        except ServingError:
            return None
        return _check_all([served]) if served.checks_readiness else None

    def _checked(self) -> Iterator[ServedVersion]:
        """Yield the versions in service that are asked."""
        for record in self._registry.records.values():
            for _, served in record.serving():
                if served.checks_readiness:
                    yield served


async def _check_all(models: Sequence[ServedVersion]) -> None:
    """Ask all of them at the same time; each keeps its answer."""
    await asyncio.gather(*[model.check_readiness() for model in models])
