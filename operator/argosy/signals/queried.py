"""Scraping of servers together with queries of a Prometheus, which need not know these servers."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from argosy.autoscaling.metrics.signals import PoolSignals

from .source import SignalSource
from .targets import PoolTargets, Query

_Results = Mapping[Query, float | str]
"""Values, and why others have none."""


class QueriedScraper:
    """Scrapes one pool's servers by `scraper`, and sends its queries by `prometheus`.

    A reading does not wait for queries: it has the results of those that were answered last. So a Prometheus that is
    slow delays nothing. A query with other variables has no result before it was sent itself, nor has one that the
    reading before did not have: what it said of an earlier rollout says nothing of this one.
    """

    def __init__(self, scraper: SignalSource, prometheus: SignalSource) -> None:
        self._scraper, self._prometheus = scraper, prometheus
        self._running: asyncio.Task[_Results] | None = None
        self._results: _Results = {}
        self._requested: frozenset[Query] = frozenset()

    async def read(self, pool: PoolTargets, now: datetime) -> PoolSignals:
        self._follow(pool)
        self._send(pool, now)
        signals = await self._scraper.read(replace(pool, queries=()), now)
        self._collect()
        named = {(query.member, query.name): self._results.get(query) for query in pool.queries}
        return replace(
            signals,
            queries={key: result for key, result in named.items() if isinstance(result, float)},
            query_errors={key: result for key, result in named.items() if isinstance(result, str)},
        )

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        await asyncio.gather(self._scraper.close(), self._prometheus.close())

    def _follow(self, pool: PoolTargets) -> None:
        """Drop the results of queries that are no longer read."""
        self._collect()
        requested = frozenset(pool.queries)
        both = requested & self._requested
        self._results = {query: result for query, result in self._results.items() if query in both}
        self._requested = requested

    def _send(self, pool: PoolTargets, now: datetime) -> None:
        """Send the queries, unless earlier ones are under way."""
        if pool.queries and self._running is None:
            self._running = asyncio.create_task(self._answered(pool, now))

    def _collect(self) -> None:
        """Take the results, once there are some."""
        if self._running is not None and self._running.done():
            running, self._running = self._running, None
            self._results = running.result()

    async def _answered(self, pool: PoolTargets, now: datetime) -> _Results:
        signals = await self._prometheus.read(replace(pool, targets=()), now)
        results: dict[Query, float | str] = {}
        for query in pool.queries:
            key = query.member, query.name
            if key in signals.queries:
                results[query] = signals.queries[key]
            elif key in signals.query_errors:
                results[query] = signals.query_errors[key]
        return results
