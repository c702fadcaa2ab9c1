"""What stands, asked of the API server: watches know only what has our label, and little is kept of that."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing, suppress
from typing import Any

from argosy.cluster.cache.cluster_cache import ClusterCache
from argosy.cluster.cache.indexer import Owned
from argosy.cluster.client.connection import Connection
from argosy.cluster.client.errors import ApiError, NotFoundError
from argosy.cluster.client.kinds import Key, Kind, key_of
from argosy.render.workloads import POOL_LABEL

MANY = 20
"""From so many names of one kind and namespace on, one list is less work than asking for each."""

Place = tuple[Kind, Key]
Body = dict[str, Any]


class Lookup:
    """Asks the API server for objects, or for their metadata."""

    def __init__(self, connection: Connection, cache: ClusterCache) -> None:
        self._connection, self._cache = connection, cache

    async def one(self, kind: Kind, key: Key) -> Owned | None:
        """Return the object as it stands, if it does. Raises ApiError."""
        try:
            body = await self._connection.get(kind, key, metadata_only=True)
        except NotFoundError:
            return None
        return self._cache.indexer(kind.name).reduced(body)

    async def many(self, places: Iterable[Place]) -> dict[Place, Owned | None]:
        """Return many objects by a list of all, where that saves requests: of the kinds and namespaces that many of
        these names are in.

        Those that could not be read are left out.
        """
        found: dict[Place, Owned | None] = {}
        for (kind, namespace), keys in _grouped(places).items():
            if len(keys) >= MANY:
                found |= await self._listed(kind, namespace, keys)
        return found

    async def whole(self, places: Iterable[Place], pool: str) -> AsyncGenerator[tuple[Place, Body]]:
        """Yield the objects at these places of a pool, by its label's value, as they stand.

        Those that could not be read are left out. Of many only some are held at once.
        """
        for (kind, namespace), keys in _grouped(places).items():
            many = self._pages(kind, namespace, pool) if len(keys) >= MANY else self._each(kind, keys)
            async with aclosing(many):
                with suppress(ApiError):
                    async for body in many:
                        if key_of(body) in keys:
                            yield (kind, key_of(body)), body

    async def _pages(self, kind: Kind, namespace: str, pool: str) -> AsyncGenerator[Body]:
        selectors = {"labelSelector": f"{POOL_LABEL}={pool}"}
        async with aclosing(self._connection.pages(kind, namespace, selectors)) as pages:
            async for page in pages:
                for body in page["items"]:
                    yield body

    async def _each(self, kind: Kind, keys: Iterable[Key]) -> AsyncGenerator[Body]:
        asked = (self._connection.get(kind, key) for key in sorted(keys))
        for answer in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(answer, dict):
                yield answer
            elif not isinstance(answer, ApiError):
                raise answer

    async def _listed(self, kind: Kind, namespace: str, keys: set[Key]) -> dict[Place, Owned | None]:
        found: dict[Place, Owned | None] = {(kind, key): None for key in keys}
        indexer = self._cache.indexer(kind.name)
        try:
            async for page in self._connection.pages(kind, namespace, metadata_only=True):
                found |= {(kind, key_of(body)): indexer.reduced(body) for body in page["items"] if key_of(body) in keys}
        except ApiError:
            return {}
        return found


def _grouped(places: Iterable[Place]) -> dict[tuple[Kind, str], set[Key]]:
    """Return the keys of the places, by kind and namespace."""
    groups: dict[tuple[Kind, str], set[Key]] = defaultdict(set)
    for kind, key in places:
        groups[kind, key[0]].add(key)
    return groups
