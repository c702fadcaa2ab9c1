"""The feed of resources: one list and watch of each kind, whose objects are parsed and reported."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from argosy.api.values.identity import Identity
from argosy.cluster.cache.watches.reflectors import Reflectors
from argosy.cluster.client.connection import Connection
from argosy.cluster.client.kinds import RESOURCES, Key, Kind, key_of
from argosy.controller.resources.parsed_body import ParsedBody, parsed_body

Seen = Callable[[ParsedBody], None]
"""Receives each resource as the API server has it."""
Ended = Callable[[Identity, str], None]
"""Receives the identity and the uid of each resource that is gone."""


class ResourceFeed:
    """Reports every resource, in these namespaces or, without any, in all."""

    def __init__(self, connection: Connection, namespaces: Collection[str], seen: Seen, ended: Ended) -> None:
        self._reflectors = Reflectors(connection, namespaces)
        for kind in RESOURCES.values():
            self._reflectors.add(kind, _Resources(kind, seen, ended), required=True)

    @property
    def errors(self) -> Mapping[str, str]:
        """Errors of reading, by plural and, where there are several, namespace."""
        return self._reflectors.errors

    async def run(self) -> None:
        """List and watch until cancelled."""
        await self._reflectors.run()

    async def synced(self) -> None:
        """Wait until every resource was reported. Raises ForbiddenError where a kind may not be read."""
        await self._reflectors.synced()


class _Resources:
    """The resources of one kind, by uid and version; a reflector's store."""

    def __init__(self, kind: Kind, seen: Seen, ended: Ended) -> None:
        self._kind, self._seen, self._ended = kind, seen, ended
        self._versions: dict[Key, tuple[str, str]] = {}

    def update(self, body: Mapping[str, Any]) -> None:
        """Report an object that is new, or changed since it was last listed or watched."""
        key, metadata = key_of(body), body["metadata"]
        version = (metadata["uid"], metadata["resourceVersion"])
        former = self._versions.get(key)
        if former == version:
            return
        self._versions[key] = version
        if former is not None and former[0] != version[0]:
            self._ended(self._identity(key), former[0])
        self._seen(parsed_body({"apiVersion": self._kind.api_version, "kind": self._kind.name, **body}))

    def delete(self, body: Mapping[str, Any]) -> None:
        """Report the deletion of an object."""
        self._forget(key_of(body), body["metadata"]["uid"])

    def retain(self, namespace: str, keys: Collection[Key]) -> None:
        """Report the deletion of the namespace's (empty: all) other objects."""
        for key in [listed for listed in self._versions if listed not in keys and namespace in ("", listed[0])]:
            self._forget(key, self._versions[key][0])

    def _forget(self, key: Key, uid: str) -> None:
        if key in self._versions and self._versions[key][0] == uid:
            del self._versions[key]
        self._ended(self._identity(key), uid)

    def _identity(self, key: Key) -> Identity:
        return Identity.of(self._kind.name, *key)
