"""The store of declared resources, with their problems and their last valid revisions. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from argosy.api import Ensemble, InferenceModel, Problem, Resource, ServingPool
from argosy.api.model.variantspecs import SEPARATOR
from argosy.api.status import ServingPoolStatus, Status
from argosy.api.values.identity import Identity, PoolKey
from argosy.controller.resources.parsed_body import ParsedBody
from argosy.planning.facts import Device
from argosy.planning.nodes.cordons import UNCORDONED_AT
from argosy.planning.rollouts.requests import requested
from argosy.planning.variants import expanded
from argosy.render.workloads import RecordedRevision, recorded_spec

MOST_ENDED = 2000
"""The number of stored uids of deleted resources, of which delayed reports are ignored."""


@dataclass(frozen=True, slots=True)
class Declared:
    """One pool and its members.

    `resources`: the last valid revisions; `problems`: of the newest ones; `faulty`: resources that never were valid;
    `restored`: other revisions that an earlier process accepted, by identity; `of_other_pools`: the namespace's other
    models and ensembles, without terminating ones.
    """

    resources: tuple[Resource, ...] = ()
    problems: tuple[Problem, ...] = ()
    faulty: tuple[Resource, ...] = ()
    restored: Mapping[str, Resource] = field(default_factory=dict)
    of_other_pools: tuple[InferenceModel | Ensemble, ...] = ()

    @property
    def pool(self) -> ServingPool | None:
        """The pool, if it exists and ever was valid."""
        return next((resource for resource in self.resources if isinstance(resource, ServingPool)), None)

    @property
    def members(self) -> tuple[InferenceModel | Ensemble, ...]:
        """The models and ensembles that ever were valid."""
        return tuple(resource for resource in self.resources if not isinstance(resource, ServingPool))

    @property
    def every(self) -> tuple[Resource, ...]:
        """All resources that get a status."""
        return (*self.resources, *self.faulty)


@dataclass(frozen=True, slots=True)
class _Entry:
    """One resource. `revision`: the last valid one, with the newest metadata; `newest` may have only metadata.

    `pool`: the key of its pool; empty where it refers to none.
    """

    newest: Resource
    revision: Resource | None
    problems: tuple[Problem, ...]
    pool: PoolKey


@dataclass(slots=True)
class Store:
    """The resources, by identity (`Kind namespace/name`)."""

    _entries: dict[Identity, _Entry] = field(default_factory=dict)
    _of_pool: dict[PoolKey, dict[Identity, None]] = field(default_factory=dict)
    _restored: dict[Identity, _Entry] = field(default_factory=dict)
    _ended: dict[str, None] = field(default_factory=dict)
    _recorded: dict[str, tuple[RecordedRevision, ...]] = field(default_factory=dict)

    def put(self, parsed: ParsedBody) -> frozenset[PoolKey]:
        """Store a resource as the API server has it.

        Return the keys of the pools that this concerns: none where only our status changed, or where it was deleted.
        """
        if parsed.newest.metadata.uid in self._ended:
            return frozenset()
        identity = parsed.newest.identity
        before = self._entries.get(identity)
        current = parsed if before is None else replace(parsed, newest=_with_former_parts(parsed.newest, before.newest))
        entry = _entry(current, before or self._restored_once(parsed))
        self._entries[identity] = entry
        if before is not None and _same(before, entry):
            return frozenset()
        former = before.pool if before is not None else entry.pool
        if former != entry.pool:
            self._unlink(identity, former)
        if entry.pool:
            self._of_pool.setdefault(entry.pool, {})[identity] = None
        return frozenset({former, entry.pool} - {""})

    def end(self, identity: Identity, uid: str) -> frozenset[PoolKey]:
        """Remove the resource of this uid, and ignore later reports of it. Return the keys of its pools."""
        self._ended[uid] = None
        while len(self._ended) > MOST_ENDED:
            del self._ended[next(iter(self._ended))]
        entry = self._entries.get(identity)
        if entry is None or entry.newest.metadata.uid != uid:
            return frozenset()
        del self._entries[identity]
        self._restored.pop(identity, None)
        self._recorded.pop(uid, None)
        self._unlink(identity, entry.pool)
        return frozenset({entry.pool} - {""})

    def _unlink(self, identity: Identity, pool: PoolKey) -> None:
        of_pool = self._of_pool.get(pool, {})
        of_pool.pop(identity, None)
        if not of_pool:
            self._of_pool.pop(pool, None)

    def restore(self, parsed: ParsedBody) -> None:
        """Store the revision that an earlier process acted upon. It has to be called before any `put`.

        It counts only for the resource with the same uid.
        """
        entry = _entry(parsed, None)
        if entry.revision is not None:
            self._restored[entry.newest.identity] = entry

    def _restored_once(self, parsed: ParsedBody) -> _Entry | None:
        """Return the restored entry of a resource that is new here. It is forgotten where both are equal."""
        restored = self._restored.get(parsed.newest.identity)
        if restored is not None and parsed.valid and recorded_spec(restored.newest) == recorded_spec(parsed.newest):
            del self._restored[parsed.newest.identity]
        return restored

    def record(self, uid: str, revisions: Iterable[RecordedRevision]) -> None:
        """Store the revisions of a resource's rollouts that an earlier process recorded."""
        self._recorded[uid] = tuple(revisions)

    def recorded(self, uid: str) -> tuple[RecordedRevision, ...]:
        """Return the revisions of a resource's rollouts that an earlier process recorded."""
        return self._recorded.get(uid, ())

    def declares(self, identity: str) -> bool:
        """Return whether the resource is stored."""
        return identity in self._entries

    def wrote(self, identity: Identity, status: Status) -> None:
        """Store a status that was written, so that the event of it changes nothing."""
        entry = self._entries.get(identity)
        if entry is not None:
            revision = _with_status(entry.revision, status) if entry.revision else None
            self._entries[identity] = replace(entry, newest=_with_status(entry.newest, status), revision=revision)

    def of_pool(self, key: PoolKey) -> Declared:
        """Return what is declared of a pool."""
        entries = [self._entries[identity] for identity in self._of_pool.get(key, ())]
        return Declared(
            tuple(entry.revision for entry in entries if entry.revision is not None),
            tuple(problem for entry in entries for problem in entry.problems),
            tuple(entry.newest for entry in entries if entry.revision is None),
            {
                entry.newest.identity: revision
                for entry in entries
                if (revision := self._restored_revision(entry)) is not None
            },
            tuple(self._of_other_pools(key)),
        )

    def pool(self, key: PoolKey) -> ServingPool | None:
        """Return the pool itself, if it exists and ever was valid."""
        entry = self._entries.get(Identity.of("ServingPool", key.namespace, key.name))
        return entry.revision if entry is not None and isinstance(entry.revision, ServingPool) else None

    def members_of(self, key: PoolKey) -> list[InferenceModel | Ensemble]:
        """Return a pool's models and ensembles that ever were valid."""
        revisions = (self._entries[identity].revision for identity in self._of_pool.get(key, ()))
        return [revision for revision in revisions if revision is not None and not isinstance(revision, ServingPool)]

    def _of_other_pools(self, key: PoolKey) -> Iterator[InferenceModel | Ensemble]:
        others = (entry.newest for entry in self._entries.values() if key != entry.pool)
        for resource in others:
            stays = resource.namespace == key.namespace and not resource.metadata.deletion_timestamp
            if stays and not isinstance(resource, ServingPool):
                yield resource

    def _restored_revision(self, entry: _Entry) -> Resource | None:
        before = self._restored.get(entry.newest.identity)
        return before.revision if before is not None and _same_uid(before.newest, entry.newest) else None

    def namesakes(self, key: PoolKey) -> Iterator[Resource]:
        """Yield models and ensembles of other pools that are named like one of this pool's in the same namespace, or
        like a variant or adapter of it, or of which one is named like it.
        """
        mine = self._of_pool.get(key, ())
        names = {name: None for identity in mine for name in self._names_near(identity)}
        for name in names:
            for kind in ("InferenceModel", "Ensemble"):
                namesake = self._entries.get(Identity.of(kind, key.namespace, name))
                if namesake is not None and namesake.revision is not None and key != namesake.pool:
                    yield namesake.revision

    def _names_near(self, identity: Identity) -> Iterator[str]:
        """Yield the name of a model or ensemble, those of its variants and adapters, and of the models that may have
        one of its name.
        """
        revision = self._entries[identity].revision
        if revision is None or isinstance(revision, ServingPool):
            return
        yield from (part.name for part in expanded([revision]))
        name = identity.name
        yield from (name[: mark.start()] for mark in re.finditer(f"(?={SEPARATOR})", name) if mark.start())

    def status(self, identity: Identity) -> Status | None:
        """Return the last known status of the API server."""
        entry = self._entries.get(identity)
        return entry.newest.status if entry else None

    def cordoned(self) -> dict[PoolKey, frozenset[Device]]:
        """Return the GPUs that each pool has cordoned, by its status."""
        pools = ((key, self.status(Identity.of("ServingPool", key.namespace, key.name))) for key in self._of_pool)
        return {
            key: frozenset((cordon.node, cordon.gpu) for cordon in status.cordoned_gpus)
            for key, status in pools
            if isinstance(status, ServingPoolStatus) and status.cordoned_gpus
        }

    def has(self, identity: Identity, uid: str) -> bool:
        """Return whether the resource of this uid is stored."""
        entry = self._entries.get(identity)
        return entry is not None and entry.newest.metadata.uid == uid

    def members(self) -> list[InferenceModel | Ensemble]:
        """Return all models and ensembles that were ever valid, with the statuses that the API server has."""
        revisions = [entry.revision for entry in list(self._entries.values())]  # a copy: another thread may call this
        return [revision for revision in revisions if revision is not None and not isinstance(revision, ServingPool)]

    def serving_pools(self) -> list[ServingPool]:
        """Return all pools that were ever valid, with the statuses that the API server has."""
        revisions = [entry.revision for entry in list(self._entries.values())]  # a copy: another thread may call this
        return [revision for revision in revisions if isinstance(revision, ServingPool)]

    @property
    def pools(self) -> frozenset[PoolKey]:
        """The keys of all pools that are declared or referred to."""
        return frozenset(self._of_pool)

    @property
    def count(self) -> int:
        """The number of resources."""
        return len(self._entries)


