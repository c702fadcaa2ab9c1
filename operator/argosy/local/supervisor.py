"""The loop of `argosy up`: read the manifests, decide, make it so, say how it stands, wait, again."""

import asyncio
import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from watchfiles import Change, awatch

from argosy.api.problems import Problem
from argosy.api.servingpool import ServingPool
from argosy.api.status import Status
from argosy.api.values.identity import PoolKey
from argosy.autoscaling.bottlenecks.diagnose import Told
from argosy.autoscaling.decision import Decision
from argosy.planning.facts import Node, ServerReport
from argosy.planning.topology.refusals import refusals
from argosy.planning.validation.accept import accept
from argosy.reconcile import Outcome, reconcile
from argosy.render.config.configrules import check_together
from argosy.scaling import Holding, Scaling
from argosy.snapshot import FleetSnapshot, PoolSnapshot
from argosy.status.findings.unsupported import settings_without_effect
from argosy.status.statuses import failed_status

from .builds.compilers import installed_compilers
from .builds.runner import LocalBuilds
from .manifests.reading import (
    SUFFIXES,
    for_this_machine,
    read_manifests,
    settings,
    with_engine_store,
    without_effect,
)
from .manifests.shapes import local_shapes
from .manifests.taken import Taken, take
from .measuring import Measuring, pool_targets
from .rates import Meter, reading
from .servers.fleet import LocalFleet
from .snapshot import all_ready, any_stalled, documents, remembered, rows, stamped
from .state import StateFolder
from .view import View

ROUND_S = 1.0
"""How often everything is looked at, edits apart: models' files, servers' health and statistics."""
BUSY_ROUND_S = 0.2
"""The same while something is being brought up."""
QUIET_ROUNDS = 3
"""Rounds without any progress after which what is stalled is taken to stay so (`--once`)."""


@dataclass(frozen=True, slots=True)
class Goal:
    """When `run` ends by itself.

    Never, or (`once`) when everything is Ready, or it cannot be, or it takes too long.
    """

    once: bool = False
    timeout_s: float | None = None


