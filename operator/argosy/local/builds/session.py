"""`argosy build`: what manifests ask to have built, built, and nothing served."""

import asyncio
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from argosy.api.documents import Resource
from argosy.api.inferencemodel import InferenceModel
from argosy.api.servingpool import ServingPool
from argosy.api.values.identity import PoolKey
from argosy.local.view import BuildRow
from argosy.planning.builds.architectures import why_no_architecture
from argosy.planning.builds.engines import EngineFacts
from argosy.planning.builds.observed import ObservedBuild
from argosy.planning.builds.plan import PlannedBuild
from argosy.planning.builds.pool import PoolEngines
from argosy.planning.builds.scheduling import plan_builds
from argosy.planning.facts import Node
from argosy.planning.nodes.pool_nodes import PoolNodes

from .build import LocalBuild
from .compilers import installed_compilers
from .runner import LocalBuilds

ROUND_S = 0.2
"""How often builders are looked at."""
STOPPED = 130
"""The exit code after Ctrl-C, as shells have it."""


class BuildView(Protocol):
    """Somewhere to show builds."""

    def update(self, rows: Sequence[BuildRow]) -> None:
        """How every build is now."""

    def close(self) -> None:
        """Nothing more will come."""


@dataclass(frozen=True, slots=True)
class RequestedBuilds:
    """What is to be built on this machine. `impossible`: models by identity, and why there is nothing to build."""

    planned: Mapping[PoolKey, tuple[PlannedBuild, ...]]
    impossible: Mapping[str, str]


def requested_builds(
    resources: Iterable[Resource], node: Node, known: Mapping[PoolKey, Mapping[str, ObservedBuild]]
) -> RequestedBuilds:
    """Return the builds of the pools' models, each with what is `known` of it. No server takes GPUs here."""
    every = list(resources)
    engines: dict[PoolKey, PoolEngines] = {}
    impossible: dict[str, str] = {}
    for pool in (each for each in every if isinstance(each, ServingPool)):
        models = [each for each in every if isinstance(each, InferenceModel) and each.pool_key == pool.key]
        facts = EngineFacts(PoolNodes.of(pool, (node,)), known.get(pool.key, {}), {}, installed_compilers())
        engines[pool.key] = PoolEngines.of(facts, models, models)
        for each in engines[pool.key].models.values():
            if not each.declared.asked:
                impossible[each.declared.model.identity] = why_no_architecture(facts.nodes, each.declared.model)
    return RequestedBuilds(plan_builds(engines, ()), impossible)


class BuildSession:
    """One `argosy build`, between the reading of its flags and its table."""

    def __init__(self, resources: Sequence[Resource], node: Node, builds: LocalBuilds, view: BuildView) -> None:
        self._resources, self._node, self._builds, self._view = resources, node, builds, view
        self._stopping = asyncio.Event()

    async def run(self) -> bool:
        """Build until everything is over. False where a signal ended it; then nothing it started is left running."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._signalled)
        try:
            return await self._loop()
        finally:
            await self._builds.stop()
            self._view.close()

    @property
    def results(self) -> list[LocalBuild]:
        """Every build, in the order of the models that ask for it."""
        return sorted(self._builds.all(), key=lambda build: build.planned.owners)

    async def _loop(self) -> bool:
        while not self._stopping.is_set():
            now = time.monotonic()
            found = requested_builds(self._resources, self._node, self._builds.observe(now))
            await self._builds.converge(found.planned, now)
            self._view.update(self._builds.rows())
            if all(build.is_over for build in self._builds.all()):
                return True
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), ROUND_S)
        return False

    def _signalled(self) -> None:
        """The first signal ends the builder in order, the second at once."""
        if self._stopping.is_set():
            self._builds.kill()
        self._stopping.set()
