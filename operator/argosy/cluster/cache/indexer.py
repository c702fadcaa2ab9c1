"""Our objects in the cluster, as little of each as is needed: tens of bytes where the API server has thousands.

An object that was applied is remembered by two digests, of what was applied and of what then stood there; while both
hold there is nothing to do.
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
    """One object. `detail` is what its kind is kept for; `print` the fingerprint, empty before it was applied."""

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
    """What was applied: its digest and shape, and the fingerprint of what then stood there."""

    digest: bytes
    shape: Shape
    print: bytes


@dataclass(slots=True)
class _Expected:
    """What is being applied: its shape, and the uids of its name that ended meanwhile."""

    shape: Shape
    ended: set[str] = field(default_factory=set)


Reduce = Callable[[Mapping[str, Any]], object]


class Indexer:
    """The objects of one kind, each of the pool that a label of it names."""

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

    def seen(self, body: Mapping[str, Any]) -> None:
        """A watch says that it stands like this."""
        key = key_of(body)
        now, before = self.reduced(body), self._objects.get(key)
        if key in self._expected:
            self._expected[key].ended.discard(now.uid)  # a list may be older than the object
        if before is not None and before.uid == now.uid and now.version <= before.version:
            return  # what was learned from an answer is newer than the watch
        self._put(key, now)
        if before is None or replace(before, version=now.version) != now:
            self._tell(key, before, now)

    def gone(self, body: Mapping[str, Any]) -> None:
        """A watch says that it is no more, or no longer says that it is ours."""
        key, uid = key_of(body), body["metadata"]["uid"]
        before = self._objects.get(key)
        self._note_end(key, uid)
        if before is not None and before.uid == uid:
            self._tell(key, before)  # while it still helps to tell which pool that is
            self.forget(key)

    def only(self, namespace: str, keys: Collection[Key]) -> None:
        """In the namespace (empty: in all) there are just these."""
        for key in [each for each in self._objects if each not in keys and namespace in ("", each[0])]:
            self._note_end(key, self._objects[key].uid)
            self._tell(key, self._objects[key])
            self.forget(key)

    @contextmanager
    def expecting(self, key: Key, shape: Shape) -> Iterator[None]:
        """While an object of this shape is being applied: what watches say of it meanwhile is measured by that."""
        self._expected[key] = _Expected(shape)
        try:
            yield
        finally:
            self._expected.pop(key, None)

    def applied(self, body: Mapping[str, Any], digest: bytes, shape: Shape, sent: Mapping[str, Any]) -> None:
        """It was applied as `sent`: this is how it stands since, with what others wrote."""
        key = key_of(body)
        self._applied[key] = LastApplied(digest, shape, fingerprint(body, shape))
        now, before = self.reduced(body), self._objects.get(key)
        expected = self._expected.get(key)
        if expected is not None and now.uid in expected.ended:
            self.forget(key)
            self._tell(key, now)
        elif before is None or before.uid != now.uid or now.version >= before.version:
            self._put(key, now)
            if _is_news(before, now, self._reduce(sent)):
                self._tell(key, before, now)
        # Otherwise someone wrote after us and was seen before the answer, measured by the shape that was expected.

    def is_as_applied(self, key: Key, digest: bytes) -> bool:
        """Return whether this was applied, and still stands there as it did then."""
        known, applied = self._objects.get(key), self._applied.get(key)
        return known is not None and applied is not None and (digest, known.print) == (applied.digest, applied.print)

    def is_unread(self, key: Key) -> bool:
        """Return whether the object is there, and it is not known what was applied to it."""
        known = self._objects.get(key)
        return known is not None and not known.terminating and key not in self._applied

    def forget(self, key: Key) -> None:
        """It is no more."""
        known = self._objects.pop(key, None)
        self._applied.pop(key, None)
        if known is not None:
            self._unlink(key, known.pool)

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
        known = self._of_pool.get((key[0], pool))
        if known is not None:
            known.pop(key, None)
            if not known:
                del self._of_pool[(key[0], pool)]

    def _tell(self, key: Key, *states: Owned | None) -> None:
        for pool in {state.pool for state in states if state is not None and state.pool}:
            self._changed((key[0], pool))

    def reduced(self, body: Mapping[str, Any]) -> Owned:
        """Return what would be kept of an object."""
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
        known = expected or applied
        return known.shape if known else None

    def _note_end(self, key: Key, uid: str) -> None:
        """The answer that is awaited may be older than this."""
        if key in self._expected:
            self._expected[key].ended.add(uid)


def _is_news(before: Owned | None, now: Owned, sent: object) -> bool:
    """Whether the answer to a write of ours brings what others wrote; `sent` is the detail that we wrote."""
    if before is None:
        return now.terminating or now.detail != sent
    changed = (before.terminating, before.owner, before.pool) != (now.terminating, now.owner, now.pool)
    return changed or now.detail not in (before.detail, sent)
