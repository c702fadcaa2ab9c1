"""Readings of a pool's servers from a Prometheus that scrapes them.

Queries are for samples, not for rates: the arithmetic is that of servers that are scraped directly
(`autoscaling/metrics`), most samples are transferred once, and an operator that starts has the last minute.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import inf

from argosy.autoscaling.metrics.pool_signals import pool_signals
from argosy.autoscaling.metrics.signals import PoolSignals
from argosy.autoscaling.metrics.versions import VersionMarks, version_signals
from argosy.autoscaling.metrics.windows import READING_STALE_S, Exposed, ServerWindow

from .connection import Ask, PrometheusConnection, PrometheusError
from .login import Login
from .promql import ANY_QUERY, AnswerError, batches, filled_in, newest_query, only_value, readings, series_query
from .targets import PoolTargets

TIMEOUT_S = 5
"""For the answer to one question."""
ALL_S = 15.0
"""For all of one reading."""
FIRST_S = 65.0
"""How far back the first question about a server reaches, and any other: two scrapes of a usual Prometheus."""
SLACK_S = 2.0
"""How much further back than the newest that is known a question reaches."""
PODS_AT_ONCE = 10
"""An answer has all samples of these Pods, and a question is part of a URL, which may not become long."""

_YEAR_10000 = 253_402_300_800.0
"""The first second since 1970 that is no date."""

QueryKey = tuple[str, str]


@dataclass(slots=True)
class _Answers:
    """What was answered, Pod by Pod and query by query; `error` is why not all of it."""

    exposed: dict[str, list[Exposed]] = field(default_factory=dict)
    values: dict[QueryKey, float] = field(default_factory=dict)
    wrong: dict[QueryKey, str] = field(default_factory=dict)
    error: str = ""


class PrometheusSource:
    """One pool's servers, as a Prometheus knows them. Its clock is that of its samples: seconds since 1970."""

    def __init__(self, url: str, login: Login | None = None, timeout_s: int = TIMEOUT_S, all_s: float = ALL_S) -> None:
        self._url, self._login, self._all_s = url, login or Login(), all_s
        self._connection = PrometheusConnection(url, self._login, timeout_s)
        self._windows: dict[str, ServerWindow] = {}
        self._marks = VersionMarks()
        self._answered_at: datetime | None = None
        self._running: asyncio.Future[_Answers] | None = None

    async def read(self, pool: PoolTargets, now: datetime) -> PoolSignals:
        answers = await self._answers(pool, now)
        servers = {target.pod: target.server for target in pool.targets}
        retained = {server: self._windows[server] for server in servers.values() if server in self._windows}
        came = {servers[pod]: exposed for pod, exposed in answers.exposed.items() if pod in servers}
        clock = now.timestamp()

        def understood() -> tuple[dict[str, ServerWindow], PoolSignals, VersionMarks]:
            windows = extended(retained, came)
            versions, marks = version_signals(pool.serves, windows, pool.analyzed, self._marks)
            return windows, replace(pool_signals(pool.serves, windows, clock, now), versions=versions), marks

        # In a thread, as of a thousand models it takes a tenth of a second.
        self._windows, signals, self._marks = await asyncio.to_thread(understood)
        error = answers.error or _unmeasured(pool, self._windows, clock)
        unasked = {(query.member, query.name): error for query in pool.queries}
        wrong = {key: why for key, why in {**unasked, **answers.wrong}.items() if key not in answers.values}
        return replace(signals, queries=answers.values, query_errors=wrong, error=error)

    async def close(self) -> None:
        self._connection.close()

    async def _answers(self, pool: PoolTargets, now: datetime) -> _Answers:
        """Return the answers that come in time; a query that is under way is not sent a second time."""
        if self._login.error:
            return _Answers(error=self._login.error)
        if self._running is None or self._running.done():
            newest = {t.pod: self._windows[t.server].latest.at for t in pool.targets if t.server in self._windows}
            questions = list(self._questions(pool, newest, now))
            nothing = all(now.timestamp() - at > READING_STALE_S for at in newest.values())
            self._running = self._connection.submit(lambda ask: _send(ask, pool, questions, nothing))
        done, _ = await asyncio.wait({self._running}, timeout=self._all_s)
        if not done:
            return _Answers(error=f"{self._url} has not answered all questions within {self._all_s:g} s")
        answers, self._running = self._running.result(), None
        if not answers.error:
            self._answered_at = now
        return answers

    def _questions(self, pool: PoolTargets, newest: Mapping[str, float], now: datetime) -> Iterator[str]:
        """Yield queries for the samples of all Pods since the newest known one of each, or since the last answer."""
        pods = sorted(target.pod for target in pool.targets if target.pod)
        since_answer = FIRST_S if self._answered_at is None else (now - self._answered_at).total_seconds()
        for some in batches([pod for pod in pods if pod in newest], PODS_AT_ONCE):
            oldest = now.timestamp() - min(newest[pod] for pod in some)
            yield series_query(pool.pool.namespace, some, min(FIRST_S, max(oldest, since_answer, 0.0) + SLACK_S))
        for some in batches([pod for pod in pods if pod not in newest], PODS_AT_ONCE):
            yield series_query(pool.pool.namespace, some, FIRST_S)


