"""What of a pool is to be measured, from its Pods and members; how often, and with which Secret."""

import asyncio
import base64
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.operator.controller.bodies import model, pool
from tests.operator.controller.fakes import FakeCache

from argosy.analysis.subjects import AnalysisTargets
from argosy.api.values.identity import Identity, PoolKey
from argosy.autoscaling.metrics.signals import PoolSignals
from argosy.cluster.cache.pods.pod_cache import PodView
from argosy.cluster.cache.pool_view import PoolView
from argosy.cluster.client.errors import ApiError, ForbiddenError, NotFoundError, UnreachableError
from argosy.cluster.client.kinds import Key, Kind
from argosy.controller.measuring.gatherer import Gatherer, MetricsEndpoint, open_source
from argosy.controller.measuring.logins import AGAIN_S, FORGET_S, Logins
from argosy.controller.measuring.measured import pool_targets
from argosy.controller.metrics.metrics import Metrics
from argosy.controller.resources.parsed_body import parsed_body
from argosy.controller.resources.store import Store
from argosy.signals.login import Login
from argosy.signals.scraping import Scraper
from argosy.signals.source import SignalSource
from argosy.signals.targets import PoolTargets, Query, ScrapeTarget

KEY = PoolKey("n/p")
IDENTITY = Identity.of("ServingPool", "n", "p")
NOW = datetime(2030, 1, 1, tzinfo=UTC)


def pod(server: str = "p-0", routes: str = "m", address: str = "10.0.0.1", **other: Any) -> PodView:
    reported = {"ready": True, "server_ready": True, "terminating": False, "created": NOW, **other}
    name = f"{server}-{reported['created']:%S}"
    names = frozenset(filter(None, [routes]))
    return PodView(
        name,
        name,
        server,
        reported["ready"],
        reported["server_ready"],
        reported["terminating"],
        names,
        True,
        "",
        reported["created"],
        address,
    )


def declared(**spec: Any) -> Store:
    """Return a store of a pool with a model that clients call M-7."""
    store = Store()
    for body in (pool(**spec), model(modelName="M-7")):
        store.put(parsed_body(body))
    return store


def targets(*pods: PodView) -> tuple[ScrapeTarget, ...]:
    return pool_targets(KEY, declared().of_pool(KEY).members, pods).targets


def test_a_server_is_queried_at_its_address_for_what_it_is_routed_for() -> None:
    assert targets(pod()) == (ScrapeTarget("p-0", "http://10.0.0.1:8002/metrics", "p-0-00", {"M-7": "m"}),)
    assert targets(pod(address="fd00::1"))[0].url == "http://[fd00::1]:8002/metrics"
    assert targets(pod(address=""))[0].url == ""


def test_a_server_that_is_routed_to_is_not_left_out_because_it_fails() -> None:
    assert [target.server for target in targets(pod(server_ready=False))] == ["p-0"]
    assert targets(pod(routes="", server_ready=False)) == ()
    assert [target.serves for target in targets(pod(routes=""))] == [{}]
    assert targets(pod(terminating=True)) == ()


def test_of_two_pods_of_a_server_the_newer_is_queried() -> None:
    newer = pod(created=NOW + timedelta(seconds=1), address="10.0.0.2")
    assert [target.pod for target in targets(newer, pod())] == ["p-0-01"]


def test_queries_are_those_that_members_name() -> None:
    store = declared()
    query = {"name": "depth", "query": 'x{model="$(model)"}', "target": 5}
    store.put(parsed_body(model("other", scaling={"targets": {"queries": [query]}})))
    requested = pool_targets(KEY, store.of_pool(KEY).members, ())
    assert requested.queries == (Query("other", "depth", 'x{model="$(model)"}'),)
    assert requested.served_names == {"m": "M-7", "other": "other"}


class Secrets:
    """Returns the given Secrets or errors one after another, and counts requests."""

    def __init__(self, *answers: dict[str, Any] | ApiError) -> None:
        self.answers, self.requests = list(answers), 0

    async def get(self, kind: Kind, key: Key) -> dict[str, Any]:
        assert (kind.plural, key[0], key[1].partition("-")[0]) == ("secrets", "n", "login")
        self.requests += 1
        answer = self.answers.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer


def secret(token: str) -> dict[str, Any]:
    return {"data": {"token": base64.b64encode(token.encode()).decode()}}


async def test_a_secret_is_read_again_after_a_while() -> None:
    now = [0.0]
    secrets = Secrets(secret("one"), secret("two"))
    logins = Logins(secrets.get, lambda: now[0])
    assert (await logins.of("n", "login")).token == "one"
    now[0] = AGAIN_S - 1
    assert (await logins.of("n", "login")).token == "one"
    now[0] = AGAIN_S
    assert (await logins.of("n", "login")).token == "two"
    assert await logins.of("n", None) == Login()


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (ForbiddenError(403, "Forbidden", "no"), "add 'login' to the chart's value rbac.secretNames"),
        (NotFoundError(404, "NotFound", "no"), "spec.monitoring.prometheus.secretName names, is not there"),
        (UnreachableError(0, "Unreachable", "it is away"), "cannot be read: it is away"),
    ],
)
async def test_a_secret_that_cannot_be_read_says_so_and_is_tried_again(error: ApiError, says: str) -> None:
    logins = Logins(Secrets(error, secret("one")).get, lambda: 0.0)
    assert says in (await logins.of("n", "login")).error
    assert (await logins.of("n", "login")).token == "one"


