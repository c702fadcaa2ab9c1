"""Queries that judge candidates of `argosy up`, by a Prometheus that answers well, badly, late or not at all."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.cluster import ClusterUnavailableError
from e2e.cluster.state import free_ports
from e2e.parts.up import Up
from e2e.starting import give_up
from tests.peers.prometheus import Prometheus, Scraped
from tests.serve.releases.releases import QUICK, Releases, started
from tests.serve.releases.standin_prometheus import StandinPrometheus, vector

pytestmark = pytest.mark.timeout(600)

REFUSALS = {
    "name": "refusals",
    "query": 'sum(refusals{model="$(model)",version="$(version)",stable="$(stableVersion)"})',
    "failureCondition": "result > 0.2",
}
RATE = 40.0


def rollout(*queries: dict[str, Any], **analysis: Any) -> dict[str, Any]:
    """Return a rollout of one step, whose candidate is judged by queries, too."""
    steps = [{"traffic": "50%", "pause": "0s"}]
    return {"steps": steps, "analysis": {**QUICK, "queries": list(queries), **analysis}}


def monitored(url: str) -> dict[str, Any]:
    """Return the settings of a pool whose Prometheus has this URL."""
    return {"monitoring": {"prometheus": {"url": url}}}


@pytest.fixture(scope="module")
def prometheus() -> StandinPrometheus:
    """Return a Prometheus that does not listen yet."""
    return StandinPrometheus(free_ports(1)[0])


@pytest.fixture(scope="module")
def releases(prometheus: StandinPrometheus, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Releases]:
    """Yield the model, whose version 1 serves. The tests build on one another, in their order."""
    with started(Up(tmp_path_factory.mktemp("queries")), monitored(prometheus.url)) as releases:
        yield releases


def says(releases: Releases, name: str, outcome: str, words: str) -> None:
    """Wait until the status has a query's outcome with these words, and the candidate is still proven."""

    def reported() -> bool:
        now = releases.rollout
        assert now["phase"] not in ("Held", "Promoted", "RollingBack"), now
        every = now.get("analysis", {}).get("measurements", ())
        return any((one["name"], one.get("outcome")) == (name, outcome) and words in one["message"] for one in every)

    releases.up.until(f"{name} {outcome}: {words}; {releases.rollout}", reported)


def test_a_prometheus_without_an_answer_convicts_and_promotes_nothing(
    releases: Releases, prometheus: StandinPrometheus
) -> None:
    with releases.load(RATE) as load:
        releases.declare(2, rollout(REFUSALS))
        releases.phase("Stepping", 2)
        says(releases, "refusals", "Error", "cannot be reached: Connection refused")
        with prometheus.listening():
            says(releases, "refusals", "Error", "does not answer within 5 s")
            prometheus.say(vector())
            says(releases, "refusals", "Error", "the answer is empty")
            prometheus.say(vector(0.1, 0.1))
            says(releases, "refusals", "Error", "it answers 2 values where one is needed")
            prometheus.say(vector(float("nan")))
            says(releases, "refusals", "Error", "its value is nan")
            prometheus.say(b'{"error": "it starts"}', 503)
            says(releases, "refusals", "Error", "answers 503: it starts")
            prometheus.say(b"<html>")
            says(releases, "refusals", "Error", "answers no JSON")
            prometheus.say(vector(0.1))
            releases.promoted(2)
    assert load.failed == []
    assert set(prometheus.queries) == {'sum(refusals{model="work",version="2",stable="1"})'}


def test_a_value_beyond_the_limit_takes_the_version_back(releases: Releases, prometheus: StandinPrometheus) -> None:
    prometheus.say(vector(0.5))
    with prometheus.listening(), releases.load(RATE) as load:
        releases.declare(3, rollout(REFUSALS))
        held = releases.held(3)
        load.answered(20)
    assert load.failed == []
    assert "refusals: 0.5" in held["message"]
    assert load.answers[-1].version == 2


def test_no_other_verdict_waits_for_a_query(releases: Releases, prometheus: StandinPrometheus) -> None:
    prometheus.go_on.clear()
    with prometheus.listening(), releases.load(RATE):
        releases.declare(4, rollout(REFUSALS), fails_every=2)
        releases.phase("RollingBack", 4)
        assert not prometheus.go_on.is_set()
        held = releases.held(4)
    assert held["reason"] == "ErrorRate"


def test_a_prometheus_that_is_gone_until_the_timeout_is_inconclusive(releases: Releases) -> None:
    with releases.load(RATE):
        releases.declare(5, rollout(REFUSALS, timeout="2s", onInconclusive="Rollback"))
        held = releases.held(5)
    assert held["reason"] == "Inconclusive"
    assert "cannot be reached" in held["message"]


def test_the_real_prometheus_judges_by_what_it_scrapes(releases: Releases, tmp_path: Path) -> None:
    requests = {
        "name": "requests",
        "query": 'sum(argosy_version_requests_total{model="$(model)",version="$(version)"})',
        "successCondition": "result >= 30",
        "failureCondition": "result < 0",
    }
    real = Prometheus(tmp_path / "prometheus", interval_s=0.5)
    try:
        real.start()
    except ClusterUnavailableError as reason:
        give_up(reason)
    try:
        releases.pool = monitored(real.url)
        with releases.load(RATE) as load:
            releases.declare(6, rollout(requests))
            releases.phase("Stepping", 6)
            says(releases, "requests", "Error", "the answer is empty")
            real.scrape([Scraped([f"127.0.0.1:{releases.up.metrics}"])])
            releases.promoted(6)
    finally:
        real.stop()
    assert load.failed == []
    (value,) = [m["value"] for m in releases.rollout["analysis"]["measurements"] if m["name"] == "requests"]
    assert value >= 30
