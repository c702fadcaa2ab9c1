"""The gatherer: reads every pool's metrics every few seconds, in one task for each pool."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from argosy.analysis.subjects import AnalysisTargets
from argosy.api import ServingPool
from argosy.api.values.identity import PoolKey
from argosy.autoscaling.explain import own_fault
from argosy.autoscaling.metrics.signals import PoolSignals
from argosy.controller.measuring.logins import Logins
from argosy.controller.measuring.measured import pool_targets
from argosy.controller.ports import Cache
from argosy.controller.resources.store import Store
from argosy.signals.login import Login
from argosy.signals.scraping import Scraper
from argosy.signals.source import SignalSource

log = logging.getLogger(__name__)

INTERVAL_S = 5.0
ROLLOUT_INTERVAL_S = 1.0
"""While a candidate is proven."""
MOST_S = 60.0
SHARE = 20
"""Readings of many servers take at most a part of 1/SHARE of the time, with at most `MOST_S` between two."""

Report = Callable[[PoolKey, PoolSignals], Awaitable[None]]
"""Receives each reading of a pool."""
Observe = Callable[[float, bool], None]
"""Receives how long each reading took, in seconds, and whether a part of it failed."""


@dataclass(frozen=True, slots=True)
class MetricsEndpoint:
    """The source of a pool's metrics: a Prometheus with its login, or the servers themselves where the URL is empty."""

    url: str = ""
    login: Login = field(default_factory=Login)


def open_source(endpoint: MetricsEndpoint) -> SignalSource:
    """Return a new source."""
    if not endpoint.url:
        return Scraper()
    from argosy.signals.prometheus import PrometheusSource  # requests is loaded only where a pool needs it

    return PrometheusSource(endpoint.url, endpoint.login)


class Gatherer:
    """One task for each pool. `report` receives its readings in time order; `analysis` returns what rollouts need."""

    def __init__(
        self,
        store: Store,
        cache: Cache,
        logins: Logins,
        report: Report,
        observe: Observe,
        interval_s: float = INTERVAL_S,
        open_: Callable[[MetricsEndpoint], SignalSource] = open_source,
        analysis: Callable[[PoolKey], AnalysisTargets] = lambda _: AnalysisTargets(),
    ) -> None:
        self._store, self._cache, self._logins, self._report, self._observe = store, cache, logins, report, observe
        self._interval_s, self._open, self._analysis = interval_s, open_, analysis
        self._tasks: dict[PoolKey, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Read metrics until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                for key in self._declared() - self._tasks.keys():
                    self._tasks[key] = tasks.create_task(self._measure(key))
                await asyncio.sleep(self._interval_s)

    def _declared(self) -> set[PoolKey]:
        return {key for key in self._store.pools if self._store.pool(key) is not None}

    async def _measure(self, key: PoolKey) -> None:
        """Read a pool's metrics until it is no longer declared."""
        current = _Current(self._open)
        try:
            while (pool := self._store.pool(key)) is not None:
                began = time.monotonic()
                signals = await self._read(pool, current)
                took = time.monotonic() - began
                self._observe(took, bool(signals.error))
                await self._report(key, signals)
                interval = ROLLOUT_INTERVAL_S if self._analysis(key).under_way else self._interval_s
                await asyncio.sleep(max(interval, min(SHARE * took, MOST_S)) - took)
        finally:
            await current.close()
            del self._tasks[key]

    async def _read(self, pool: ServingPool, current: "_Current") -> PoolSignals:
        """Read a pool's metrics. An internal fault is reported as the error of this reading."""
        try:
            source = await current.of(await self._endpoint(pool))
            members, pods = self._store.members_of(pool.key), self._cache.pool(pool.key).pods
            targets = pool_targets(pool.key, members, pods, self._analysis(pool.key))
            return await source.read(targets, datetime.now(UTC))
        except Exception as error:
            log.exception("pool %s cannot be measured", pool.key)
            return PoolSignals(error=own_fault(error))

    async def _endpoint(self, pool: ServingPool) -> MetricsEndpoint:
        prometheus = pool.spec.monitoring.prometheus
        if prometheus is None:
            return MetricsEndpoint()
        return MetricsEndpoint(prometheus.url, await self._logins.of(pool.namespace, prometheus.secret_name))


class _Current:
    """A pool's current source, replaced when its endpoint changes."""

    def __init__(self, open_: Callable[[MetricsEndpoint], SignalSource]) -> None:
        self._open = open_
        self._endpoint: MetricsEndpoint | None = None
        self._source: SignalSource | None = None

    async def of(self, endpoint: MetricsEndpoint) -> SignalSource:
        if self._source is None or endpoint != self._endpoint:
            await self.close()
            self._source, self._endpoint = self._open(endpoint), endpoint
        return self._source

    async def close(self) -> None:
        if self._source is not None:
            await self._source.close()
            self._source = None
