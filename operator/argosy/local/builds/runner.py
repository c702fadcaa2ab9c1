"""Which build runs on this machine: of those that the plan has start one, for each takes all of the CPU that it can."""

import asyncio
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from argosy.api.values.identity import PoolKey
from argosy.local.view import BuildRow
from argosy.planning.builds.observed import ObservedBuild
from argosy.planning.builds.plan import PlannedBuild
from argosy.planning.facts import Node

from .build import LocalBuild, end_left
from .command import PROGRAM
from .rows import row_of

Planned = Mapping[PoolKey, Sequence[PlannedBuild]]
_TURN = "one build runs at a time on this machine, and it is not its turn yet"


class LocalBuilds:
    """Starts, watches and ends builders. Times are seconds of one steady clock."""

    def __init__(self, folder: Path, node: Node, program: tuple[str, ...] = PROGRAM) -> None:
        self._folder, self._node, self._program = folder, node, program
        self._builds: dict[str, LocalBuild] = {}
        self._pools: dict[PoolKey, tuple[str, ...]] = {}
        self._ending: dict[str, asyncio.Task[None]] = {}
        self._swept = False

    @property
    def is_busy(self) -> bool:
        """Whether a builder runs or is to."""
        return bool(self._ending) or any(
            each.is_running or (each.planned.start and not each.is_over) for each in self._builds.values()
        )

    def observe(self, now: float) -> dict[PoolKey, dict[str, ObservedBuild]]:
        """Return what is known of each pool's builds, by name."""
        for name, build in self._builds.items():
            build.look(now)
            if build.has_changed_inputs and name not in self._ending:
                self._end(name, build.begin_anew)
        return {
            pool: {name: _in_turn(self._builds[name]) for name in names if name in self._builds}
            for pool, names in self._pools.items()
        }

    async def converge(self, planned: Planned, now: float) -> None:
        """One step towards the plan: what nobody asks for is ended and removed, the next build starts."""
        await self._sweep(planned)
        self._pools = {pool: tuple(each.name for each in found) for pool, found in planned.items()}
        wanted = _merged(planned)
        for name in self._builds.keys() - wanted.keys() - self._ending.keys():
            build = self._builds.pop(name)
            self._end(name, build.remove)
        for name, each in wanted.items():
            if name in self._builds:
                self._builds[name].planned = each
            elif name not in self._ending:
                self._builds[name] = await asyncio.to_thread(LocalBuild, each, self._folder / name, self._program)
        self._start_next(now)

    def rows(self) -> list[BuildRow]:
        """Return every build that is not over, for people."""
        return [row_of(build) for build in self._builds.values() if not build.is_over]

    def doing(self) -> dict[str, str]:
        """Return what is being built, by the identity of the model that asks for it."""
        running = [build for build in self._builds.values() if build.is_running]
        return {owner: row_of(build).doing for build in running for owner in build.planned.owners}

    def all(self) -> list[LocalBuild]:
        """Return every build, those that are over too."""
        return list(self._builds.values())

    async def stop(self) -> None:
        """End the builder that runs. What it finished stays for another try."""
        running = [build for build in self._builds.values() if build.is_running]
        await asyncio.gather(*self._ending.values(), *(asyncio.to_thread(build.stop) for build in running))

    def kill(self) -> None:
        """End the builder that runs at once."""
        for build in self._builds.values():
            build.kill()

    def _start_next(self, now: float) -> None:
        if self._ending or any(build.is_running for build in self._builds.values()):
            return
        ready = [build for build in self._builds.values() if build.may_start(now)]
        if ready:
            ready[0].start(self._devices(ready[0].planned), now)

    def _devices(self, planned: PlannedBuild) -> tuple[str, ...]:
        uuids = {gpu.index: gpu.uuid for gpu in self._node.gpus}
        return tuple(uuids[gpu] or str(gpu) for gpu in planned.gpus)

    def _end(self, name: str, how: Callable[[], None]) -> None:
        task = asyncio.create_task(asyncio.to_thread(how))
        self._ending[name] = task
        task.add_done_callback(lambda _: self._ending.pop(name, None))

    async def _sweep(self, planned: Planned) -> None:
        """Once: end and remove what an earlier `argosy up` left here and nobody asks for."""
        if self._swept:
            return
        self._swept = True
        self._folder.mkdir(parents=True, exist_ok=True)
        wanted = _merged(planned)
        for folder in self._folder.iterdir():
            if folder.name not in wanted:
                await asyncio.to_thread(_remove_left, folder)


def _remove_left(folder: Path) -> None:
    end_left(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _in_turn(build: LocalBuild) -> ObservedBuild:
    observed = build.observed
    waits = build.planned.start and not (build.is_running or build.is_over or observed.trouble)
    return replace(observed, trouble=_TURN) if waits else observed


def _merged(planned: Planned) -> dict[str, PlannedBuild]:
    """Each build once, whatever pools ask for it; it starts where one of them says so."""
    found: dict[str, PlannedBuild] = {}
    for each in (each for builds in planned.values() for each in builds):
        before = found.get(each.name)
        if before is None or (each.start and not before.start):
            owners = (*(before.owners if before else ()), *each.owners)
            found[each.name] = replace(each, owners=owners)
    return found
