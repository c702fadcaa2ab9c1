"""What the servers of this machine measure, read as an operator without a Prometheus reads it."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from argosy.api import Ensemble, InferenceModel, Resource
from argosy.api.values.identity import PoolKey
from argosy.autoscaling.metrics.signals import PoolSignals
from argosy.autoscaling.metrics.targets import PoolTargets, Target, measured_pool
from argosy.planning.facts import ServerReport
from argosy.signals.scraping import Scraper
from argosy.signals.source import SignalSource

Member = InferenceModel | Ensemble
INTERVAL_S = 2.0
"""How often they are read: there are few, and somebody watches."""


def pool_targets(
    key: PoolKey, resources: Iterable[Resource], reports: Iterable[ServerReport], urls: Mapping[str, str]
) -> PoolTargets:
    """Return a pool's servers that answer. `urls`: where each tells its metrics, by its name."""
    members = [each for each in resources if isinstance(each, Member) and each.pool_key == key]
    answering = (_target(report, members, urls.get(report.name, "")) for report in reports if report.ready)
    return measured_pool(key, members, answering)


def _target(report: ServerReport, members: Iterable[Member], url: str) -> Target:
    answering = {each.model for each in report.models if each.answers}
    return Target(report.name, url, serves={each.served_name: each.name for each in members if each.name in answering})


class Measuring:
    """Reads all pools, each by a source of its own. `now` is of a steady clock, in seconds."""

    def __init__(self, open_: Callable[[], SignalSource] = Scraper) -> None:
        self._open = open_
        self._sources: dict[PoolKey, SignalSource] = {}
        self._read_at: float | None = None
        self.latest: Mapping[PoolKey, PoolSignals] = {}

    async def read(self, pools: Sequence[PoolTargets], steady: float, now: datetime) -> bool:
        """Read them if it is time to. Whether it was."""
        if self._read_at is not None and steady - self._read_at < INTERVAL_S:
            return False
        self._read_at = steady
        for gone in self._sources.keys() - {pool.pool for pool in pools}:
            await self._sources.pop(gone).close()
        for pool in pools:
            if pool.pool not in self._sources:
                self._sources[pool.pool] = self._open()
        found = await asyncio.gather(*(self._sources[pool.pool].read(pool, now) for pool in pools))
        self.latest = {pool.pool: signals for pool, signals in zip(pools, found, strict=True)}
        return True

    async def close(self) -> None:
        """Let connections go."""
        for source in self._sources.values():
            await source.close()
        self._sources.clear()
