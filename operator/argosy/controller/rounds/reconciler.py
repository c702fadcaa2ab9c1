"""One reconcile of one pool: takes a snapshot, decides, applies objects and writes statuses.

A round depends only on the cluster's state and on results of the last round, so it may be repeated at any time: after
an event, after a failure, in another replica.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from argosy.api import Problem, Resource
from argosy.api.status import Status
from argosy.api.values.identity import Identity, PoolKey
from argosy.autoscaling.decision import Ejection
from argosy.cluster.apply.applier import soonest
from argosy.cluster.cache.pods.pod_cache import PodView
from argosy.cluster.cache.pods.routing import Routes
from argosy.cluster.cache.pool_view import PoolView
from argosy.cluster.client.errors import ApiError
from argosy.controller.ports import Cache, StatusListener, Writer
from argosy.controller.rendering.activation import Activating
from argosy.controller.rendering.pool_renderer import PoolRenderer, Rendered
from argosy.controller.rendering.routing import differs, ejections_of, opened_routes, routed
from argosy.controller.resources.store import Declared, Store
from argosy.controller.rounds.inputs import Memory, RoundInputs, moved_members, round_snapshot
from argosy.controller.rounds.reservations import Reservations
from argosy.controller.rounds.rollouts import RolloutMemories
from argosy.planning.facts import Refusal
from argosy.planning.migration.choices import VariantChoice
from argosy.planning.migration.pool_migration import DRAIN_PERIOD
from argosy.planning.nodes.device_errors import DeviceErrors
from argosy.planning.nodes.reservations import next_concession
from argosy.planning.validation.references import check_names
from argosy.reconcile import RoundOutcome, conclude, decide
from argosy.render.names import object_name
from argosy.render.repositories import RenderedServer
from argosy.render.workloads import (
    Cluster,
    Images,
)
from argosy.replay.folder import Record, faults_recorded, not_recorded
from argosy.round import DecidedRound
from argosy.scaling import Holding, Scaling
from argosy.snapshot import FleetSnapshot
from argosy.status.statuses import failed_status

log = logging.getLogger(__name__)

REFUSED_RETRY_S = 15.0
DEFERRED_RETRY_S = 2.0
"""Seconds until deferred servers are checked again."""
MOVED_RETRY_S = 5.0
"""Seconds until a pool checks again whether another pool serves members that moved there."""


class Reconciler:
    """Reconciles pools, one decision at a time: two pools never take the same GPU."""

    def __init__(
        self,
        store: Store,
        cache: Cache,
        writer: Writer,
        listener: StatusListener,
        images: Images,
        cluster: Cluster,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        changed: Callable[[PoolKey], None] = lambda _: None,
        scaling: Scaling | None = None,
        record: Record = not_recorded,
    ) -> None:
        """Create a reconciler. `changed` receives the key of each pool that a decision on another pool affects, and
        `record` what each round saw and decided.
        """
        self._store, self._cache, self._writer, self._listener = store, cache, writer, listener
        self._images, self._cluster, self._clock = images, cluster, clock
        self._memory: dict[str, Memory] = {}
        self._rollouts = RolloutMemories(store)
        self._renderer = PoolRenderer(images, cluster, cache, clock)
        self._deciding = asyncio.Lock()
        self._reservations, self._changed, self._record = Reservations(cache), changed, record
        self._scaling = scaling or Scaling(lambda key: holding(cache, key), changed, clock)

    async def reconcile(self, key: PoolKey) -> datetime | None:
        """Run one round of the pool `namespace/name`. Return when to come back although nothing changes, or None.

        Raises ApiError where a write failed, after all others. Any other error is an internal fault: it is raised too,
        and reported in the statuses of the pool and its members until a round succeeds.
        """
        try:
            return await self._round(key)
        except ApiError:
            raise
        except Exception as error:
            await self._report(key, f"{type(error).__name__}: {error}")
            raise

    async def _report(self, key: PoolKey, error: str) -> None:
        """Write an internal fault into the statuses. Errors of that are only logged, since the fault is raised."""
        works = (
            self._write(resource, failed_status(resource, self._store.status(resource.identity), error, self._clock()))
            for resource in self._store.of_pool(key).every
        )
        try:
            await _all(works)
        except ApiError as unwritten:
            log.warning("pool %s: a status cannot be written: %s", key, unwritten)

    async def _round(self, key: PoolKey) -> datetime | None:
        declared, view = self._store.of_pool(key), self._cache.pool(key)
        memory = self._memory.setdefault(key, Memory())
        inputs = RoundInputs(key, declared, view, memory, moved_members(declared, view, self._cache.pool))
        decided = await self._decide(inputs)
        outcome = await asyncio.to_thread(self._concluded, inputs, decided)
        memory.valid, memory.packed = outcome.valid, decided.packed
        memory.device_errors = outcome.cordons[key].errors if key in outcome.cordons else DeviceErrors()
        self._scaling.after(key, outcome)
        self._rollouts.after(outcome.rollouts)
        if inputs.is_unreadable:
            await _all(self._writes(declared, outcome))  # what runs goes on, until there is a spec that can be read
            return None
        ejections = ejections_of(declared, decided.snapshot.decisions, outcome.choices.get(key, {}))
        wake = await self._carry_out(inputs, outcome, ejections)
        if not declared.every and not view.current:
            self._memory.pop(key, None)
            self._reservations.forget(key)
            self._scaling.forget(key)
        return wake

    async def _decide(self, inputs: RoundInputs) -> DecidedRound:
        """Decide, one pool at a time. Statuses and objects are made afterwards, so that they delay no other pool."""
        key, declared, ages = inputs.key, inputs.declared, inputs.memory.ages
        async with self._deciding:
            conflicts = tuple(self._conflicts(key, declared))
            ages = inputs.memory.ages = ages.after(inputs.view.reports, self._clock())
            reports = ages.marked(inputs.view.reports, self._clock())
            cordoned = self._store.cordoned()
            nodes, servers, others = self._reservations.of(key, reports, cordoned, self._clock())
            scaled = self._scaling.before(key, declared.members)
            by_others = frozenset(gpu for other, gpus in cordoned.items() if other != key for gpu in gpus)
            snapshot = partial(
                round_snapshot,
                inputs,
                nodes=nodes,
                servers=servers,
                reports=reports,
                others=others,
                cordoned=by_others,
                conflicts=conflicts,
                scaling=scaled,
                rollouts=self._rollouts.of(declared.members),
                build_images=self._images.building,
                engine_image=self._images.triton_trtllm,
                placeholders=bool(self._cluster.placeholder_priority_class),
            )
            # On a thread of its own: a decision may take a second where there are a thousand models.
            decided = await asyncio.to_thread(lambda: self._decided(inputs, snapshot()))
            if not inputs.is_unreadable:
                builds = decided.builds.get(key, ())
                self._mark_changed(self._reservations.decided(key, decided.servers(key), decided.ranked, builds))
        return decided

    def _decided(self, inputs: RoundInputs, snapshot: FleetSnapshot) -> DecidedRound:
        """Return the decisions on a snapshot."""
        now = self._clock()
        with faults_recorded(self._record, inputs.key, snapshot, now, DRAIN_PERIOD):
            return decide(snapshot, now, last_packed=inputs.memory.packed, cache=inputs.memory.cache)

    def _concluded(self, inputs: RoundInputs, decided: DecidedRound) -> RoundOutcome:
        """Return the outcome of a round, and record it."""
        with faults_recorded(self._record, inputs.key, decided.snapshot, decided.now, DRAIN_PERIOD):
            outcome = conclude(decided, inputs.memory.cache)
        self._record(inputs.key, decided.snapshot, decided.now, DRAIN_PERIOD, outcome)
        return outcome

    async def _carry_out(
        self, inputs: RoundInputs, outcome: RoundOutcome, ejections: Mapping[str, Ejection]
    ) -> datetime | None:
        """Apply what was decided, and write the statuses. Return when to come back, or None. Raises ApiError."""
        key, view, memory = inputs.key, inputs.view, inputs.memory
        rendered = self._renderer.render(key, inputs.declared, outcome, view)
        self._reservations.defer(key, rendered.deferred)
        choices = outcome.choices.get(key, {})
        routes = _routes(outcome.steps.get(key, ()), view, rendered.deferred, ejections, choices)
        # What may be reached more waits for no other object. What may be reached less goes after the activator's.
        opened = {
            (pod, opening): gate
            for (pod, desired), gate in routes.items()
            if (opening := opened_routes(pod, desired)) == desired or opening != Routes(pod.routes, pod.ejected)
        }
        failures = await _done(self._reroutes(key, opened))
        # Where a Pod could not be opened, no other one is ejected in its favour.
        closed = {
            (pod, Routes(desired.names, opening.ejected) if failures else desired): gate
            for (pod, desired), gate in routes.items()
            if (opening := opened_routes(pod, desired)) != desired
        }
        applied = await self._writer.apply(key, rendered.objects, rendered.owners, rendered.keep)
        if applied.failure is None:
            self._mark_changed(self._reservations.applied(key, _unchanged(key, rendered, applied.refusals)))
        # The labels that this round writes make no event, and the next status is to tell of them.
        again = not routes.keys() <= memory.routed or _refused(applied.refusals) != _refused(memory.refusals)
        memory.refusals, memory.routed = applied.refusals, frozenset(routes)
        await _all(
            self._activator_routes(key, rendered.activating),
            self._reroutes(key, closed),
            self._writes(inputs.declared, outcome),
            failures=[*failures, *([applied.failure] if applied.failure is not None else [])],
        )
        return self._clock() if again else self._wake(inputs, outcome, rendered)

    def _wake(self, inputs: RoundInputs, outcome: RoundOutcome, rendered: Rendered) -> datetime | None:
        """Return when to come back though nothing changes, or None."""
        now, memory = self._clock(), inputs.memory
        soon = now + timedelta(seconds=DEFERRED_RETRY_S) if rendered.activating.again else None
        patience, held = next_concession(inputs.view.reports, now), self._reservations.next_hold_end(now)
        wakes = (outcome.wake, rendered.wake, soon, patience, held, memory.ages.next_expiry(now))
        return _again(now, memory.refusals, inputs.moved, rendered.deferred, wakes)

    def _mark_changed(self, pools: Iterable[PoolKey]) -> None:
        for pool in pools:
            self._changed(pool)

    def _conflicts(self, key: PoolKey, declared: Declared) -> list[Problem]:
        """Return the names that another pool's model or ensemble has in the same namespace, as problems."""
        mine = {resource.identity for resource in declared.every}
        problems = check_names([*declared.members, *self._store.namesakes(key)])
        return [problem for problem in problems if problem.resource in mine]

    def _activator_routes(self, key: PoolKey, activator: Activating) -> Iterator[Coroutine[Any, Any, None]]:
        """Let the Services reach the activator for what no server is reached for. Before servers' own: between the two
        a Service would lead nowhere.
        """
        for pod, routes in activator.routes:
            if pod.routes != routes:
                yield self._writer.route(pod, key.namespace, Routes(routes), False)

    def _reroutes(
        self, key: PoolKey, routes: Mapping[tuple[PodView, Routes], bool]
    ) -> Iterator[Coroutine[Any, Any, None]]:
        return (self._writer.route(pod, key.namespace, desired, gate) for (pod, desired), gate in routes.items())

    def _writes(self, declared: Declared, outcome: RoundOutcome) -> Iterator[Coroutine[Any, Any, None]]:
        """Write each status that changed, once."""
        return (self._write(resource, outcome.statuses.get(resource.identity)) for resource in declared.every)

    async def _write(self, resource: Resource, status: Status | None) -> None:
        before = self._store.status(resource.identity)
        if status is None or status == before:
            return
        if await self._writer.status(resource, status):
            self._store.wrote(resource.identity, status)
            await self._listener.changed(resource, before, status)


