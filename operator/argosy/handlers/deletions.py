"""What distrusts kopf: it forgets what is deleted while its watch is broken, and may tell nothing at all.

A watch of the resources' metadata says which there are; what they hold is kopf's to tell, and the listener is not asked
to decide anything before kopf has told of each.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from argosy.api.values.identity import Identity
from argosy.cluster.cache.watches.reflectors import Reflectors
from argosy.cluster.client.connection import Connection
from argosy.cluster.client.kinds import RESOURCES, Key, Kind, key_of
from argosy.controller.resources.feed import Listener, UntoldError

UNTOLD_S, UNTOLD_AGAIN_S = 60.0, 0.05
"""How long kopf may say nothing new while resources are missing, and how often that is looked at."""


class Deletions:
    """Tells a listener which resources ended. `run` has to be running for anything else."""

    def __init__(self, connection: Connection, namespaces: Collection[str], listener: Listener) -> None:
        self._listener = listener
        self._existing = [_Existing(kind, listener.ended) for kind in RESOURCES.values()]
        self._reflectors = Reflectors(connection, namespaces)
        for each in self._existing:
            self._reflectors.add(each.kind, each, metadata_only=True, needed=True)

    @property
    def troubles(self) -> Mapping[str, str]:
        """What cannot be read."""
        return self._reflectors.troubles

    async def run(self) -> None:
        """Until cancelled."""
        await self._reflectors.run()

    async def all_told(self) -> None:
        """Until kopf has told of every resource that there is. Raises UntoldError, ForbiddenError."""
        await self._reflectors.synced()
        loop = asyncio.get_running_loop()
        missing, since = self.existing(), loop.time()
        while left := {each for each in missing & self.existing() if not self._listener.has(*each)}:
            if left != missing:
                missing, since = left, loop.time()
            if loop.time() - since > UNTOLD_S:
                raise UntoldError(f"kopf tells nothing of {', '.join(sorted(identity for identity, _ in left)[:5])}")
            await asyncio.sleep(UNTOLD_AGAIN_S)

    def existing(self) -> set[tuple[Identity, str]]:
        """Return identity and uid of every resource."""
        return {each for kind in self._existing for each in kind.all()}


class _Existing:
    """The resources of one kind, by uid; a reflector's sink."""

    def __init__(self, kind: Kind, ended: Callable[[Identity, str], None]) -> None:
        self.kind, self._ended = kind, ended
        self._uids: dict[Key, str] = {}

    def all(self) -> Iterator[tuple[Identity, str]]:
        """Return identity and uid of each."""
        return ((self._identity(key), uid) for key, uid in self._uids.items())

    def seen(self, body: Mapping[str, Any]) -> None:
        """A watch says that it stands like this."""
        key, uid = key_of(body), body["metadata"]["uid"]
        before = self._uids.get(key, uid)
        self._uids[key] = uid
        if before != uid:
            self._ended(self._identity(key), before)

    def gone(self, body: Mapping[str, Any]) -> None:
        """A watch says that it is no more."""
        key, uid = key_of(body), body["metadata"]["uid"]
        if self._uids.get(key) == uid:
            del self._uids[key]
        self._ended(self._identity(key), uid)

    def only(self, namespace: str, keys: Collection[Key]) -> None:
        """In the namespace (empty: in all) there are just these."""
        for key in [each for each in self._uids if each not in keys and namespace in ("", each[0])]:
            self._ended(self._identity(key), self._uids.pop(key))

    def _identity(self, key: Key) -> Identity:
        return Identity.of(self.kind.name, *key)