def _send(ask: Ask, pool: PoolTargets, questions: Sequence[str], nothing_fresh: bool) -> _Answers:
    """Send all queries, one after the other, until one is not answered."""
    answers = _Answers()
    try:
        for question in questions:
            answers.exposed |= readings(_series(ask(question)))
        if questions and nothing_fresh and not answers.exposed:
            answers.error = _why_nothing(ask, pool.pool.namespace)
        _ask_queries(ask, pool, answers)
    except (PrometheusError, AnswerError) as error:
        answers.error = str(error)
    return answers


def _series(answer: object) -> Sequence[Mapping[str, object]]:
    if not isinstance(answer, list):
        raise AnswerError("what it answers is no range of samples")
    return answer


def _ask_queries(ask: Ask, pool: PoolTargets, answers: _Answers) -> None:
    """Send each text once, however many members name it."""
    results: dict[str, float | str] = {}
    for query in pool.queries:
        text = filled_in(query, pool)
        if text not in results:
            results[text] = _value(ask, text)
        result = results[text]
        if isinstance(result, str):
            answers.wrong[query.member, query.name] = result
        else:
            answers.values[query.member, query.name] = result


def _value(ask: Ask, text: str) -> float | str:
    """Return the query's value, or why it has none. Raises PrometheusError where no other would be answered either."""
    try:
        return only_value(ask(text))
    except AnswerError as error:
        return str(error)
    except PrometheusError as error:
        if not error.reachable:
            raise
        return str(error)


def _why_nothing(ask: Ask, namespace: str) -> str:
    """Return why Prometheus has nothing of the pool's Pods: whether it scrapes others, or did so before."""
    missing = f"it has nothing of the pool's Pods (labels namespace={namespace!r} and pod) in the last minutes"
    try:
        newest = only_value(ask(newest_query(namespace)))
    except AnswerError:
        newest = 0.0
    if 0 < newest < _YEAR_10000:
        return f"{missing}; the newest of the namespace is of {datetime.fromtimestamp(newest, UTC):%H:%M:%S} UTC"
    try:
        models = int(only_value(ask(ANY_QUERY)))
    except AnswerError:
        return f"{missing}, nor of any other server: let it scrape their port 8002, as a PodMonitor does"
    return f"{missing}, but of {models} models with other labels; let it set namespace and pod, as a PodMonitor does"


def extended(windows: Mapping[str, ServerWindow], exposed: Mapping[str, Sequence[Exposed]]) -> dict[str, ServerWindow]:
    """Add the readings, oldest first; Prometheus's clock may have been set back, so the newest counts.

    All that came since the question before are in the window, so that none is trimmed before it counts.
    """
    updated = dict(windows)
    for server, readings_ in exposed.items():
        window = windows.get(server, ServerWindow())
        newest = window.latest.at if window.readings else inf
        for reading in readings_:
            window = window.after(reading, newest)
        if window.readings:
            updated[server] = window
    return updated


def _unmeasured(pool: PoolTargets, windows: Mapping[str, ServerWindow], clock: float) -> str:
    missing = [t for t in pool.targets if t.server not in windows or not windows[t.server].is_fresh(clock)]
    if not missing:
        return ""
    first = missing[0]
    if first.server not in windows:
        return f"{len(missing)} of {len(pool.targets)} servers are not known to it, {first.server} (Pod {first.pod})"
    age = clock - windows[first.server].latest.at
    age_text = f"{age:.0f} s old" if age > 0 else f"{-age:.0f} s in the future; do the clocks agree?"
    return f"of {len(missing)} of {len(pool.targets)} servers the newest values are {age_text} ({first.server})"
