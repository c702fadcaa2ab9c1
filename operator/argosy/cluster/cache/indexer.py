"""The store of Argosy's objects, indexed by pool. It takes tens of bytes for each, while the object has thousands.

Two digests of each applied object are stored: of the applied content and of the response. While both match, the object
needs no write.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from argosy.cluster.cache.fingerprint import Shape, fingerprint
from argosy.cluster.cache.ownership import Owner, is_managed, owner_of
from argosy.cluster.client.kinds import Key, Kind, key_of
from argosy.render.workloads import POOL_LABEL, SERVER_LABEL

PoolLabel = tuple[str, str]
"""A namespace, and the value of the pool's label there."""


@dataclass(frozen=True, slots=True)
class Owned:
    """One object. `detail`: what is cached of its content; `print`: the fingerprint, empty before an apply."""

    uid: str
    version: int
    managed: bool
    owner: Owner | None
    pool: str
    server: str
    terminating: bool
    print: bytes
    detail: object = None


@dataclass(frozen=True, slots=True)
class LastApplied:
    """What was applied: its digest and shape, and the fingerprint of the response."""

    digest: bytes
    shape: Shape
    print: bytes


@dataclass(slots=True)
class _Expected:
    """An apply in progress: its shape, and the uids of objects of its name that were deleted meanwhile."""

    shape: Shape
    deleted: set[str] = field(default_factory=set)


Reduce = Callable[[Mapping[str, Any]], object]
"""Returns the detail to cache of an object."""


