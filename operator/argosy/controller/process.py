"""The operator's process: it stands by until it leads, and acts until it is stopped or loses the lease."""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from argosy.api.values.identity import Identity, PoolKey
from argosy.cluster.apply.applier import Applier
from argosy.cluster.cache.cluster_cache import ClusterCache
from argosy.cluster.client.connection import Connection, answered
from argosy.cluster.client.discovery import crd_problems, offered
from argosy.cluster.client.errors import ApiError
from argosy.cluster.client.kinds import CONTROLLER_REVISION
from argosy.cluster.leader.elector import Elector
from argosy.controller.events.announcer import Announcer, Recorder
from argosy.controller.health import Health
from argosy.controller.measuring.gatherer import Gatherer
from argosy.controller.measuring.logins import Logins
from argosy.controller.metrics.metrics import Metrics
from argosy.controller.resources.feed import ResourceFeed
from argosy.controller.resources.parsed_body import ParsedBody, parsed_body
from argosy.controller.resources.store import Store
from argosy.controller.rounds.reconciler import Reconciler, holding
from argosy.controller.workqueue import Workqueue
from argosy.render.workloads import Images, LatestRevisions, managed_selector
from argosy.replay.folder import bundle_recorder
from argosy.scaling import Scaling

log = logging.getLogger(__name__)

CRDS_AGAIN_S = 5.0
"""Seconds between checks for missing CRDs."""
ServeAdmission = Callable[[Connection, Callable[[], None], Callable[[str], None]], Coroutine[Any, Any, None]]
"""Answers the API server's reviews of resources until cancelled.

The second argument is called whenever something else took the signals of the process; the third receives what is wrong
in words, and the empty text once nothing is.
"""


class StartError(Exception):
    """The operator cannot start; the message says why."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command line. `namespaces`: empty for all. `port` 0 selects a free one.

    `build_priority_class`: the PriorityClass of builds' Pods; empty: the cluster's default.
    `placeholder_priority_class`: that of placeholders; empty: there are none. `bundles`: the folder that
    gets what rounds saw and decided; None: nothing is written.
    """

    images: Images
    namespaces: tuple[str, ...] = ()
    lease: tuple[str, str] = ("default", "argosy-operator")
    host: str = "0.0.0.0"
    port: int = 8080
    resync_s: float = 300.0
    kubeconfig: Path | None = None
    build_priority_class: str = ""
    placeholder_priority_class: str = ""
    bundles: Path | None = None


