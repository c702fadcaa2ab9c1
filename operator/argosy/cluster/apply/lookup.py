"""Reads of live objects: watches cover only those with Argosy's label, and caches have only parts of them."""

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
"""Names of one kind and namespace from which on one list costs less than a request for each name."""

ObjectReference = tuple[Kind, Key]
"""An object by its kind, namespace and name."""
Body = dict[str, Any]


class Lookup:
    """Reads objects, or their metadata, from the API server."""

    def __init__(self, connection: Connection, cache: ClusterCache) -> None:
        self._connection, self._cache = connection, cache

    async def one(self, kind: Kind, key: Key) -> Owned | None:
        """Return the live object; None where it does not exist. Raises ApiError."""
        try:
            body = await self._connection.get(kind, key, metadata_only=True)
        except NotFoundError:
            return None
        return self._cache.indexer(kind.name).reduced(body)

    async def many(self, references: Iterable[ObjectReference]) -> dict[ObjectReference, Owned | None]:
        """Return objects by lists, for the kinds and namespaces where that saves requests; None: absent.

        Objects that could not be read are left out.
        """
        objects: dict[ObjectReference, Owned | None] = {}
        for (kind, namespace), keys in _grouped(references).items():
            if len(keys) >= MANY:
                objects |= await self._listed(kind, namespace, keys)
        return objects

    async def full(
        self, references: Iterable[ObjectReference], pool: str
    ) -> AsyncGenerator[tuple[ObjectReference, Body]]:
        """Yield the full live objects of a pool, by its label's value, one page in memory at a time.

        Objects that could not be read are left out.
        """
        for (kind, namespace), keys in _grouped(references).items():
            many = self._pages(kind, namespace, pool) if len(keys) >= MANY else self._one_by_one(kind, keys)
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

    async def _one_by_one(self, kind: Kind, keys: Iterable[Key]) -> AsyncGenerator[Body]:
        requests = (self._connection.get(kind, key) for key in sorted(keys))
        for answer in await asyncio.gather(*requests, return_exceptions=True):
            if isinstance(answer, dict):
                yield answer
            elif not isinstance(answer, ApiError):
                raise answer

    async def _listed(self, kind: Kind, namespace: str, keys: set[Key]) -> dict[ObjectReference, Owned | None]:
        objects: dict[ObjectReference, Owned | None] = {(kind, key): None for key in keys}
        indexer = self._cache.indexer(kind.name)
        try:
            async for page in self._connection.pages(kind, namespace, metadata_only=True):
                items = [body for body in page["items"] if key_of(body) in keys]
                objects |= {(kind, key_of(body)): indexer.reduced(body) for body in items}
        except ApiError:
            return {}
        return objects


def _grouped(references: Iterable[ObjectReference]) -> dict[tuple[Kind, str], set[Key]]:
    """Return the objects' keys, by kind and namespace."""
    groups: dict[tuple[Kind, str], set[Key]] = defaultdict(set)
    for kind, key in references:
        groups[kind, key[0]].add(key)
    return groups
