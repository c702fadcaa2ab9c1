"""Prometheus: the real one for what it knows, and servers that misbehave for what may come instead."""

import asyncio
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest
from e2e.cluster import ClusterUnavailableError
from e2e.cluster.waiting import wait_for
from e2e.starting import give_up
from tests.peers.fixtures import StartServer, argosy_server
from tests.peers.prometheus import Prometheus, Scraped
from tests.peers.server import Server

from argosy.api.values.identity import PoolKey
from argosy.autoscaling.metrics.signals import PoolSignals, Signals
from argosy.autoscaling.metrics.version_counts import VersionSignals
from argosy.signals.login import Login
from argosy.signals.prometheus import PrometheusSource
from argosy.signals.scraping import Scraper
from argosy.signals.source import SignalSource
from argosy.signals.targets import PoolTargets, Query, ScrapeTarget

__all__ = ["argosy_server"]

MODELS = Path(__file__).resolve().parents[2] / "models"
POD = "chat-0-7d9f-abcde"
BODY = json.dumps({"inputs": [{"name": "IN", "datatype": "INT32", "shape": [1, 16], "data": list(range(16))}]}).encode()


@pytest.fixture(scope="module")
def server(argosy_server: StartServer) -> Server:
    """Return the real runtime with one model."""
    flags = ("--model-control-mode=explicit", "--load-model=scale")
    return argosy_server(MODELS, *flags)


@contextmanager
def running(prometheus: Prometheus) -> Iterator[Prometheus]:
    try:
        prometheus.start()
    except ClusterUnavailableError as reason:
        give_up(reason)
    try:
        yield prometheus
    finally:
        prometheus.stop()