def _routes(
    steps: Sequence[RenderedServer],
    view: PoolView,
    deferred: frozenset[str],
    ejections: Mapping[str, Ejection],
    choices: Mapping[str, VariantChoice],
) -> dict[tuple[PodView, Routes], bool]:
    """Return the routes to write to Pods, with whether to set the Pod's readiness gate.

    A deferred server that is to restart with other GPUs retains its routes.
    """
    gpus = {server.name: server.gpus for server in view.current}
    restarting = {
        step.plan.name for step in steps if step.plan.name in deferred and gpus.get(step.plan.name) != step.plan.gpus
    }
    settled = {report.name for report in view.reports if report.settled}
    desired = routed(steps, view.pods, restarting, ejections, choices)
    return {
        (pod, desired[pod.name]): pod.settled or pod.server in settled
        for pod in view.pods
        if pod.name in desired and differs(pod, desired[pod.name], pod.server in settled)
    }


def holding(cache: Cache, key: PoolKey) -> Holding:
    """Return the requests that wait at a pool's activator."""
    view = cache.pool(key)
    return Holding(view.queued, view.activator_error)


async def _all(*works: Iterable[Coroutine[Any, Any, None]], failures: Iterable[Exception] = ()) -> None:
    """Run all groups of work, one group after another.

    Raises an internal fault, or else the failure that is due for a retry first, of these and `failures`.
    """
    errors = [*failures, *await _done(*works)]
    fault = next((error for error in errors if not isinstance(error, ApiError)), None)
    failure = fault or soonest(error for error in errors if isinstance(error, ApiError))
    if failure is not None:
        raise failure