class Indexer:
    """The objects of one kind, indexed by the pool that a label names."""

    def __init__(
        self,
        kind: Kind,
        changed: Callable[[PoolLabel], None],
        reduce: Reduce = lambda _: None,
        pool_label: str = POOL_LABEL,
    ) -> None:
        self.kind, self._pool_label = kind, pool_label
        self._changed, self._reduce = changed, reduce
        self._objects: dict[Key, Owned] = {}
        self._applied: dict[Key, LastApplied] = {}
        self._expected: dict[Key, _Expected] = {}
        self._of_pool: dict[PoolLabel, dict[Key, None]] = {}

    def get(self, key: Key) -> Owned | None:
        """Return the object of this namespace and name."""
        return self._objects.get(key)

    def all(self) -> Iterable[Owned]:
        """Return every object."""
        return self._objects.values()

    def of_pool(self, pool: PoolLabel) -> list[tuple[Key, Owned]]:
        """Return the objects of a pool."""
        return [(key, self._objects[key]) for key in self._of_pool.get(pool, ())]

    def pools(self) -> Iterable[PoolLabel]:
        """Return the pools that have objects of this kind."""
        return self._of_pool.keys()

    def update(self, body: Mapping[str, Any]) -> None:
        """Store an object that a list or watch reports."""
        key = key_of(body)
        now, before = self.reduced(body), self._objects.get(key)
        if key in self._expected:
            self._expected[key].deleted.discard(now.uid)  # a list may be older than the object
        if before is not None and before.uid == now.uid and now.version <= before.version:
            return  # a response was newer than the watch
        self._put(key, now)
        if before is None or replace(before, version=now.version) != now:
            self._notify(key, before, now)

    def delete(self, body: Mapping[str, Any]) -> None:
        """Remove an object that a watch reports as deleted, or that lost our label."""
        key, uid = key_of(body), body["metadata"]["uid"]
        before = self._objects.get(key)
        self._note_deletion(key, uid)
        if before is not None and before.uid == uid:
            self._notify(key, before)  # before it is removed, so that the pool of its label can still be found
            self.forget(key)

    def retain(self, namespace: str, keys: Collection[Key]) -> None:
        """Remove the namespace's (empty: all) other objects."""
        for key in [cached for cached in self._objects if cached not in keys and namespace in ("", cached[0])]:
            self._note_deletion(key, self._objects[key].uid)
            self._notify(key, self._objects[key])
            self.forget(key)

    @contextmanager
    def expecting(self, key: Key, shape: Shape) -> Iterator[None]:
        """Fingerprint watch events of this object by this shape while it is being applied."""
        self._expected[key] = _Expected(shape)
        try:
            yield
        finally:
            self._expected.pop(key, None)

    def applied(self, body: Mapping[str, Any], digest: bytes, shape: Shape, sent: Mapping[str, Any]) -> None:
        """Store the response to an apply of `sent`, which may include changes by others."""
        key = key_of(body)
        self._applied[key] = LastApplied(digest, shape, fingerprint(body, shape))
        now, before = self.reduced(body), self._objects.get(key)
        expected = self._expected.get(key)
        if expected is not None and now.uid in expected.deleted:
            self.forget(key)
            self._notify(key, now)
        elif before is None or before.uid != now.uid or now.version >= before.version:
            self._put(key, now)
            if _is_news(before, now, self._reduce(sent)):
                self._notify(key, before, now)
        # Otherwise the watch reported a later write before the response came, fingerprinted by the expected shape.

    def is_as_applied(self, key: Key, digest: bytes) -> bool:
        """Return whether this content was applied last, and the object is unchanged since."""
        owned, applied = self._objects.get(key), self._applied.get(key)
        return owned is not None and applied is not None and (digest, owned.print) == (applied.digest, applied.print)

    def is_unread(self, key: Key) -> bool:
        """Return whether the object exists and was not applied by this process, so its content has to be read."""
        owned = self._objects.get(key)
        return owned is not None and not owned.terminating and key not in self._applied

    def forget(self, key: Key) -> None:
        """Remove an object without a report."""
        owned = self._objects.pop(key, None)
        self._applied.pop(key, None)
        if owned is not None:
            self._unlink(key, owned.pool)

    def _put(self, key: Key, now: Owned) -> None:
        before = self._objects.get(key)
        if before is not None and before.uid != now.uid:
            self._applied.pop(key, None)
        if before is not None and before.pool != now.pool:
            self._unlink(key, before.pool)
        self._objects[key] = now
        if now.pool:
            self._of_pool.setdefault((key[0], now.pool), {})[key] = None

    def _unlink(self, key: Key, pool: str) -> None:
        keys = self._of_pool.get((key[0], pool))
        if keys is not None:
            keys.pop(key, None)
            if not keys:
                del self._of_pool[(key[0], pool)]

    def _notify(self, key: Key, *states: Owned | None) -> None:
        for pool in {state.pool for state in states if state is not None and state.pool}:
            self._changed((key[0], pool))

    def reduced(self, body: Mapping[str, Any]) -> Owned:
        """Return the cached form of an object."""
        metadata = body["metadata"]
        labels = metadata.get("labels") or {}
        shape = self._shape(key_of(body))
        return Owned(
            uid=metadata["uid"],
            version=int(metadata["resourceVersion"]),
            managed=is_managed(metadata),
            owner=owner_of(metadata),
            pool=sys.intern(labels.get(self._pool_label, "")),
            server=sys.intern(labels.get(SERVER_LABEL, "")),
            terminating="deletionTimestamp" in metadata,
            print=b"" if shape is None else fingerprint(body, shape),
            detail=self._reduce(body),
        )

    def _shape(self, key: Key) -> Shape:
        expected, applied = self._expected.get(key), self._applied.get(key)
        latest = expected or applied
        return latest.shape if latest else None

    def _note_deletion(self, key: Key, uid: str) -> None:
        """Record a deletion for a pending apply, whose response may be older."""
        if key in self._expected:
            self._expected[key].deleted.add(uid)


def _is_news(before: Owned | None, now: Owned, sent: object) -> bool:
    """Return whether the response to an apply includes changes by others; `sent` is the detail that we wrote."""
    if before is None:
        return now.terminating or now.detail != sent
    changed = (before.terminating, before.owner, before.pool) != (now.terminating, now.owner, now.pool)
    return changed or now.detail not in (before.detail, sent)