async def test_while_the_api_server_is_away_the_login_stays() -> None:
    now = [0.0]
    logins = Logins(Secrets(secret("one"), UnreachableError(0, "Unreachable", "")).get, lambda: now[0])
    await logins.of("n", "login")
    now[0] = AGAIN_S
    assert (await logins.of("n", "login")).token == "one"


async def test_logins_that_are_not_used_are_forgotten() -> None:
    now = [0.0]
    logins = Logins(Secrets(*[secret("one")] * 20).get, lambda: now[0])
    for number in range(10):
        await logins.of("n", f"login-{number}")
    now[0] = FORGET_S + 1
    await logins.of("n", "login-0")
    assert len(logins) == 1


READ = ("", "")


class FakeSource:
    """Returns its endpoint and targets as the error of the query READ, or raises while `broken`."""

    def __init__(self, endpoint: MetricsEndpoint) -> None:
        self.endpoint, self.closed, self.broken = endpoint, False, False
        self.analyzed: Mapping[str, float] = {}

    async def read(self, pool: PoolTargets, now: datetime) -> PoolSignals:
        if self.broken:
            raise RuntimeError("broken")
        self.analyzed = pool.analyzed
        read = f"{self.endpoint.url} {self.endpoint.login.token} {[target.server for target in pool.targets]}"
        return PoolSignals(query_errors={READ: read})

    async def close(self) -> None:
        self.closed = True


class Readings:
    """A running gatherer, and what it reported."""

    def __init__(self, store: Store, *secrets: dict[str, Any], analysis: AnalysisTargets | None = None) -> None:
        self.sources: list[FakeSource] = []
        self.reported: list[PoolSignals] = []
        cache = FakeCache(views={KEY: PoolView(pods=(pod(),))})
        self.metrics = Metrics()
        logins = Logins(Secrets(*secrets).get)
        targets, interval_s = analysis or AnalysisTargets(), 0.01 if analysis is None else 3600.0
        self.gatherer = Gatherer(
            store, cache, logins, self._report, self.metrics.measured, interval_s, self._open, lambda _: targets
        )

    def _open(self, endpoint: MetricsEndpoint) -> SignalSource:
        self.sources.append(FakeSource(endpoint))
        return self.sources[-1]

    async def _report(self, key: PoolKey, signals: PoolSignals) -> None:
        assert key == KEY
        self.reported.append(signals)

    async def until(self, so: Callable[[], bool]) -> None:
        """Run the gatherer until the condition is true."""
        running = asyncio.create_task(self.gatherer.run())
        try:
            async with asyncio.timeout(30):
                while True:
                    if so():
                        return
                    await asyncio.sleep(0)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def test_a_pool_is_measured_again_and_again() -> None:
    readings = Readings(declared())
    await readings.until(lambda: len(readings.reported) >= 3)
    assert readings.reported[0] == PoolSignals(query_errors={READ: "  ['p-0']"})
    assert len(readings.sources) == 1
    assert readings.sources[0].closed
    assert b'argosy_signal_readings_total{result="done"}' in readings.metrics.text()


async def test_a_pool_is_read_for_the_rollouts_that_are_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the interval of a rollout in place of the usual one, which lasts longer than the test."""
    monkeypatch.setattr("argosy.controller.measuring.gatherer.ROLLOUT_INTERVAL_S", 0.001)
    readings = Readings(declared(), analysis=AnalysisTargets({"m": 30.0}, under_way=True))
    await readings.until(lambda: len(readings.reported) >= 3)
    assert readings.sources[0].analyzed == {"m": 30.0}


async def test_another_prometheus_is_another_source() -> None:
    store = declared()
    readings = Readings(store, secret("TOKEN"))

    def changed() -> bool:
        if len(readings.reported) == 2:
            prometheus = {"url": "http://prometheus:9090", "secretName": "login"}
            store.put(parsed_body(pool(monitoring={"prometheus": prometheus}) | _generation(2)))
        return readings.reported[-1:] != [] and readings.reported[-1].query_errors[READ].startswith("http")

    await readings.until(changed)
    assert readings.reported[-1].query_errors[READ] == "http://prometheus:9090 TOKEN ['p-0']"
    assert [source.closed for source in readings.sources] == [True, True]


def _generation(number: int) -> dict[str, Any]:
    return {"metadata": {**pool()["metadata"], "generation": number}}


async def test_a_fault_of_ours_is_reported_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    readings = Readings(declared())

    def broke() -> bool:
        for source in readings.sources:
            source.broken = len(readings.reported) < 3
        return len(readings.reported) >= 4

    await readings.until(broke)
    assert any("please report it: RuntimeError: broken" in signals.error for signals in readings.reported)
    assert readings.reported[-1].error == ""


async def test_a_pool_that_is_gone_is_measured_no_more() -> None:
    store = declared()
    readings = Readings(store)

    def ended() -> bool:
        if readings.reported:
            store.end(IDENTITY, "uid-p")
        return bool(readings.sources) and readings.sources[0].closed

    await readings.until(ended)
    assert len(readings.sources) == 1


async def test_without_a_prometheus_servers_are_scraped() -> None:
    source = open_source(MetricsEndpoint())
    assert isinstance(source, Scraper)
    await source.close()


@pytest.mark.parametrize("url", ["http://[", "http://:x", "http://\u00e9..\u00e9", "https://a:99999999"])
async def test_a_url_that_leads_nowhere_is_an_error(url: str) -> None:
    source = open_source(MetricsEndpoint(url))
    targets = PoolTargets(KEY, (ScrapeTarget("p-0", pod="p-0-00"),))
    result = await source.read(targets, NOW)
    await source.close()
    assert result.error.startswith(f"{url} ")
