"""Scraping of servers, for pools without a Prometheus."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import httpx

from argosy.autoscaling.metrics.pool_signals import pool_signals
from argosy.autoscaling.metrics.signals import PoolSignals
from argosy.autoscaling.metrics.versions import VersionMarks, version_signals
from argosy.autoscaling.metrics.windows import Exposed, ServerWindow

from .exposition import ExpositionError, samples
from .samples import exposed
from .targets import PoolTargets, ScrapeTarget

TIMEOUT_S = 3.0
MOST_BYTES = 64 << 20
"""More than any server of ours exposes: a thousand models are about 10 MB."""
AT_ONCE = 16
_SMALL = 64 << 10
"""What is parsed at once; more of it in a thread."""
NO_PROMETHEUS = "the pool names no Prometheus that could be asked; set spec.monitoring.prometheus of the pool"


class ScrapeError(Exception):
    """A server could not be measured; the message says why."""


class Scraper:
    """Scrapes one pool's servers, all at once. `clock`: a steady one, in seconds, which no change of the date moves."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._clock, self._timeout_s = clock, timeout_s
        # Servers are reached by their own addresses, never by a proxy.
        self._client = httpx.AsyncClient(
            timeout=timeout_s, trust_env=False, limits=httpx.Limits(max_connections=AT_ONCE)
        )
        self._windows: dict[str, ServerWindow] = {}
        self._marks = VersionMarks()

    async def read(self, pool: PoolTargets, now: datetime) -> PoolSignals:
        slots, began = asyncio.Semaphore(AT_ONCE), self._clock()
        results = await asyncio.gather(*(self._measured(target, slots) for target in pool.targets))
        errors = {
            target.server: result
            for target, result in zip(pool.targets, results, strict=True)
            if isinstance(result, str)
        }
        clock = self._clock()
        now += timedelta(seconds=clock - began)  # both clocks at one moment, so that older readings keep their time

        def understood() -> tuple[dict[str, ServerWindow], PoolSignals, VersionMarks]:
            windows = self._after(pool, results)
            versions, marks = version_signals(pool.serves, windows, pool.analyzed, self._marks)
            return windows, replace(pool_signals(pool.serves, windows, clock, now), versions=versions), marks

        # In a thread: of a thousand models it takes a tenth of a second.
        self._windows, signals, self._marks = await asyncio.to_thread(understood)
        unanswerable = {(query.member, query.name): NO_PROMETHEUS for query in pool.queries}
        return replace(signals, error=_summary(errors, len(pool.targets)), query_errors=unanswerable)

    async def close(self) -> None:
        await self._client.aclose()

    def _after(self, pool: PoolTargets, results: Sequence[Exposed | str]) -> dict[str, ServerWindow]:
        """Return the windows of the pool's servers, with the results of this reading."""
        return {
            target.server: window
            for target, result in zip(pool.targets, results, strict=True)
            if (window := self._window(target, result)) is not None
        }

    def _window(self, target: ScrapeTarget, result: Exposed | str) -> ServerWindow | None:
        before = self._windows.get(target.server)
        return before if isinstance(result, str) else (before or ServerWindow()).after(result)

    async def _measured(self, target: ScrapeTarget, slots: asyncio.Semaphore) -> Exposed | str:
        """Return what a server exposes, or why it cannot be read."""
        if not target.url:
            return "it has no address yet"
        try:
            async with slots, asyncio.timeout(self._timeout_s):
                at = self._clock()
                text = await self._text(target.url)
            return await _parsed(text, at)
        except TimeoutError:
            return f"no answer from {target.url} within {self._timeout_s:g} s"
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return f"{target.url}: {error or type(error).__name__}"
        except (ScrapeError, ExpositionError) as error:
            return f"{target.url}: {error}"

    async def _text(self, url: str) -> str:
        parts: list[bytes] = []
        size = 0
        async with self._client.stream("GET", url) as response:
            if response.status_code != httpx.codes.OK:
                raise ScrapeError(f"answers {response.status_code} {response.reason_phrase}")
            async for part in response.aiter_bytes():
                size += len(part)
                if size > MOST_BYTES:
                    raise ScrapeError(f"answers more than {MOST_BYTES >> 20} MiB")
                parts.append(part)
        return b"".join(parts).decode(errors="replace")


async def _parsed(text: str, at: float) -> Exposed:
    def parse() -> Exposed:
        return exposed(samples(text), at)

    return parse() if len(text) < _SMALL else await asyncio.to_thread(parse)


def _summary(errors: dict[str, str], servers: int) -> str:
    if not errors:
        return ""
    server, why = min(errors.items())
    return f"{len(errors)} of {servers} servers cannot be measured; {server}: {why}"
