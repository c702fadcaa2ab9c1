"""`argosy build`: build the engines that manifests request, and serve nothing."""

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
from argosy.local.views.rows import BuildRow
from argosy.planning.builds.architectures import why_no_architecture
from argosy.planning.builds.build import ObservedBuild, ScheduledBuild
from argosy.planning.builds.engines import EngineFacts
from argosy.planning.builds.images import BuildImages
from argosy.planning.builds.pool import PoolEngines
from argosy.planning.builds.scheduling import schedule_builds
from argosy.planning.facts import Node
from argosy.planning.nodes.pool_nodes import PoolNodes
from argosy.planning.variants import declared_identity, expanded

from .build import LocalBuild
from .command import installed_compilers
from .runner import LocalBuilds

ROUND_S = 0.2
"""The period at which builders are observed."""
STOPPED = 130
"""The exit status after Ctrl-C, by the convention of shells."""


class BuildView(Protocol):
    """Shows builds."""

    def update(self, rows: Sequence[BuildRow]) -> None:
        """Show every build."""

    def close(self) -> None:
        """Stop showing builds."""


@dataclass(frozen=True, slots=True)
class RequestedBuilds:
    """The builds for this machine, and, by model identity, why a model has none."""

    planned: Mapping[PoolKey, tuple[ScheduledBuild, ...]]
    impossible: Mapping[str, str]


def requested_builds(
    resources: Iterable[Resource], node: Node, observed: Mapping[PoolKey, Mapping[str, ObservedBuild]]
) -> RequestedBuilds:
    """Return the builds of all pools' models, given the `observed` ones. No server takes GPUs here."""
    resources = list(expanded(resources))
    engines: dict[PoolKey, PoolEngines] = {}
    impossible: dict[str, str] = {}
    for pool in (resource for resource in resources if isinstance(resource, ServingPool)):
        models = [model for model in resources if isinstance(model, InferenceModel) and model.pool_key == pool.key]
        facts = EngineFacts(
            PoolNodes.of(pool, (node,)), observed.get(pool.key, {}), {}, BuildImages(installed_compilers())
        )
        engines[pool.key] = PoolEngines.of(facts, models, models)
        for model in engines[pool.key].models.values():
            if not model.declared.requested:
                impossible[declared_identity(model.declared.model)] = why_no_architecture(
                    facts.nodes, model.declared.model
                )
    return RequestedBuilds(schedule_builds(engines, ()), impossible)


class BuildSession:
    """Runs the builds of `argosy build`."""

    def __init__(self, resources: Sequence[Resource], node: Node, builds: LocalBuilds, view: BuildView) -> None:
        self._resources, self._node, self._builds, self._view = resources, node, builds, view
        self._stopping = asyncio.Event()

    async def run(self) -> bool:
        """Build until everything is finished. Return False where a signal stopped it; builders are stopped then."""
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
        """Every build, in the order of its models."""
        return sorted(self._builds.all(), key=lambda build: build.planned.owners)

    async def _loop(self) -> bool:
        while not self._stopping.is_set():
            now = time.monotonic()
            requested = requested_builds(self._resources, self._node, self._builds.observe(now))
            await self._builds.converge(requested.planned, now)
            self._view.update(self._builds.rows())
            if all(build.is_over for build in self._builds.all()):
                return True
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), ROUND_S)
        return False

    def _signalled(self) -> None:
        """Stop the builder at the first signal, and kill it at the second."""
        if self._stopping.is_set():
            self._builds.kill()
        self._stopping.set()
