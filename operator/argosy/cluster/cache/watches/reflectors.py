"""Several reflectors that run together."""

import asyncio
from collections.abc import Callable, Collection, Mapping

from argosy.cluster.cache.watches.reflector import Reflector, ReflectorStore
from argosy.cluster.client.connection import Connection
from argosy.cluster.client.kinds import Kind


class Reflectors:
    """Reflectors of the added kinds, each in these namespaces or, without any, in all.

    A collection that is forbidden does not block the others: it is in `errors` (by plural and, where there are several,
    namespace) and is retried. Where it is `required`, `synced` fails.
    """

    def __init__(self, connection: Connection, namespaces: Collection[str] = ()) -> None:
        self._connection, self._namespaces = connection, tuple(namespaces)
        self._all: list[Reflector] = []
        self._required: list[Reflector] = []
        self.errors: dict[str, str] = {}

    def add(
        self,
        kind: Kind,
        store: ReflectorStore,
        selectors: Mapping[str, str] | None = None,
        *,
        required: bool = False,
        all_namespaces: bool = False,
        label: str = "",
    ) -> None:
        """Mirror a kind's objects into `store`. `label` is the key in `errors` in place of the plural."""
        for namespace in ("",) if all_namespaces or not self._namespaces else self._namespaces:
            name = label or (f"{kind.plural}/{namespace}" if namespace else kind.plural)
            reflector = Reflector(self._connection, kind, store, self._failed(name), namespace, selectors or {})
            self._all.append(reflector)
            if required:
                self._required.append(reflector)

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._all:
                tasks.create_task(reflector.run())

    async def synced(self) -> None:
        """Wait until every first list is complete or forbidden. Raises ForbiddenError where a required one is."""
        for reflector in self._all:
            await reflector.listed.wait()
        for reflector in self._required:
            if reflector.forbidden is not None:
                raise reflector.forbidden

    def _failed(self, name: str) -> Callable[[str], None]:
        def failed(message: str) -> None:
            if message:
                self.errors[name] = message
            else:
                self.errors.pop(name, None)

        return failed
