"""Which resources there are: kopf says what they hold, but forgets what is deleted while its watch is broken."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from .kinds import Key, Kind, key_of

Ended = Callable[[str, str], None]
"""Told of a resource that is no more, by its identity (`Kind namespace/name`) and uid."""


class Living:
    """The resources of one kind, by uid; a sink of a watch that needs no more than metadata."""

    def __init__(self, kind: Kind, ended: Ended) -> None:
        self._kind, self._ended = kind, ended
        self._uids: dict[Key, str] = {}

    def all(self) -> Iterator[tuple[str, str]]:
        """Identity and uid of each."""
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

    def _identity(self, key: Key) -> str:
        return f"{self._kind.name} {key[0]}/{key[1]}"
