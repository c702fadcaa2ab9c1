"""The applier of a pool's objects: applies objects that differ, and deletes those that are no longer desired.

Nothing is sent for an object that is unchanged since it was applied, even by an earlier process of the operator.
Objects that are not Argosy's are never touched.
"""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from math import inf
from typing import Any, TypeVar

from argosy.api import Resource
from argosy.api.status import Status
from argosy.api.values.identity import Identity, PoolKey
from argosy.api.values.times import timestamp
from argosy.cluster.cache.cluster_cache import ClusterCache
from argosy.cluster.cache.fingerprint import Shape, Shapes, digest
from argosy.cluster.cache.indexer import Indexer, Owned
from argosy.cluster.cache.ownership import owner_of, why_not_ours
from argosy.cluster.cache.pods.pod_cache import PodView
from argosy.cluster.cache.pods.routing import Routes, routes_patch, settled_patch
from argosy.cluster.cache.pool_view import pool_label
from argosy.cluster.client import kinds
from argosy.cluster.client.connection import Connection
from argosy.cluster.client.errors import ApiError, ConflictError, InvalidError, NotFoundError
from argosy.cluster.client.kinds import Key, Kind, key_of, kind_of
from argosy.planning.facts import Refusal
from argosy.render.workloads import ACTIVATOR_LABEL, BUILD_LABEL, SERVER_LABEL, KubernetesObject, object_identity

from .failures import NoNeedError, RefusedError, Retries, judged
from .lookup import Lookup, ObjectReference
from .owned_fields import is_applied
from .statuses import write_status

log = logging.getLogger(__name__)

MANAGER, ROUTES_MANAGER = "argosy", "argosy-routes"
ATTEMPTS = 5
Result = TypeVar("Result")
AGAIN_S = 0.05
"""The pause after the first conflict, in seconds. It doubles with each further one."""
_STARTED = (kinds.DEPLOYMENT.name, kinds.JOB.name)
"""Kinds that start Pods, which need the other objects of their server or build."""
_GROUPS = (SERVER_LABEL, BUILD_LABEL, ACTIVATOR_LABEL)
"""Labels of the groups of objects that are not started while one of their objects is missing."""
_UIDS = {ConflictError: re.compile(r"\bUID\b"), InvalidError: re.compile(r"\bmetadata\.uid\b")}
"""How errors state that the object has another UID. Errors about a Pod template mention other UIDs."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What could not be applied: `refusals`, which need a change by the user; `failure`, the transient error that is
    due for a retry first.
    """

    refusals: tuple[Refusal, ...] = ()
    failure: ApiError | None = None


@dataclass(frozen=True, slots=True)
class _Desired:
    """One desired object."""

    body: KubernetesObject
    identity: str
    kind: Kind
    key: Key
    digest: bytes

    @property
    def reference(self) -> ObjectReference:
        """Its kind, namespace and name."""
        return self.kind, self.key

    @property
    def group(self) -> str:
        """The server, build or activator that it belongs to, by its label; empty for objects of the pool itself."""
        labels = self.body["metadata"].get("labels") or {}
        return next((f"{label}={labels[label]}" for label in _GROUPS if labels.get(label)), "")


