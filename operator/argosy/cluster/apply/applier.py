"""Makes a pool's objects stand as they should: what differs is applied, what is no longer wanted is deleted.

Nothing is sent for an object that stands as it was applied, be it by an earlier operator. Nothing is done to an object
that is not ours.
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

from .lookup import Lookup, Place
from .owned_fields import is_applied
from .refusals import NoNeedError, RefusedError, judged
from .retries import Retries
from .statuses import write_status

log = logging.getLogger(__name__)

MANAGER, ROUTES_MANAGER = "argosy", "argosy-routes"
ATTEMPTS = 5
Result = TypeVar("Result")
AGAIN_S = 0.05
"""The first pause after a conflict; each is twice the one before."""
_STARTED = (kinds.DEPLOYMENT.name, kinds.JOB.name)
"""Kinds whose Pods need what else belongs to their server or build."""
_GROUPS = (SERVER_LABEL, BUILD_LABEL, ACTIVATOR_LABEL)
"""Labels of what is not started while one of its objects is missing."""
_UIDS = {ConflictError: re.compile(r"\bUID\b"), InvalidError: re.compile(r"\bmetadata\.uid\b")}
"""How refusals say that the object has another UID. A refused Pod template speaks of UIDs of its own."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What could not be done: `refusals`, until somebody does something about them; `failure`, the first of those that
    may go well next time.
    """

    refusals: tuple[Refusal, ...] = ()
    failure: ApiError | None = None


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One object that should stand."""

    body: KubernetesObject
    identity: str
    kind: Kind
    key: Key
    digest: bytes

    @property
    def place(self) -> Place:
        """Where it stands, or will."""
        return self.kind, self.key

    @property
    def group(self) -> str:
        """The server, build or activator that it belongs to, by its label; empty for what is the whole pool's."""
        labels = self.body["metadata"].get("labels") or {}
        return next((f"{label}={labels[label]}" for label in _GROUPS if labels.get(label)), "")


