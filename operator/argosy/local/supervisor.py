"""The loop of `argosy up`: read the manifests, reconcile, apply the outcome, show the state, wait."""

import asyncio
import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from argosy.analysis.recordings.recording import Recording
from argosy.api.documents import Resource
from argosy.api.problems import Problem
from argosy.api.servingpool import ServingPool
from argosy.api.status import Status
from argosy.api.values.identity import PoolKey
from argosy.autoscaling.bottlenecks.diagnose import BottleneckReport
from argosy.autoscaling.decision import Decision
from argosy.autoscaling.explain import own_fault
from argosy.autoscaling.pool.language import LanguageReport
from argosy.autoscaling.pool.variants import VariantsReport
from argosy.planning.builds.images import BuildImages
from argosy.planning.demand.measured import MeasuredFootprint
from argosy.planning.facts import Node, ServerReport
from argosy.planning.rollouts.memory import CandidateEvidence
from argosy.reconcile import RoundOutcome, reconcile
from argosy.replay.folder import Record, faults_recorded, not_recorded
from argosy.scaling import Holding, Scaling
from argosy.snapshot import FleetSnapshot, PoolSnapshot
from argosy.status.statuses import failed_status

from .annotations import AnnotationSource, annotated
from .builds.command import installed_compilers
from .builds.runner import LocalBuilds
from .manifests.source import ManifestSource
from .manifests.this_machine import for_this_machine, settings
from .measuring import Measuring, pool_targets, prometheus_urls
from .rates import Meter, reading
from .resources import (
    all_ready,
    any_stalled,
    documents,
    restored,
    restored_rollouts,
    revision_documents,
    stamped,
)
from .servers.fleet import LocalFleet
from .state import StateFolder
from .views.rows import View, rows

ROUND_S = 1.0
"""The period of rounds without edits: models' files, servers' health and statistics are read in each."""
BUSY_ROUND_S = 0.2
"""The period while a server starts, a model loads or an engine is built."""
DRAIN_PERIOD = timedelta()
"""Servers leave the routes of this machine at once."""
BUNDLE_NAME = "up"
"""The beginning of the names of bundles; a round here is about all pools."""
SOONEST_S = 0.02
"""The shortest period: of what is due at once."""
STALLED_ROUNDS = 3
"""Rounds without progress after which `--once` gives up on stalled resources."""


@dataclass(frozen=True, slots=True)
class Goal:
    """When `run` ends by itself: never, or with `once` when everything is Ready, cannot become Ready, or times out."""

    once: bool = False
    timeout_s: float | None = None