@dataclass(slots=True)
class _Round:
    """Results of one call of `apply`. `looked_up`: objects that no watch reports, read beforehand; None: absent."""

    pool: PoolKey
    owners: Mapping[str, str]
    looked_up: dict[ObjectReference, Owned | None] = field(default_factory=dict)
    refusals: list[Refusal] = field(default_factory=list)
    failures: list[ApiError] = field(default_factory=list)
    stuck: set[str] = field(default_factory=set)

    async def settle(self, identity: str, group: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do the work and record its error, if any."""
        try:
            await work()
        except NoNeedError:
            return
        except RefusedError as error:
            self.refusals.append(Refusal(self.owners.get(identity, f"ServingPool {self.pool}"), identity, str(error)))
            self.stuck.add(group)
        except ApiError as error:
            self.failures.append(error)
            self.stuck.add(group)


def soonest(failures: Iterable[ApiError]) -> ApiError | None:
    """Return the failure that is due for a retry first; failures without a time come last."""
    return min(failures, key=lambda error: inf if error.retry_after_s is None else error.retry_after_s, default=None)


class Applier:
    """Writes objects, Pods' routes and statuses to the cluster."""

    def __init__(
        self, connection: Connection, cache: ClusterCache, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._connection, self._cache = connection, cache
        self._retries = Retries(clock)
        self._lookup = Lookup(connection, cache)
        self._shapes = Shapes()

    async def apply(
        self,
        pool: PoolKey,
        objects: Sequence[KubernetesObject],
        owners: Mapping[str, str],
        keep: Collection[str] = (),
    ) -> Applied:
        """Apply the objects of a pool, by its key, and delete its other ones except those in `keep` (identities).

        `owners` is the resource that reports a refusal, by object identity. An object that fails does not block the
        others, except that a server or a build is not started while one of its objects is missing.
        """
        desired = [_desired(body) for body in objects]
        changed = await self._taken_over(pool, [target for target in desired if not self._is_as_applied(target)])
        unwatched = [target.reference for target in changed if self._indexer(target).get(target.key) is None]
        round_ = _Round(pool, owners, await self._lookup.many(unwatched))
        first, bindings, started = _stages(changed)
        await self._put(round_, first)
        await self._put(round_, bindings)
        await self._put(round_, [target for target in started if target.group not in round_.stuck])
        await self._prune(round_, {target.identity for target in desired}.union(keep))
        refusals = sorted(round_.refusals, key=lambda refusal: refusal.object)
        return Applied(tuple(refusals), soonest(round_.failures))

    async def route(self, pod: PodView, namespace: str, routes: Routes, settled: bool) -> None:
        """Label a Pod with the models and ensembles that Services route to it; set its readiness gate once `settled`.

        Another Pod of the same name is left alone. Raises ApiError.
        """
        work = partial(self._route, pod, namespace, routes, settled)
        await self._in_time(f"Pod {namespace}/{pod.name}", (pod.uid, routes, settled), work)

    async def _route(self, pod: PodView, namespace: str, routes: Routes, settled: bool) -> None:
        key = (namespace, pod.name)
        try:
            if routes != Routes(pod.routes, pod.ejected):
                patch = routes_patch(pod.uid, pod.routes, routes)
                answer = await self._connection.merge(kinds.POD, key, patch, manager=ROUTES_MANAGER)
                self._cache.pod_patched(answer)
            if settled and not pod.settled:
                patch = settled_patch(pod.uid, timestamp(datetime.now(UTC)))
                answer = await self._connection.strategic_merge(kinds.POD.status, key, patch, manager=ROUTES_MANAGER)
                self._cache.pod_patched(answer)
        except ApiError as error:
            if not _is_another(error):
                raise

    async def status(self, resource: Resource, status: Status) -> bool:
        """Write a resource's full status. Return whether it was written: not where the resource is deleted or
        recreated.

        Raises ApiError.
        """
        identity = f"status of {resource.identity}"
        return await self._in_time(identity, status, partial(self._status, resource, status))

    async def _in_time(self, identity: str, content: object, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Do the work unless the object is still in back-off. Raises ApiError, also the last one while in back-off."""
        self._retries.check(identity, content)
        try:
            result = await work()
        except ApiError as error:
            self._retries.failed(identity, content, error)
            raise
        self._retries.done(identity)
        return result

    async def _status(self, resource: Resource, status: Status) -> bool:
        try:
            return await write_status(self._connection, resource, status)
        except ApiError as error:
            if not _is_another(error):
                raise
            return False

    def _indexer(self, desired: _Desired) -> Indexer:
        return self._cache.indexer(desired.kind.name)

    def _is_as_applied(self, desired: _Desired) -> bool:
        return self._indexer(desired).is_as_applied(desired.key, desired.digest)

    async def _taken_over(self, pool: PoolKey, desired: Collection[_Desired]) -> list[_Desired]:
        """Return the objects to apply, without those that an earlier process of the operator applied as desired."""
        unread = {target.reference: target for target in desired if self._indexer(target).is_unread(target.key)}
        if unread:
            async for reference, live in self._lookup.full(unread, pool_label(pool)[1]):
                target = unread[reference]
                # The object may have been deleted or recreated since it was read.
                watched = self._indexer(target).get(target.key)
                same = watched is not None and watched.uid == live["metadata"]["uid"]
                if same and is_applied(target.body, live, MANAGER):
                    self._indexer(target).applied(live, target.digest, self._shapes.of_object(target.body), target.body)
        return [target for target in desired if not self._is_as_applied(target)]

    async def _put(self, round_: _Round, desired: Iterable[_Desired]) -> None:
        await asyncio.gather(
            *(
                round_.settle(target.identity, target.group, partial(self._put_one, round_, target))
                for target in desired
            )
        )

    async def _put_one(self, round_: _Round, desired: _Desired) -> None:
        await self._in_time(desired.identity, desired.digest, partial(self._one, round_, desired))

    async def _one(self, round_: _Round, desired: _Desired) -> None:
        """Apply one object. Raises RefusedError, NoNeedError, ApiError."""
        shape = self._shapes.of_object(desired.body)
        for attempt in range(ATTEMPTS):
            try:
                await self._once(round_, desired, shape)
                return
            except ApiError as error:
                if not _is_stale(error) or attempt == ATTEMPTS - 1:
                    raise judged(error, desired.kind, desired.key[0]) from error
            # It was deleted, recreated or changed meanwhile: read it again.
            self._indexer(desired).forget(desired.key)
            await asyncio.sleep(AGAIN_S * 2**attempt)

    async def _once(self, round_: _Round, desired: _Desired, shape: Shape) -> None:
        indexer = self._indexer(desired)
        current = indexer.get(desired.key) or await self._look(round_, desired)
        body = desired.body
        if current is not None:
            why = why_not_ours(current.managed, current.owner, owner_of(body["metadata"]))
            if why:
                raise RefusedError(f"exists and {why}: it is left as it is; delete or rename it")
            if current.terminating:
                return  # its deletion is an event
            body = {**body, "metadata": {**body["metadata"], "uid": current.uid}}
        with indexer.expecting(desired.key, shape):
            answer = await self._connection.apply(desired.kind, body, manager=MANAGER)
            indexer.applied(answer, desired.digest, shape, body)

    async def _look(self, round_: _Round, desired: _Desired) -> Owned | None:
        """Return the live object; None where it does not exist. What was looked up beforehand is used once."""
        if desired.reference in round_.looked_up:
            return round_.looked_up.pop(desired.reference)
        return await self._lookup.one(*desired.reference)

    async def _prune(self, round_: _Round, desired: Collection[str]) -> None:
        """Delete the pool's objects that Argosy made and that are not desired."""
        existing = [
            (Identity.of(indexer.kind.name, *key), indexer, key, owned)
            for indexer in self._cache.indexers()
            for key, owned in indexer.of_pool(pool_label(round_.pool))
        ]
        await asyncio.gather(
            *(
                round_.settle(identity, "", partial(self._delete, indexer, key, owned))
                for identity, indexer, key, owned in existing
                if identity not in desired and not owned.terminating and _is_made_by_us(owned)
            )
        )

    async def _delete(self, indexer: Indexer, key: Key, owned: Owned) -> None:
        try:
            answer = await self._connection.delete(indexer.kind, key, owned.uid)
        except (NotFoundError, ConflictError):
            return  # deleted or recreated, which is an event
        except ApiError as error:
            raise judged(error, indexer.kind, key[0]) from error
        if answer.get("kind") == "Status":
            indexer.forget(key)


def _desired(body: KubernetesObject) -> _Desired:
    return _Desired(body, object_identity(body), kind_of(body), key_of(body), digest(body))


def _stages(desired: Sequence[_Desired]) -> tuple[list[_Desired], list[_Desired], list[_Desired]]:
    """Return what to apply first; then RoleBindings, which are refused without their Roles; then what starts Pods."""
    stages: tuple[list[_Desired], list[_Desired], list[_Desired]] = ([], [], [])
    for target in desired:
        stages[2 if target.kind.name in _STARTED else target.kind == kinds.ROLE_BINDING].append(target)
    return stages


def _is_made_by_us(owned: Owned) -> bool:
    return owned.managed and (owned.owner is None or owned.owner.kind in kinds.RESOURCES)


def _is_another(error: ApiError) -> bool:
    """Return whether the object of the request's uid no longer exists under its name."""
    another_uid = any(isinstance(error, kind) and words.search(error.message) for kind, words in _UIDS.items())
    return isinstance(error, NotFoundError) or another_uid


def _is_stale(error: ApiError) -> bool:
    """Return whether the object changed since it was read, so that reading it again helps."""
    return isinstance(error, ConflictError) or (isinstance(error, InvalidError) and _is_another(error))