@pytest.fixture(scope="module")
def prometheus(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Yield the real Prometheus, which scrapes the server twice a second under its Pod's labels."""
    with running(Prometheus(tmp_path_factory.mktemp("prometheus"), interval_s=0.5)) as result:
        result.scrape([Scraped([server.metrics], {"namespace": "team", "pod": POD})])
        wait_for("a first scrape", lambda: bool(result.value("count(nv_inference_request_success)")), 30)
        yield result


def pool(*queries: tuple[str, str], url: str = "", pod: str = POD) -> PoolTargets:
    target = ScrapeTarget("chat-0", url, pod, {"scale": "scaler"})
    return PoolTargets(
        PoolKey("team/chat"), (target,), tuple(Query("scaler", *query) for query in queries), {"scaler": "scale"}
    )


def now() -> datetime:
    return datetime.now(UTC)


def ask(server: Server, times: int) -> None:
    with httpx.Client() as client:
        for _ in range(times):
            client.post(f"http://{server.http}/v2/models/scale/infer", content=BODY).raise_for_status()


async def until(source: SignalSource, requested: PoolTargets, so: Callable[[PoolSignals], bool]) -> PoolSignals:
    """Read until it is so; the test's own time limit ends what never is."""
    while True:
        result = await source.read(requested, now())
        if so(result):
            return result
        await asyncio.sleep(0.2)


def done(result: PoolSignals) -> float:
    """Return the number of requests answered within the window."""
    signals = result.members.get("scaler")
    return 0.0 if signals is None else round((signals.completions or 0.0) * signals.window_s)


async def test_prometheus_and_the_server_itself_report_the_same(server: Server, prometheus: Prometheus) -> None:
    requested = pool(url=f"http://{server.metrics}/metrics")
    scraper, source = Scraper(), PrometheusSource(prometheus.url)
    try:
        # Both have a reading from before the load, and both windows hold all of it.
        await until(scraper, requested, lambda result: "scaler" in result.members)
        await until(source, requested, lambda result: "scaler" in result.members)
        before = done(await source.read(requested, now()))
        await asyncio.to_thread(ask, server, 40)
        direct = await until(scraper, requested, lambda result: done(result) == 40)
        through = await until(source, requested, lambda result: done(result) == before + 40)
    finally:
        await source.close()
        await scraper.close()
    one, other = direct.members["scaler"], through.members["scaler"]
    assert (direct.error, through.error) == ("", "")
    assert before == 0
    for name in ("mean", "p50", "p90", "p95", "p99"):
        assert getattr(one.latency, name) == pytest.approx(getattr(other.latency, name))
        assert getattr(one.queue, name) == pytest.approx(getattr(other.queue, name))
    for name in ("compute", "execution", "batch", "max_batch", "instances", "pending", "running", "servers"):
        assert getattr(one, name) == pytest.approx(getattr(other, name)), name
    assert one.latency.p99 is not None
    assert _unknown(one) == _unknown(other)


async def test_prometheus_and_the_server_report_requests_of_versions_once(
    server: Server, prometheus: Prometheus
) -> None:
    requested = replace(pool(url=f"http://{server.metrics}/metrics"), analyzed={"scaler": 0.0})
    for source in (Scraper(), PrometheusSource(prometheus.url)):
        total = VersionSignals()
        try:
            await until(source, requested, lambda result: _is_idle(result.versions.get("scaler", {}).get(1)))
            await asyncio.to_thread(ask, server, 30)
            while total.answered < 30:
                total += (await source.read(requested, now())).versions["scaler"][1]
                await asyncio.sleep(0.1)
            assert (await source.read(requested, now())).versions["scaler"][1].answered == 0
        finally:
            await source.close()
        assert (total.answered, total.failed) == (30, 0)
        assert total.latency is not None
        assert total.latency.count == 30
        assert sum(size.rows for size in total.executions.values()) == 30


def _is_idle(version: VersionSignals | None) -> bool:
    """Return whether there are new samples, and no request since the ones before."""
    return version is not None and version.seconds > 0 and not version.answered


def _unknown(signals: Signals) -> set[str]:
    return {name for name in signals.__dataclass_fields__ if getattr(signals, name) is None}


async def test_a_source_that_starts_knows_the_last_minute(server: Server, prometheus: Prometheus) -> None:
    ask(server, 5)
    source = PrometheusSource(prometheus.url)
    try:
        result = await until(source, pool(), lambda result: done(result) >= 5)
    finally:
        await source.close()
    assert result.members["scaler"].window_s >= 0.5


async def test_queries_have_one_value_or_say_why_not(prometheus: Prometheus) -> None:
    source = PrometheusSource(prometheus.url)
    queries = (
        ("good", 'count(nv_inference_request_success{namespace="$(namespace)",model="$(model)"})'),
        ("scalar", "scalar(vector(7))"),
        ("unknown", "sum(nobody_exports_this)"),
        ("many", "nv_inference_request_failure"),
        ("nan", "vector(0)/vector(0)"),
        ("wrong", "sum("),
    )
    try:
        result = await source.read(pool(*queries), now())
    finally:
        await source.close()
    assert result.queries == {("scaler", "good"): 1.0, ("scaler", "scalar"): 7.0}
    errors = {name: why for (_, name), why in result.query_errors.items()}
    assert "the answer is empty" in errors["unknown"]
    assert "aggregate them" in errors["many"]
    assert "is nan" in errors["nan"]
    assert "does not take the query: " in errors["wrong"]
    assert "parse error" in errors["wrong"]


async def test_pods_that_it_does_not_know_are_reported_with_what_it_has(prometheus: Prometheus) -> None:
    source = PrometheusSource(prometheus.url)
    try:
        other_pod = await source.read(pool(pod="chat-9"), now())
        other = await source.read(PoolTargets(PoolKey("other/chat"), pool().targets), now())
    finally:
        await source.close()
    assert "the newest of the namespace is of" in other_pod.error
    assert "but of 1 models with other labels" in other.error
    assert (other_pod.members, other.members) == ({}, {})


@pytest.mark.parametrize("ahead_s", [-3600, 3600])
async def test_values_of_another_hour_are_not_taken_for_the_present(prometheus: Prometheus, ahead_s: int) -> None:
    source = PrometheusSource(prometheus.url)
    try:
        result = await source.read(pool(), now() + timedelta(seconds=ahead_s))
    finally:
        await source.close()
    assert result.members == {}
    assert ("s old" if ahead_s > 0 else "do the clocks agree?") in result.error


async def test_an_empty_prometheus_says_what_it_should_scrape(tmp_path: Path) -> None:
    with running(Prometheus(tmp_path)) as empty:
        source = PrometheusSource(empty.url)
        result = await source.read(pool(), now())
        await source.close()
    assert "nor of any other server: let it scrape their port 8002" in result.error


async def test_between_two_scrapes_what_is_recorded_stands(server: Server, tmp_path: Path) -> None:
    with running(Prometheus(tmp_path, interval_s=5)) as slow:
        slow.scrape([Scraped([server.metrics], {"namespace": "team", "pod": POD})])
        source = PrometheusSource(slow.url)
        try:
            result = await until(source, pool(), lambda result: "scaler" in result.members)
            ask(server, 7)
            while done(result) < 7:
                result = await source.read(pool(), now())
                assert result.error == ""
                await asyncio.sleep(0.2)
        finally:
            await source.close()


async def test_it_dies_and_comes_back(server: Server, tmp_path: Path) -> None:
    with running(Prometheus(tmp_path, interval_s=0.5)) as mortal:
        mortal.scrape([Scraped([server.metrics], {"namespace": "team", "pod": POD})])
        source = PrometheusSource(mortal.url)
        try:
            await until(source, pool(), lambda result: "scaler" in result.members)
            mortal.stop(kill=True)
            dead = await source.read(pool(("q", "vector(1)")), now())
            assert dead.error == f"Prometheus {mortal.url} cannot be reached: Connection refused"
            assert dead.query_errors["scaler", "q"] == dead.error
            assert dead.members["scaler"].at <= now()
            assert (await source.read(pool(), now() + timedelta(minutes=5))).members == {}
            mortal.start()
            back = await until(source, pool(), lambda result: not result.error)
        finally:
            await source.close()
    assert "scaler" in back.members


class Handler(BaseHTTPRequestHandler):
    """Answers as the server's `answer` says."""

    def do_POST(self) -> None:
        self.server.answer(self)  # type: ignore[attr-defined]

    def log_message(self, *args: Any) -> None:
        """Log nothing."""

    def say(self, status: int, body: object) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def answering(answer: Callable[[Handler], None]) -> Iterator[str]:
    """Yield the URL of a server that answers so in Prometheus's place."""
    threading_h_t_t_p_server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading_h_t_t_p_server.daemon_threads = True
    threading_h_t_t_p_server.answer = answer  # type: ignore[attr-defined]
    thread = threading.Thread(target=threading_h_t_t_p_server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{threading_h_t_t_p_server.server_address[1]}"
    finally:
        threading_h_t_t_p_server.shutdown()
        thread.join()
        threading_h_t_t_p_server.server_close()


def _checked(handler: Handler) -> None:
    """Let in those that have the token, or the username and the password."""
    ok = ("Bearer TOKEN", "Basic dTpw")
    if handler.headers["Authorization"] in ok:
        handler.say(200, {"status": "success", "data": {"resultType": "vector", "result": []}})
    else:
        handler.say(401, b"Unauthorized")


@pytest.mark.parametrize(
    ("login", "let_in"),
    [
        (Login(token="TOKEN"), True),
        (Login(username="u", password="p"), True),
        (Login(token="other"), False),
        (Login(), False),
    ],
)
async def test_credentials_are_sent(login: Login, let_in: bool) -> None:
    with answering(_checked) as url:
        source = PrometheusSource(url, login)
        result = await source.read(pool(), now())
        await source.close()
    refused = f"{url} does not let us in (401); check the Secret that spec.monitoring.prometheus.secretName names"
    assert (result.error == refused) is not let_in


async def test_without_its_credentials_no_one_is_queried() -> None:
    def requested(handler: Handler) -> None:
        raise AssertionError

    with answering(requested) as url:
        source = PrometheusSource(url, Login(error="Secret team/login is not there"))
        result = await source.read(pool(("q", "vector(1)")), now())
        await source.close()
    assert result.error == "Secret team/login is not there"
    assert result.query_errors["scaler", "q"] == result.error


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (500, {"status": "error", "error": "out of disk"}, "answers 500: out of disk"),
        (500, {"status": "error", "error": 'it\'s "full"'}, 'answers 500: it\'s "full"'),
        (400, {"status": "error", "error": "no such function"}, "does not take the query: no such function"),
        (503, b"busy", "answers 503: it does not say why"),
        (404, b"<html>", "answers 404"),
        (200, b"<html>hello</html>", "is the URL right?"),
        (200, {"hello": "world"}, "is the URL right?"),
        (200, {"data": {"result": "x"}}, "no range of samples"),
        (200, {"data": {"result": [{"metric": {}, "value": [1, "1"]}]}}, "no range of samples"),
    ],
)
async def test_answers_that_are_none_say_so(status: int, body: object, says: str) -> None:
    with answering(lambda handler: handler.say(status, body)) as url:
        source = PrometheusSource(url)
        result = await source.read(pool(), now())
        await source.close()
    assert says in result.error
    assert result.members == {}