def _entry(parsed: ParsedBody, before: _Entry | None) -> _Entry:
    newest = parsed.newest
    revision = newest if parsed.valid else None
    if revision is None and before is not None and before.revision is not None and _same_uid(before.newest, newest):
        revision = before.revision.model_copy(update={"metadata": newest.metadata, "status": newest.status})
    return _Entry(newest, revision, parsed.problems, _pool_key(revision if revision is not None else newest))


def _with_status(resource: Resource, status: Status | None) -> Resource:
    return resource.model_copy(update={"status": status})


def _with_former_parts(newest: Resource, before: Resource) -> Resource:
    """Return a resource with the spec and the status that it had before, where they are equal: what was derived from an
    object is found again by it.
    """
    parts = {name: former for name in ("spec", "status") if (former := getattr(before, name)) == getattr(newest, name)}
    return newest.model_copy(update=parts) if parts else newest


def _pool_key(resource: Resource) -> PoolKey:
    if isinstance(resource, ServingPool):
        return resource.key
    return resource.pool_key if resource.spec.pool_ref is not None else PoolKey("")


def _same_uid(one: Resource, other: Resource) -> bool:
    return one.metadata.uid == other.metadata.uid


def _same(before: _Entry, now: _Entry) -> bool:
    """Return whether nothing changed that a reconcile depends on."""
    one, other = before.newest.metadata, now.newest.metadata
    return (
        (one.uid, one.generation, one.deletion_timestamp) == (other.uid, other.generation, other.deletion_timestamp)
        and one.annotations.get(UNCORDONED_AT) == other.annotations.get(UNCORDONED_AT)
        and requested(one.annotations) == requested(other.annotations)
        and before.newest.status == now.newest.status
        and before.problems == now.problems
    )
