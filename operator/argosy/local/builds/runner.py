"""Runs one of the builds that the plan starts at a time, since a build takes all of the CPU."""

import asyncio
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from argosy.api.values.identity import PoolKey
from argosy.local.views.rows import BuildRow
from argosy.planning.builds.build import ObservedBuild, ScheduledBuild
from argosy.planning.facts import Node

from .build import LocalBuild, end_left
from .command import PROGRAM
from .rows import row_of

Planned = Mapping[PoolKey, Sequence[ScheduledBuild]]
_TURN = "one build runs at a time on this machine, and it is not its turn yet"


class LocalBuilds:
    """Starts, watches and stops builders. Times are seconds of a monotonic clock."""

    def __init__(self, folder: Path, node: Node, program: tuple[str, ...] = PROGRAM) -> None:
        self._folder, self._node, self._program = folder, node, program
        self._builds: dict[str, LocalBuild] = {}
        self._pools: dict[PoolKey, tuple[str, ...]] = {}
        self._ending: dict[str, asyncio.Task[None]] = {}
        self._swept = False

    @property
    def is_busy(self) -> bool:
        """Whether a builder runs or waits to be started."""
        return bool(self._ending) or any(
            build.is_running or (build.planned.start and not build.is_over) for build in self._builds.values()
        )

    def observe(self, now: float) -> dict[PoolKey, dict[str, ObservedBuild]]:
        """Return the state of each pool's builds by name, and restart those whose input files changed."""
        for name, build in self._builds.items():
            build.look(now)
            if build.has_changed_inputs and name not in self._ending:
                self._end(name, build.restart)
        return {
            pool: {name: _in_turn(self._builds[name]) for name in names if name in self._builds}
            for pool, names in self._pools.items()
        }

    async def converge(self, planned: Planned, now: float) -> None:
        """Stop and remove builds that are not planned any more, and start the next one."""
        await self._sweep(planned)
        self._pools = {pool: tuple(build.name for build in builds) for pool, builds in planned.items()}
        desired = _merged(planned)
        for name in self._builds.keys() - desired.keys() - self._ending.keys():
            build = self._builds.pop(name)
            self._end(name, build.remove)
        for name, build_plan in desired.items():
            if name in self._builds:
                self._builds[name].planned = build_plan
            elif name not in self._ending:
                folder = self._folder / name
                self._builds[name] = await asyncio.to_thread(LocalBuild, build_plan, folder, self._program)
        self._start_next(now)

    def rows(self) -> list[BuildRow]:
        """Return a row for each unfinished build."""
        return [row_of(build) for build in self._builds.values() if not build.is_over]

    def doing(self) -> dict[str, str]:
        """Return the progress of running builds by the identity of their models."""
        running = [build for build in self._builds.values() if build.is_running]
        return {owner: row_of(build).doing for build in running for owner in build.planned.owners}

    def all(self) -> list[LocalBuild]:
        """Return every build, finished ones included."""
        return list(self._builds.values())

    async def stop(self) -> None:
        """Stop the running builder. Its finished phases stay for another try."""
        running = [build for build in self._builds.values() if build.is_running]
        await asyncio.gather(*self._ending.values(), *(asyncio.to_thread(build.stop) for build in running))

    def kill(self) -> None:
        """Kill the running builder."""
        for build in self._builds.values():
            build.kill()

    def _start_next(self, now: float) -> None:
        if self._ending or any(build.is_running for build in self._builds.values()):
            return
        ready = [build for build in self._builds.values() if build.may_start(now)]
        if ready:
            ready[0].start(self._devices(ready[0].planned), now)

    def _devices(self, planned: ScheduledBuild) -> tuple[str, ...]:
        uuids = {gpu.index: gpu.uuid for gpu in self._node.gpus}
        return tuple(uuids[gpu] or str(gpu) for gpu in planned.gpus)

    def _end(self, name: str, how: Callable[[], None]) -> None:
        task = asyncio.create_task(asyncio.to_thread(how))
        self._ending[name] = task
        task.add_done_callback(lambda _: self._ending.pop(name, None))

    async def _sweep(self, planned: Planned) -> None:
        """Stop and remove unplanned builds that an earlier `argosy up` left. Does so once."""
        if self._swept:
            return
        self._swept = True
        self._folder.mkdir(parents=True, exist_ok=True)
        desired = _merged(planned)
        for folder in self._folder.iterdir():
            if folder.name not in desired:
                await asyncio.to_thread(_remove_left, folder)


def _remove_left(folder: Path) -> None:
    end_left(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _in_turn(build: LocalBuild) -> ObservedBuild:
    observed = build.observed
    waits = build.planned.start and not (build.is_running or build.is_over or observed.error)
    return replace(observed, error=_TURN) if waits else observed


def _merged(planned: Planned) -> dict[str, ScheduledBuild]:
    """Return the builds of all pools by name. A build of several pools starts if one of them starts it."""
    merged: dict[str, ScheduledBuild] = {}
    for build in (build for builds in planned.values() for build in builds):
        before = merged.get(build.name)
        if before is None or (build.start and not before.start):
            owners = (*(before.owners if before else ()), *build.owners)
            merged[build.name] = replace(build, owners=owners)
    return merged