async def _done(*works: Iterable[Coroutine[Any, Any, None]]) -> list[Exception]:
    """Run all groups of work, one group after another, and return the errors."""
    results = [result for work in works for result in await asyncio.gather(*work, return_exceptions=True)]
    return [result for result in results if isinstance(result, Exception)]


def _refused(refusals: Iterable[Refusal]) -> set[tuple[str, str]]:
    """Return the refused objects, without messages, which may differ each time."""
    return {(refusal.resource, refusal.object) for refusal in refusals}


def _again(
    now: datetime,
    refusals: Collection[Refusal],
    moved: Mapping[str, bool],
    deferred: Collection[str],
    wakes: Iterable[datetime | None],
) -> datetime | None:
    """Return when the next round is due.

    No event reports that the cause of a refusal is gone. A pool also gets no events of other pools' servers, or of its
    own labels, for which `deferred` servers wait.
    """
    due = [wake for wake in wakes if wake is not None]
    if refusals:
        due.append(now + timedelta(seconds=REFUSED_RETRY_S))
    if deferred:
        due.append(now + timedelta(seconds=DEFERRED_RETRY_S))
    if not all(moved.values()):
        due.append(now + timedelta(seconds=MOVED_RETRY_S))
    return min(due, default=None)


def _unchanged(key: PoolKey, rendered: Rendered, refusals: Iterable[Refusal]) -> Callable[[str], bool]:
    """Return a function of a server's name: whether its Deployment is unchanged, since it was deferred or refused."""
    namespace = key.namespace
    same = rendered.keep | {refusal.object for refusal in refusals}
    return lambda server: Identity.of("Deployment", namespace, object_name(server)) in same