@dataclass(slots=True)
class _Round:
    """What became of the objects of one call. `found`: what was learned, before it, of places that no watch knows."""

    pool: PoolKey
    owners: Mapping[str, str]
    found: dict[Place, Owned | None] = field(default_factory=dict)
    refusals: list[Refusal] = field(default_factory=list)
    failures: list[ApiError] = field(default_factory=list)
    stuck: set[str] = field(default_factory=set)

    async def settle(self, identity: str, group: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do the work, and keep what went wrong with it."""
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
    """Return the failure that is to be tried again first; those that do not say when come last."""
    return min(failures, key=lambda each: inf if each.retry_after_s is None else each.retry_after_s, default=None)


class Applier:
    """Writes to the cluster what was decided."""

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
        """Make a pool's objects, by its key, be just these; those in `keep` (identities) stay as they are.

        `owners` says, by object identity, which resource tells of a refusal. What cannot be done holds up nothing
        else, but that a server or a build is not started while one of its objects is missing.
        """
        wanted = [_wanted(body) for body in objects]
        changed = await self._taken_over(pool, [each for each in wanted if not self._is_as_applied(each)])
        unknown = [each.place for each in changed if self._indexer(each).get(each.key) is None]
        round_ = _Round(pool, owners, await self._lookup.many(unknown))
        first, bindings, started = _stages(changed)
        await self._put(round_, first)
        await self._put(round_, bindings)
        await self._put(round_, [each for each in started if each.group not in round_.stuck])
        await self._prune(round_, {each.identity for each in wanted}.union(keep))
        refusals = sorted(round_.refusals, key=lambda refusal: refusal.object)
        return Applied(tuple(refusals), soonest(round_.failures))

    async def route(self, pod: PodView, namespace: str, routes: Routes, settled: bool) -> None:
        """Let a Pod be asked for these models and ensembles, and open its readiness gate once `settled`.

        Does nothing to another Pod of its name. Raises ApiError.
        """
        work = partial(self._route, pod, namespace, routes, settled)
        await self._in_time(f"Pod {namespace}/{pod.name}", (pod.uid, routes, settled), work)

    async def _route(self, pod: PodView, namespace: str, routes: Routes, settled: bool) -> None:
        key = (namespace, pod.name)
        try:
            if routes != Routes(pod.routes, pod.ejected):
                patch = routes_patch(pod.uid, pod.routes, routes)
                answer = await self._connection.merge(kinds.POD, key, patch, manager=ROUTES_MANAGER)
                self._cache.learned_pod(answer)
            if settled and not pod.settled:
                patch = settled_patch(pod.uid, timestamp(datetime.now(UTC)))
                answer = await self._connection.merge_lists(kinds.POD.status, key, patch, manager=ROUTES_MANAGER)
                self._cache.learned_pod(answer)
        except ApiError as error:
            if not _is_another(error):
                raise

    async def status(self, resource: Resource, status: Status) -> bool:
        """Write a resource's status, whole. Whether that was done: not where it is gone, or another one by now.

        Raises ApiError.
        """
        identity = f"status of {resource.identity}"
        return await self._in_time(identity, status, partial(self._status, resource, status))

    async def _in_time(self, identity: str, content: object, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Do the work, unless the object's pause after a failure is not over. Raises ApiError."""
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

    def _indexer(self, wanted: _Wanted) -> Indexer:
        return self._cache.indexer(wanted.kind.name)

    def _is_as_applied(self, wanted: _Wanted) -> bool:
        return self._indexer(wanted).is_as_applied(wanted.key, wanted.digest)

    async def _taken_over(self, pool: PoolKey, wanted: Collection[_Wanted]) -> list[_Wanted]:
        """Return those that are to be applied: the others stand as an earlier operator applied them."""
        unread = {each.place: each for each in wanted if self._indexer(each).is_unread(each.key)}
        if unread:
            async for place, live in self._lookup.whole(unread, pool_label(pool)[1]):
                each = unread[place]
                # What ended, or was made anew, since it was read is not as it was read.
                known = self._indexer(each).get(each.key)
                stands = known is not None and known.uid == live["metadata"]["uid"]
                if stands and is_applied(each.body, live, MANAGER):
                    self._indexer(each).applied(live, each.digest, self._shapes.of_object(each.body), each.body)
        return [each for each in wanted if not self._is_as_applied(each)]

    async def _put(self, round_: _Round, wanted: Iterable[_Wanted]) -> None:
        await asyncio.gather(
            *(round_.settle(each.identity, each.group, partial(self._put_one, round_, each)) for each in wanted)
        )

    async def _put_one(self, round_: _Round, wanted: _Wanted) -> None:
        await self._in_time(wanted.identity, wanted.digest, partial(self._one, round_, wanted))

    async def _one(self, round_: _Round, wanted: _Wanted) -> None:
        """Apply one object. Raises RefusedError, NoNeedError, ApiError."""
        shape = self._shapes.of_object(wanted.body)
        for attempt in range(ATTEMPTS):
            try:
                await self._once(round_, wanted, shape)
                return
            except ApiError as error:
                if not _is_stale(error) or attempt == ATTEMPTS - 1:
                    raise judged(error, wanted.kind, wanted.key[0]) from error
            # It was deleted, made anew or changed meanwhile: look again.
            self._indexer(wanted).forget(wanted.key)
            await asyncio.sleep(AGAIN_S * 2**attempt)

    async def _once(self, round_: _Round, wanted: _Wanted, shape: Shape) -> None:
        indexer = self._indexer(wanted)
        known = indexer.get(wanted.key) or await self._look(round_, wanted)
        body = wanted.body
        if known is not None:
            why = why_not_ours(known.managed, known.owner, owner_of(body["metadata"]))
            if why:
                raise RefusedError(f"exists and {why}: it is left as it is; delete or rename it")
            if known.terminating:
                return  # when it is gone, that is an event
            body = {**body, "metadata": {**body["metadata"], "uid": known.uid}}
        with indexer.expecting(wanted.key, shape):
            answer = await self._connection.apply(wanted.kind, body, manager=MANAGER)
            indexer.applied(answer, wanted.digest, shape, body)

    async def _look(self, round_: _Round, wanted: _Wanted) -> Owned | None:
        """The object as it stands, if it does; what was found out beforehand counts once."""
        if wanted.place in round_.found:
            return round_.found.pop(wanted.place)
        return await self._lookup.one(*wanted.place)

    async def _prune(self, round_: _Round, wanted: Collection[str]) -> None:
        """Delete what is ours, of this pool, and not wanted."""
        found = [
            (Identity.of(indexer.kind.name, *key), indexer, key, owned)
            for indexer in self._cache.indexers()
            for key, owned in indexer.of_pool(pool_label(round_.pool))
        ]
        await asyncio.gather(
            *(
                round_.settle(identity, "", partial(self._delete, indexer, key, owned))
                for identity, indexer, key, owned in found
                if identity not in wanted and not owned.terminating and _is_made_by_us(owned)
            )
        )

    async def _delete(self, indexer: Indexer, key: Key, owned: Owned) -> None:
        try:
            answer = await self._connection.delete(indexer.kind, key, owned.uid)
        except (NotFoundError, ConflictError):
            return  # gone, or another one: an event says so
        except ApiError as error:
            raise judged(error, indexer.kind, key[0]) from error
        if answer.get("kind") == "Status":
            indexer.forget(key)


def _wanted(body: KubernetesObject) -> _Wanted:
    return _Wanted(body, object_identity(body), kind_of(body), key_of(body), digest(body))


def _stages(wanted: Sequence[_Wanted]) -> tuple[list[_Wanted], list[_Wanted], list[_Wanted]]:
    """What is applied first; then RoleBindings, which are refused while their Roles are not there; then what runs."""
    found: tuple[list[_Wanted], list[_Wanted], list[_Wanted]] = ([], [], [])
    for each in wanted:
        found[2 if each.kind.name in _STARTED else each.kind == kinds.ROLE_BINDING].append(each)
    return found


def _is_made_by_us(owned: Owned) -> bool:
    return owned.managed and (owned.owner is None or owned.owner.kind in kinds.RESOURCES)


def _is_another(error: ApiError) -> bool:
    """Whether the object that was meant, by its uid, is no longer there under its name."""
    said = any(isinstance(error, kind) and words.search(error.message) for kind, words in _UIDS.items())
    return isinstance(error, NotFoundError) or said


def _is_stale(error: ApiError) -> bool:
    """Whether an object is no longer what it was known as, so that looking again helps."""
    return isinstance(error, ConflictError) or (isinstance(error, InvalidError) and _is_another(error))