class InvalidManifestsError(Exception):
    """The manifests to start from are wrong; nothing was started."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


class Supervisor:
    """`argosy up`, between the reading of its flags and its exit code."""

    def __init__(
        self,
        path: Path,
        state: StateFolder,
        node: Node,
        fleet: LocalFleet,
        view: View,
        builds: LocalBuilds | None = None,
    ) -> None:
        self._path, self._state, self._node, self._fleet, self._view = path.resolve(), state, node, fleet, view
        self._builds = builds or LocalBuilds(state.builds, node)
        self._resources = remembered(state.read_status())
        self._snapshot = FleetSnapshot(
            resources=(),
            nodes=(node,),
            pools={pool: PoolSnapshot(servers) for pool, servers in fleet.remembered().items()},
            statuses={each.identity: each.status for each in self._resources if each.status is not None},
            build_image=installed_compilers(),
        )
        self._meter = Meter()
        self._measuring, self._scaling = Measuring(), Scaling(lambda _: Holding())
        self._problems: tuple[Problem, ...] = ()
        self._taken = Taken()
        self._without_effect: list[str] = []
        self._edited = True
        self._begun, self._trouble = False, ""
        self._quiet = 0
        self._wake = asyncio.Event()
        self._stopping = False

    async def run(self, goal: Goal) -> int:
        """Serve until a signal comes or the goal is reached. The exit code. Nothing it started is left running.

        Raises InvalidManifestsError before anything is started: where nothing is right, and with `once` where
        anything is wrong. Raises PortInUseError after everything is stopped.
        """
        watcher = asyncio.create_task(self._watch())
        await asyncio.sleep(0)  # after its first step the watch stands: no edit is missed behind the first reading
        try:
            self._read()
            if self._problems and (goal.once or not self._is_something_right()):
                raise InvalidManifestsError(self._problems)
            self._tell(())
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
                before = self._problems
                self._read()
                self._tell(before)
            code = self._verdict(goal, await self._round(), began)
            if code is not None:
                return code
            self._wake.clear()
            with suppress(TimeoutError):
                wait = BUSY_ROUND_S if self._fleet.busy or self._builds.is_busy else ROUND_S
                await asyncio.wait_for(self._wake.wait(), wait)
        return 0

    async def _round(self) -> Mapping[str, Status]:
        """One round. The status of every resource, by identity."""
        now = time.monotonic()
        reports = await self._fleet.observe(now)
        await self._measure(reports, now)
        snapshot = self._observed(reports)
        try:
            outcome = reconcile(self._decided(snapshot), datetime.now(UTC), drain_period=timedelta())
        except Exception as error:  # whatever it is, what serves goes on, and the resources say so
            return await self._show(self._failed(error), now)
        await self._converge(snapshot, outcome, now)
        return await self._show(outcome.statuses, now)

    async def _measure(self, reports: Mapping[PoolKey, Sequence[ServerReport]], now: float) -> None:
        """Read the servers' metrics if it is time to, and decide on what they say."""
        urls = self._fleet.metrics_urls()
        targets = [pool_targets(key, self._resources, found, urls.get(key, {})) for key, found in reports.items()]
        if await self._measuring.read(targets, now, datetime.now(UTC)):
            for key, signals in self._measuring.latest.items():
                self._scaling.measured(key, signals)

    def _decided(self, snapshot: FleetSnapshot) -> FleetSnapshot:
        """The snapshot with what scaling decided of each pool."""
        decisions: dict[str, Decision] = {}
        bottlenecks: dict[str, Told] = {}
        for key in {each.pool_key for each in snapshot.resources if not isinstance(each, ServingPool)}:
            members = [
                each.model_copy(update={"status": snapshot.statuses.get(each.identity)})
                for each in snapshot.resources
                if not isinstance(each, ServingPool) and each.pool_key == key
            ]
            decided = self._scaling.before(key, members)
            decisions |= decided.decisions
            bottlenecks |= decided.bottlenecks
        return replace(snapshot, decisions=decisions, bottlenecks=bottlenecks)

    async def _converge(self, snapshot: FleetSnapshot, outcome: Outcome, now: float) -> None:
        self._snapshot = outcome.after(snapshot)
        for pool in outcome.steps:
            self._scaling.after(pool, outcome)
        try:
            self._record(outcome)
            await self._fleet.converge(outcome, settings(self._resources), now)
            await self._builds.converge(outcome.builds, now)
        except OSError as error:
            self._survive(error)
        else:
            self._begun, self._trouble = True, ""

    def _failed(self, error: Exception) -> dict[str, Status]:
        """What a round that failed for a fault of ours leaves: statuses that say so."""
        words = f"{type(error).__name__}: {error}"
        if words != self._trouble:
            self._trouble = words
            self._view.note(f"a fault of Argosy's own, please report it: {words}; what serves goes on, edits wait")
        known, now = self._snapshot.statuses, datetime.now(UTC)
        every = (*self._resources, *self._taken.faulty)
        return {each.identity: failed_status(each, known.get(each.identity), words, now) for each in every}

    def _observed(self, reports: Mapping[PoolKey, Sequence[ServerReport]]) -> FleetSnapshot:
        """What stands now. `reports` are by the pool's key."""
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
        here = for_this_machine(self._resources, self._gpus(), self._state.engines)
        taken = self._taken
        return replace(self._snapshot, resources=tuple(here), pools=pools, problems=taken.problems, faulty=taken.faulty)

    def _gpus(self) -> int:
        return sum(not gpu.is_cpu for gpu in self._node.gpus)

    def _record(self, outcome: Outcome) -> None:
        """Write down what the next `argosy up`, and `argosy get`, have to know."""
        resources = documents([*self._resources, *self._taken.faulty], outcome.statuses)
        problems = [str(problem) for problem in self._problems]
        unused = self._without_effect
        self._state.write_status(
            {"pid": os.getpid(), "problems": problems, "withoutEffect": unused, "resources": resources}
        )
        self._fleet.remember(outcome)

    def _survive(self, error: OSError) -> None:
        """What serves goes on serving when the disk is full; what never served is not begun."""
        if not self._begun:
            raise error
        if str(error) != self._trouble:
            self._trouble = str(error)
            self._view.note(
                f"{self._state.root} cannot be written: {error}; what serves goes on, edits wait: free space"
            )

    async def _show(self, statuses: Mapping[str, Status], now: float) -> Mapping[str, Status]:
        latest = self._meter.rates(reading(now, await self._fleet.tallies()))
        doing = {**self._fleet.doing(), **self._builds.doing()}
        shown = rows([*self._resources, *self._taken.faulty], statuses, doing)
        self._view.update(shown, self._fleet.rows(), latest, self._builds.rows())
        return statuses

    def _verdict(self, goal: Goal, statuses: Mapping[str, Status], began: float) -> int | None:
        if not goal.once:
            return None
        if all_ready(self._resources, statuses) and not self._problems:
            return 0
        stuck = any_stalled(statuses.values()) or self._fleet.failing
        moves = self._fleet.progressing or self._builds.is_busy
        self._quiet = self._quiet + 1 if stuck and not moves else 0
        if self._quiet >= QUIET_ROUNDS:
            return 1
        if goal.timeout_s is not None and time.monotonic() - began > goal.timeout_s:
            self._view.note(f"not everything is Ready after {goal.timeout_s:.0f} s")
            return 1
        return None

    def _read(self) -> None:
        """Take over what is right of the manifests."""
        self._edited = False
        manifests = read_manifests(self._path)
        shapes = local_shapes(manifests.resources)
        contradictions = tuple(refusals(manifests.resources, shapes, manifests.sources))
        self._taken = take(replace(manifests, problems=(*manifests.problems, *contradictions)), self._taken)
        taken = self._taken
        between = check_together(
            with_engine_store(taken.resources, self._state.engines),
            taken.sources,
            excluded={problem.resource for problem in taken.problems},
        )
        self._problems = (*taken.problems, *between)
        here = for_this_machine(taken.resources, self._gpus(), self._state.engines)
        self._without_effect = [*without_effect(taken.resources), *settings_without_effect(here)]
        for line in self._without_effect:
            self._view.note(line)
        self._resources = stamped(taken.resources, self._resources, datetime.now(UTC))
        self._snapshot = replace(self._snapshot, shapes=shapes)

    def _tell(self, before: Sequence[Problem]) -> None:
        """Say what is wrong with the manifests, or that nothing is wrong any more."""
        if self._problems or before:
            self._view.problems(self._problems)

    def _is_something_right(self) -> bool:
        """Return whether there is a resource to begin with beside what is wrong."""
        return bool(accept(self._taken.resources, self._taken.problems, {}, check_together).valid)

    async def _watch(self) -> None:
        is_folder = self._path.is_dir()
        root = self._path if is_folder else self._path.parent

        def concerns(change: Change, path: str) -> bool:
            """Whether a change may concern the manifests; those of a state folder below them, being hidden, do not."""
            inside = Path(path).relative_to(root)
            return path.endswith(SUFFIXES) and not any(part.startswith(".") for part in inside.parts[:-1])

        async for _ in awatch(root, watch_filter=concerns, recursive=is_folder, step=100):
            self._edited = True
            self._wake.set()

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._signalled)

    def _signalled(self) -> None:
        """The first signal drains the servers, the second ends them."""
        if self._stopping:
            self._fleet.kill()
            self._builds.kill()
        else:
            self._view.note("stopping: requests that were accepted are answered; another Ctrl-C ends it at once")
        self._stopping = True
        self._wake.set()


def _reached(report: ServerReport) -> ServerReport:
    """Whatever answers is reached: there are no endpoints that would have to follow."""
    answering = frozenset(each.model for each in report.models if each.answers)
    return replace(report, takes_requests=report.ready, routes=answering)
