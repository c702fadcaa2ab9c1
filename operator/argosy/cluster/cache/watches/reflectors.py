"""Several collections that are kept known together."""

import asyncio
from collections.abc import Callable, Collection, Mapping

from argosy.cluster.cache.watches.reflector import Reflector, Sink
from argosy.cluster.client.connection import Connection
from argosy.cluster.client.kinds import Kind


class Reflectors:
    """Lists and watches of what is added, each in these namespaces or, without any, in all.

    What may not be read does not hold up the rest: it is named in `troubles` (by plural and, where there are several,
    namespace) and asked for again now and then. Without what is `needed` though, `synced` fails.
    """

    def __init__(self, connection: Connection, namespaces: Collection[str] = ()) -> None:
        self._connection, self._namespaces = connection, tuple(namespaces)
        self._all: list[Reflector] = []
        self._needed: list[Reflector] = []
        self.troubles: dict[str, str] = {}

    def add(
        self,
        kind: Kind,
        sink: Sink,
        selectors: Mapping[str, str] | None = None,
        *,
        needed: bool = False,
        everywhere: bool = False,
        named: str = "",
    ) -> None:
        """Tell `sink` of a kind's objects; `everywhere`: of all namespaces'. `named` is it in `troubles`."""
        for namespace in ("",) if everywhere or not self._namespaces else self._namespaces:
            place = named or (f"{kind.plural}/{namespace}" if namespace else kind.plural)
            reflector = Reflector(self._connection, kind, sink, self._failed(place), namespace, selectors or {})
            self._all.append(reflector)
            if needed:
                self._needed.append(reflector)

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._all:
                tasks.create_task(reflector.run())

    async def synced(self) -> None:
        """Until every first list is in, or is forbidden. ForbiddenError where that is one that nothing goes without."""
        for reflector in self._all:
            await reflector.listed.wait()
        for reflector in self._needed:
            if reflector.forbidden is not None:
                raise reflector.forbidden

    def _failed(self, place: str) -> Callable[[str], None]:
        def failed(words: str) -> None:
            if words:
                self.troubles[place] = words
            else:
                self.troubles.pop(place, None)

        return failed
