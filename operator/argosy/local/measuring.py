"""Reads the metrics of this machine's servers, as the operator does without a Prometheus.

Servers are scraped here even where the pool names a Prometheus, since one knows servers by their Pods. Only the queries
of its members are sent to it.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from argosy.analysis.subjects import AnalysisTargets
from argosy.api import Member, Resource, ServingPool
from argosy.api.values.identity import PoolKey
from argosy.autoscaling.explain import own_fault
from argosy.autoscaling.metrics.signals import PoolSignals
from argosy.planning.facts import ServerReport
from argosy.planning.variants import expanded
from argosy.signals.queried import QueriedScraper
from argosy.signals.scraping import Scraper
from argosy.signals.source import SignalSource
from argosy.signals.targets import PoolTargets, ScrapeTarget, measured_pool

INTERVAL_S = 2.0
"""Seconds between two readings: short, since there are few servers."""
ROLLOUT_INTERVAL_S = 0.5
"""Less than between two rounds, so that each reads while a candidate is proven."""
_NONE: Mapping[PoolKey, str] = {}


def pool_targets(
    key: PoolKey,
    resources: Iterable[Resource],
    reports: Iterable[ServerReport],
    urls: Mapping[str, str],
    analysis: AnalysisTargets | None = None,
) -> PoolTargets:
    """Return a pool's ready servers as targets. `urls` are those of their metrics, by server name; `analysis`: what its
    rollouts need.
    """
    members = [member for member in expanded(resources) if isinstance(member, Member) and member.pool_key == key]
    answering = (_target(report, members, urls.get(report.name, "")) for report in reports if report.ready)
    return measured_pool(key, members, answering, analysis)


def _target(report: ServerReport, members: Iterable[Member], url: str) -> ScrapeTarget:
    answering = {model.model for model in report.models if model.answers}
    serves = {member.served_name: member.name for member in members if member.name in answering}
    return ScrapeTarget(report.name, url, serves=serves)


def open_source(url: str) -> SignalSource:
    """Return a new source of one pool. `url`: of the Prometheus that its queries are sent to; empty without one."""
    if not url:
        return Scraper()
    from argosy.signals.prometheus import PrometheusSource  # requests is loaded only where a pool needs it

    return QueriedScraper(Scraper(), PrometheusSource(url))


def prometheus_urls(resources: Iterable[Resource]) -> dict[PoolKey, str]:
    """Return the URLs of the Prometheus that pools name."""
    pools = (resource for resource in resources if isinstance(resource, ServingPool))
    named = ((pool.key, pool.spec.monitoring.prometheus) for pool in pools)
    return {key: prometheus.url for key, prometheus in named if prometheus is not None}


class Measuring:
    """Reads all pools, each by a source of its own."""

    def __init__(self, open_: Callable[[str], SignalSource] = open_source) -> None:
        self._open = open_
        self._sources: dict[PoolKey, tuple[str, SignalSource]] = {}
        self._read_at: float | None = None
        self.latest: Mapping[PoolKey, PoolSignals] = {}

    async def read(
        self, pools: Sequence[PoolTargets], steady: float, now: datetime, prometheus: Mapping[PoolKey, str] = _NONE
    ) -> bool:
        """Read the pools if it is time to, by `steady`, in seconds of a monotonic clock. Return whether it was.

        `prometheus`: the URLs that queries are sent to.
        """
        interval = ROLLOUT_INTERVAL_S if any(pool.under_way for pool in pools) else INTERVAL_S
        if self._read_at is not None and steady - self._read_at < interval:
            return False
        self._read_at = steady
        urls = {pool.pool: prometheus.get(pool.pool, "") for pool in pools}
        for key, (url, source) in list(self._sources.items()):
            if urls.get(key) != url:
                del self._sources[key]
                await source.close()
        for key, url in urls.items():
            if key not in self._sources:
                self._sources[key] = url, self._open(url)
        readings = await asyncio.gather(*(self._measured(pool, now) for pool in pools))
        self.latest = {pool.pool: signals for pool, signals in zip(pools, readings, strict=True)}
        return True

    async def _measured(self, pool: PoolTargets, now: datetime) -> PoolSignals:
        """Return a pool's signals. An error of Argosy's own is the error of this reading, and of no other pool."""
        try:
            _, source = self._sources[pool.pool]
            return await source.read(pool, now)
        except Exception as error:
            return PoolSignals(error=own_fault(error))

    async def close(self) -> None:
        """Close all connections."""
        for _, source in self._sources.values():
            await source.close()
        self._sources.clear()