async def test_all_queries_of_a_source_are_sent_by_one_thread() -> None:
    threads = set[threading.Thread]()
    empty = {"status": "success", "data": {"resultType": "vector", "result": []}}
    with answering(lambda handler: handler.say(200, empty)) as url:
        source = PrometheusSource(url)
        query = source._connection._query
        source._connection._query = lambda text: (threads.add(threading.current_thread()), query(text))[1]  # type: ignore[method-assign]
        for _ in range(3):
            await source.read(pool(("q", "vector(1)")), now())
        await source.close()
    (thread,) = threads
    await asyncio.to_thread(thread.join)
    assert not thread.is_alive()


async def test_one_that_answers_too_slowly_holds_nothing_up() -> None:
    ended = threading.Event()

    def dripping(handler: Handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not ended.wait(0.05):
            handler.wfile.write(b" ")

    with answering(dripping) as url:
        source = PrometheusSource(url, timeout_s=60, all_s=0.3)
        try:
            for _ in range(2):
                result = await source.read(pool(), now())
                assert "has not answered all questions within 0.3 s" in result.error
        finally:
            ended.set()
            await source.close()


async def test_one_that_says_nothing_is_abandoned() -> None:
    ended = threading.Event()
    with answering(lambda handler: ended.wait() and None) as url:
        source = PrometheusSource(url, timeout_s=1)
        result = await source.read(pool(), now())
        ended.set()
        await source.close()
    assert "does not answer within 1 s" in result.error
