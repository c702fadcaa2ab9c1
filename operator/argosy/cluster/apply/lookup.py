"""What stands under names that watches do not tell of: they know only what has our label."""

from collections import defaultdict
from collections.abc import Iterable

from argosy.cluster.cache.cluster_cache import ClusterCache
from argosy.cluster.cache.indexer import Owned
from argosy.cluster.client.connection import Connection
from argosy.cluster.client.errors import ApiError, NotFoundError
from argosy.cluster.client.kinds import Key, Kind, key_of

MANY = 20
"""From so many names of one kind and namespace on, one list is less work than asking for each."""

Place = tuple[Kind, Key]


class Lookup:
    """Asks the API server for objects' metadata."""

    def __init__(self, connection: Connection, cache: ClusterCache) -> None:
        self._connection, self._cache = connection, cache

    async def one(self, kind: Kind, key: Key) -> Owned | None:
        """The object as it stands, if it does. Raises ApiError."""
        try:
            body = await self._connection.get(kind, key, metadata_only=True)
        except NotFoundError:
            return None
        return self._cache.indexer(kind.name).reduced(body)

    async def many(self, places: Iterable[Place]) -> dict[Place, Owned | None]:
        """The same where that saves requests: of the kinds and namespaces that many of these names are in.

        Those that could not be read are left out.
        """
        groups: dict[tuple[Kind, str], set[Key]] = defaultdict(set)
        for kind, key in places:
            groups[kind, key[0]].add(key)
        found: dict[Place, Owned | None] = {}
        for (kind, namespace), keys in groups.items():
            if len(keys) >= MANY:
                found |= await self._listed(kind, namespace, keys)
        return found

    async def _listed(self, kind: Kind, namespace: str, keys: set[Key]) -> dict[Place, Owned | None]:
        found: dict[Place, Owned | None] = {(kind, key): None for key in keys}
        indexer = self._cache.indexer(kind.name)
        try:
            async for page in self._connection.pages(kind, namespace, metadata_only=True):
                found |= {(kind, key_of(body)): indexer.reduced(body) for body in page["items"] if key_of(body) in keys}
        except ApiError:
            return {}
        return found