class InvalidManifestsError(Exception):
    """The first manifests are invalid; nothing was started."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


class Supervisor:
    """Runs `argosy up`, from parsed flags to its exit status."""

    def __init__(
        self,
        path: Path,
        state: StateFolder,
        node: Node,
        fleet: LocalFleet,
        view: View,
        builds: LocalBuilds | None = None,
        record: Record = not_recorded,
    ) -> None:
        """Create a supervisor. `record` receives what each round saw and decided."""
        self._state, self._node, self._fleet, self._view, self._record_round = state, node, fleet, view, record
        self._manifests = ManifestSource(path, self._gpus, state.engines)
        self._annotations = AnnotationSource(state)
        self._builds = builds or LocalBuilds(state.builds, node)
        last = state.read_status()
        self._resources = restored(last)
        self._snapshot = FleetSnapshot(
            resources=(),
            nodes=(node,),
            pools={pool: PoolSnapshot(servers) for pool, servers in fleet.restored().items()},
            statuses={one.identity: one.status for one in self._resources if one.status is not None},
            build_images=BuildImages(installed_compilers()),
            rollouts=restored_rollouts(last),
        )
        self._meter = Meter()
        self._measuring, self._scaling = Measuring(), Scaling(lambda _: Holding(), records=record is not not_recorded)
        self._edited = True
        self._has_converged, self._error, self._measuring_error = False, "", ""
        self._stalled_rounds = 0
        self._due: datetime | None = None
        self._wake = asyncio.Event()
        self._stopping = False

    async def run(self, goal: Goal) -> int:
        """Serve until a signal comes or the goal is reached. Stop all servers and builds, and return the exit status.

        Raises InvalidManifestsError, before anything is started, if no resource is valid, or with `once` if one is
        invalid. Raises ListenError after everything is stopped.
        """
        watcher = asyncio.create_task(self._watch())
        await asyncio.sleep(0)  # the watch begins with its first step: edits during the first reading are seen
        try:
            self._read()
            problems = self._manifests.problems
            if problems and (goal.once or not self._manifests.has_valid_resources):
                raise InvalidManifestsError(problems)
            self._show_problems(())
            self._catch_signals()
            return await self._loop(goal, time.monotonic())
        finally:
            self._stopping = True
            watcher.cancel()
            await asyncio.gather(watcher, self._measuring.close(), return_exceptions=True)
            await asyncio.gather(self._fleet.stop(), self._builds.stop())
            self._view.close()

    async def _loop(self, goal: Goal, began: float) -> int:
        while not self._stopping:
            if self._edited:
                self._read_edits()
            elif self._annotations.refresh():
                self._stamp()
            code = self._verdict(goal, await self._round(), began)
            if code is not None:
                return code
            self._wake.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), self._pause())
        return 0

    def _pause(self) -> float:
        """Return the seconds until the next round, at the latest."""
        period = BUSY_ROUND_S if self._fleet.busy or self._builds.is_busy else ROUND_S
        due = self._due - datetime.now(UTC) if self._due is not None else timedelta(seconds=period)
        return min(period, max(due.total_seconds(), SOONEST_S))

    async def _round(self) -> Mapping[str, Status]:
        """Run one round. Return the status of every resource by identity."""
        now = time.monotonic()
        reports = await self._fleet.observe(now)
        await self._measure(reports, now)
        snapshot = self._observed(reports)
        try:
            outcome = self._reconciled(self._decided(snapshot))
        except Exception as error:  # models go on serving, and the statuses report the error
            return await self._show(self._failed(error), now)
        await self._converge(snapshot, outcome, now)
        return await self._show(outcome.statuses, now)

    def _reconciled(self, snapshot: FleetSnapshot) -> RoundOutcome:
        """Return the outcome of a round, and record it or the error of Argosy's own, which is raised."""
        now = datetime.now(UTC)
        with faults_recorded(self._record_round, BUNDLE_NAME, snapshot, now, DRAIN_PERIOD):
            outcome = reconcile(snapshot, now, DRAIN_PERIOD)
        self._record_round(BUNDLE_NAME, snapshot, now, DRAIN_PERIOD, outcome)
        return outcome

    async def _measure(self, reports: Mapping[PoolKey, Sequence[ServerReport]], now: float) -> None:
        """Read the servers' metrics when they are due, and decide on scaling. After an error of Argosy's own the last
        decisions stay.
        """
        urls = self._fleet.metrics_urls()
        try:
            targets = [
                pool_targets(key, self._resources, has, urls.get(key, {}), self._scaling.analysis_targets(key))
                for key, has in reports.items()
            ]
            prometheus = prometheus_urls(self._resources)
            if await self._measuring.read(targets, now, datetime.now(UTC), prometheus):
                for key, signals in self._measuring.latest.items():
                    self._scaling.measured(key, signals)
                self._measuring_error = ""
        except Exception as error:
            message = f"{own_fault(error)}; the last decisions on scaling stay"
            if message != self._measuring_error:
                self._measuring_error = message
                self._view.note(message)

    def _decided(self, snapshot: FleetSnapshot) -> FleetSnapshot:
        """Return the snapshot with the scaling decisions of each pool."""
        decisions: dict[str, Decision] = {}
        bottlenecks: dict[str, BottleneckReport] = {}
        language: dict[str, LanguageReport] = {}
        footprints: dict[str, MeasuredFootprint] = {}
        variants: dict[str, VariantsReport] = {}
        evidence: dict[str, CandidateEvidence] = {}
        recordings: dict[str, Recording] = {}
        for key in {member.pool_key for member in snapshot.resources if not isinstance(member, ServingPool)}:
            members = [
                member.model_copy(update={"status": snapshot.statuses.get(member.identity)})
                for member in snapshot.resources
                if not isinstance(member, ServingPool) and member.pool_key == key
            ]
            decided = self._scaling.before(key, members)
            decisions |= decided.decisions
            bottlenecks |= decided.bottlenecks
            language |= decided.language
            footprints |= decided.footprints
            variants |= decided.variants
            evidence |= decided.evidence
            recordings |= decided.recordings
        return replace(
            snapshot,
            decisions=decisions,
            bottlenecks=bottlenecks,
            language=language,
            footprints=footprints,
            variants=variants,
            evidence=evidence,
            recordings=recordings,
        )

    async def _converge(self, snapshot: FleetSnapshot, outcome: RoundOutcome, now: float) -> None:
        self._snapshot, self._due = outcome.after(snapshot), outcome.wake
        for pool in outcome.steps:
            self._scaling.after(pool, outcome)
        try:
            self._record(outcome)
            await self._fleet.converge(outcome, settings(self._resources), now)
            await self._builds.converge(outcome.builds, now)
        except OSError as error:
            self._survive(error)
        else:
            self._has_converged, self._error = True, ""

    def _failed(self, error: Exception) -> dict[str, Status]:
        """Return the statuses after a round that an error of Argosy's own ended. Show a new error."""
        message = f"{type(error).__name__}: {error}"
        if message != self._error:
            self._error = message
            self._view.note(f"{own_fault(error)}; what serves goes on, edits wait")
        previous, now = self._snapshot.statuses, datetime.now(UTC)
        return {
            resource.identity: failed_status(resource, previous.get(resource.identity), message, now)
            for resource in self._shown_resources
        }

    def _observed(self, reports: Mapping[PoolKey, Sequence[ServerReport]]) -> FleetSnapshot:
        """Return the snapshot with the current reports, which are by pool key, and builds."""
        loaded, builds = self._fleet.loaded(), self._builds.observe(time.monotonic())
        pools = {
            key: replace(
                self._snapshot.pool(key),
                reports=tuple(map(_reached, reports.get(key, ()))),
                repositories=tuple(loaded.get(key, ())),
                builds=builds.get(key, {}),
            )
            for key in self._snapshot.pools.keys() | reports.keys() | builds.keys()
        }
        here = for_this_machine(self._resources, self._gpus, self._state.engines)
        active = self._manifests.active
        return replace(self._snapshot, resources=here, pools=pools, problems=active.problems, faulty=active.faulty)

    @property
    def _shown_resources(self) -> list[Resource]:
        """All resources, including those without a valid revision."""
        return [*self._resources, *self._manifests.active.faulty]

    @property
    def _gpus(self) -> int:
        return sum(not gpu.is_cpu for gpu in self._node.gpus)

    def _record(self, outcome: RoundOutcome) -> None:
        """Write the files that `argosy get` and the next `argosy up` read."""
        self._state.write_status(
            {
                "pid": os.getpid(),
                "problems": [str(problem) for problem in self._manifests.problems],
                "withoutEffect": self._manifests.without_effect,
                "resources": documents(self._shown_resources, outcome.statuses),
                "revisions": revision_documents(outcome.rollouts),
            }
        )
        self._fleet.record(outcome)

    def _survive(self, error: OSError) -> None:
        """Go on serving, as when the disk is full, and show a new error. Raise it if no round has succeeded yet."""
        if not self._has_converged:
            raise error
        if str(error) != self._error:
            self._error = str(error)
            self._view.note(
                f"{self._state.root} cannot be written: {error}; what serves goes on, edits wait: free space"
            )

    async def _show(self, statuses: Mapping[str, Status], now: float) -> Mapping[str, Status]:
        latest = self._meter.rates(reading(now, await self._fleet.tallies()))
        doing = {**self._fleet.doing(), **self._builds.doing()}
        self._view.update(rows(self._shown_resources, statuses, doing), self._fleet.rows(), latest, self._builds.rows())
        return statuses

    def _verdict(self, goal: Goal, statuses: Mapping[str, Status], began: float) -> int | None:
        if not goal.once:
            return None
        if all_ready(self._resources, statuses) and not self._manifests.problems:
            return 0
        stuck = any_stalled(statuses.values()) or self._fleet.failing
        moves = self._fleet.progressing or self._builds.is_busy
        self._stalled_rounds = self._stalled_rounds + 1 if stuck and not moves else 0
        if self._stalled_rounds >= STALLED_ROUNDS:
            return 1
        if goal.timeout_s is not None and time.monotonic() - began > goal.timeout_s:
            self._view.note(f"not everything is Ready after {goal.timeout_s:.0f} s")
            return 1
        return None

    def _read(self) -> None:
        """Read the manifests, and show which settings have no effect, and what rollouts may do that was not meant."""
        self._edited = False
        self._manifests.read()
        for line in (*self._manifests.without_effect, *self._manifests.advice):
            self._view.note(line)
        self._annotations.refresh()
        self._stamp()
        self._snapshot = replace(self._snapshot, shapes=self._manifests.shapes)

    def _stamp(self) -> None:
        """Give the resources the metadata that an API server has: times, generations, and annotations of commands."""
        resources = annotated(self._manifests.active.resources, self._annotations.current)
        self._resources = stamped(resources, self._resources, datetime.now(UTC))

    def _read_edits(self) -> None:
        """Read the manifests again, and show their problems. After an error of Argosy's own the former ones stay."""
        before = self._manifests.problems
        try:
            self._read()
        except Exception as error:
            self._view.note(f"{own_fault(error)}; the manifests as last read stay in effect")
        else:
            self._show_problems(before)

    def _show_problems(self, before: Sequence[Problem]) -> None:
        """Show the problems of the manifests, or that the former ones are gone."""
        if self._manifests.problems or before:
            self._view.problems(self._manifests.problems)

    async def _watch(self) -> None:
        async for _ in self._manifests.edits():
            self._edited = True
            self._wake.set()

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._signalled)

    def _signalled(self) -> None:
        """Drain the servers at the first signal, and kill them at the second."""
        if self._stopping:
            self._fleet.kill()
            self._builds.kill()
        else:
            self._view.note("stopping: requests that were accepted are answered; another Ctrl-C ends it at once")
        self._stopping = True
        self._wake.set()


def _reached(report: ServerReport) -> ServerReport:
    """Return the report with its answering models as reachable: there are no endpoints that would have to follow."""
    answering = frozenset(model.model for model in report.models if model.answers)
    return replace(report, takes_requests=report.ready, routes=answering)