class Operator:
    """One replica of the operator."""

    def __init__(self, options: Options, serve_admission: ServeAdmission | None = None) -> None:
        self._options, self._serve_admission = options, serve_admission
        self._metrics = Metrics()
        self._store = Store()
        self._scaling: Scaling | None = None
        self._metrics.collect(
            self._store.members,
            lambda: self._scaling.estimated() if self._scaling is not None else [],
            self._store.serving_pools,
        )
        self._workqueue: Workqueue | None = None
        self._stop = asyncio.Event()
        self._cache: ClusterCache | None = None
        self._feed: ResourceFeed | None = None
        self._error, self._admission_error = "starting", ""

    async def run(self) -> int:
        """Act until stopped, or the lease is lost. Return the exit status. Raises StartError, CredentialsError."""
        self._listen_to_signals()
        health = Health(self._metrics, lambda: self._error, self._notes)
        try:
            log.info("listening on port %d: /healthz /readyz /metrics", await self._listen(health))
            async with Connection.open(self._options.kubeconfig, on_request=self._metrics.request) as connection:
                if not await _unless(self._stop, self._await_crds(connection)):
                    return 0
                async with _running(self._admission(connection)):
                    return await self._serve(connection, self._stop)
        finally:
            await health.stop()

    async def _listen(self, health: Health) -> int:
        host, port = self._options.host, self._options.port
        try:
            return await health.start(host, port)
        except OSError as error:
            raise StartError(f"{host}:{port} cannot be listened on: {error.strerror}; choose another --port") from error

    async def _serve(self, connection: Connection, stop: asyncio.Event) -> int:
        elector = Elector(connection, *self._options.lease, _identity())
        try:
            if not await _unless(stop, self._stand_by(elector)):
                return 0
            self._metrics.leading.set(1)
            acting = asyncio.create_task(self._act(connection))
            losing = asyncio.create_task(elector.renew())
            stopping = asyncio.create_task(stop.wait())
            tasks: tuple[asyncio.Task[Any], ...] = (acting, losing, stopping)
            try:
                ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            return 0 if stopping in ended else self._failed(acting if acting in ended else losing, losing in ended)
        finally:
            self._metrics.leading.set(0)
            await elector.release()

    def _failed(self, ended: asyncio.Task[Any], lost: bool) -> int:
        """Log why the operator ends without being stopped. Return the exit status."""
        if lost:
            log.error("the lease %s/%s is lost: another replica acts now; this one starts again", *self._options.lease)
        for error in _leaves(ended.exception()):
            trace = None if isinstance(error, ApiError) else error
            log.error("the operator cannot go on: %s", error or type(error).__name__, exc_info=trace)
        return 1

    async def _await_crds(self, connection: Connection) -> None:
        while problems := await _crd_problems(connection):
            if "; ".join(problems) != self._error:
                self._error = "; ".join(problems)
                log.error("%s", self._error)
            await asyncio.sleep(CRDS_AGAIN_S)
        self._error = ""

    async def _admission(self, connection: Connection) -> None:
        """Answer reviews in every replica, whether it leads or stands by."""
        if self._serve_admission is not None:
            await self._serve_admission(connection, self._listen_to_signals, self._admission_failed)

    def _admission_failed(self, error: str) -> None:
        self._admission_error = error

    async def _stand_by(self, elector: Elector) -> None:
        log.info("standing by for the lease %s/%s", *self._options.lease)
        await elector.acquire()
        log.info("leading")

    async def _act(self, connection: Connection) -> None:
        supported = await answered(lambda: offered(connection), "what the API server offers")
        cluster = replace(
            supported,
            build_priority_class=self._options.build_priority_class,
            placeholder_priority_class=self._options.placeholder_priority_class,
        )
        cache = self._cache = ClusterCache(connection, cluster, self._options.namespaces, self._mark)
        feed = self._feed = ResourceFeed(connection, self._options.namespaces, self._seen, self._ended)
        announcer, applier = Announcer(Recorder(connection)), Applier(connection, cache)
        images = self._options.images
        bundles = self._options.bundles
        scaling = self._scaling = Scaling(lambda key: holding(cache, key), self._mark, records=bundles is not None)
        record = bundle_recorder(bundles)
        reconciler = Reconciler(
            self._store, cache, applier, announcer, images, cluster, changed=self._mark, scaling=scaling, record=record
        )
        logins, observe = Logins(connection.get), self._metrics.measured
        gatherer = Gatherer(self._store, cache, logins, scaling.heard, observe, analysis=scaling.analysis_targets)

        def pools() -> set[PoolKey]:
            return set(self._store.pools | cache.pools())

        self._workqueue = Workqueue(reconciler.reconcile, pools, self._metrics, self._options.resync_s)
        async with asyncio.TaskGroup() as tasks:
            recorded = await answered(lambda: self._former(connection), "the ControllerRevisions")
            for body in recorded.bodies():
                self._store.restore(parsed_body(body))
            for uid, revisions in recorded.of_rollouts().items():
                self._store.record(uid, revisions)
            tasks.create_task(cache.run())
            tasks.create_task(feed.run())
            await cache.synced()
            await feed.synced()
            log.info("everything is listed: %d resources", self._store.count)
            tasks.create_task(self._workqueue.run())
            tasks.create_task(gatherer.run())

    async def _former(self, connection: Connection) -> LatestRevisions:
        """Return the revisions of resources that earlier processes recorded."""
        selectors = {"labelSelector": managed_selector()}
        latest = LatestRevisions()
        for namespace in self._options.namespaces or ("",):
            async for page in connection.pages(CONTROLLER_REVISION, namespace, selectors):
                latest.add(page["items"])
        return latest

    def _seen(self, parsed: ParsedBody) -> None:
        self._marked(self._store.put(parsed))

    def _ended(self, identity: Identity, uid: str) -> None:
        self._marked(self._store.end(identity, uid))

    def _listen_to_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._stop.set)

    def _notes(self) -> list[str]:
        """Return errors for /readyz that do not make the operator unready."""
        errors = {**(self._cache.errors if self._cache else {}), **(self._feed.errors if self._feed else {})}
        if self._admission_error:
            errors["admission"] = self._admission_error
        return [f"{what}: {why}" for what, why in sorted(errors.items())]

    def _marked(self, pools: frozenset[PoolKey]) -> None:
        self._metrics.resources.set(self._store.count)
        for pool in pools:
            self._mark(pool)

    def _mark(self, pool: PoolKey | None) -> None:
        if self._workqueue is not None:
            self._workqueue.add(pool)


async def _crd_problems(connection: Connection) -> list[str]:
    try:
        return await crd_problems(connection)
    except ApiError as error:
        return [f"the API server cannot be asked for Argosy's CRDs: {error}"]


def _leaves(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the errors that groups of errors contain."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    elif error is not None:
        yield error


@asynccontextmanager
async def _running(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Do `work` at the same time as the block, and cancel it at the block's end."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _unless(stop: asyncio.Event, work: Awaitable[None]) -> bool:
    """Do `work` unless `stop` comes first. Return whether it was done."""
    task, stopping = asyncio.ensure_future(work), asyncio.create_task(stop.wait())
    done, _ = await asyncio.wait((task, stopping), return_when=asyncio.FIRST_COMPLETED)
    for pending in (task, stopping):
        pending.cancel()
    await asyncio.gather(task, stopping, return_exceptions=True)
    if task in done:
        task.result()
    return task in done


def _identity() -> str:
    """Return this replica's name on the lease: the Pod's or the machine's, with the process's id to make it unique."""
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}_{os.getpid()}"
