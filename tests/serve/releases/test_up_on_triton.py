"""Releases on NVIDIA's real server: what needs weights there is refused, and a switch of all traffic is analyzed."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.cluster.state import free_ports
from e2e.parts.up import Up
from e2e.starting import give_up
from tests.peers import triton
from tests.peers.argosy import ROOT
from tests.peers.cache import PeerUnavailableError
from tests.serve.releases.releases import Releases, started
from tests.serve.releases.standin_prometheus import StandinPrometheus, vector

pytestmark = [pytest.mark.timeout(600), pytest.mark.triton]

RATE = 40.0
ERRORS = {"acceptable": "1%", "unacceptable": "20%"}
SWITCH: dict[str, Any] = {"steps": [{"traffic": "100%", "pause": "1s"}]}
REFUSALS = {"name": "refusals", "query": 'refusals{version="$(version)"}', "failureCondition": "result > 0.2"}


class TritonUp(Up):
    """An `argosy up` with NVIDIA's server."""

    program = ("env", f"--chdir={ROOT}", sys.executable, "-m", "tests.serve.releases.triton_up")


def switch(**rollout: Any) -> dict[str, Any]:
    """Return a rollout that gives a new version all requests, and analyzes it."""
    return {**SWITCH, "analysis": {"errorRate": ERRORS, "warmUp": "0s", **rollout.pop("analysis", {})}, **rollout}


@pytest.fixture(scope="module")
def prometheus() -> StandinPrometheus:
    """Return a Prometheus that does not listen yet."""
    return StandinPrometheus(free_ports(1)[0])


@pytest.fixture(scope="module")
def releases(prometheus: StandinPrometheus, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Releases]:
    """Yield the model, whose version 1 serves on NVIDIA's server. The tests build on one another, in their order."""
    try:
        triton.install()
    except PeerUnavailableError as reason:
        give_up(reason)
    up = TritonUp(tmp_path_factory.mktemp("triton"))
    pool = {"runtime": {"name": "triton"}, "monitoring": {"prometheus": {"url": prometheus.url}}}
    with started(up, pool, switch()) as releases:
        yield releases


def ready_message(releases: Releases) -> str:
    """Return the message of the condition Ready."""
    conditions = releases.up.status("work").get("conditions", ())
    return next((one["message"] for one in conditions if one["type"] == "Ready"), "")


def test_what_needs_weights_in_the_server_is_refused_and_changes_nothing(releases: Releases) -> None:
    refused = {
        "steps[0].traffic": {"steps": [{"traffic": "20%"}]},
        "shadow": {"shadow": {"traffic": "10%"}},
        "sticky": {"sticky": [{"header": "x-user"}]},
        "analysis.latency": {"analysis": {"latency": {"p99": 2}}},
    }
    with releases.load(RATE) as load:
        for field, rollout in refused.items():
            releases.declare(2, {**switch(), **rollout})
            says = f"spec.rollout.{field}: NVIDIA's server of pool 'laptop'"
            releases.up.until(says, lambda says=says: says in ready_message(releases))
        load.answered(20)
    assert load.failed == []
    assert load.builds.keys() == {1}
    releases.redeclare(1, 1, switch())


def test_a_good_version_is_promoted_after_a_switch_without_a_failed_request(releases: Releases) -> None:
    with releases.load(RATE) as load:
        load.answered(20)
        stable = load.answers[-1].build
        build = releases.declare(2, switch())
        releases.phase("Stepping", 2)
        assert releases.rollout["strategy"] == "SurgeInPlace"
        releases.promoted(2)
        promoted = time.monotonic()
        load.answered(20)
    assert load.failed == []
    assert load.builds.keys() == {stable, build}
    assert {answer.build for answer in load.sent_after(promoted)} == {build}


def test_a_version_that_fails_is_taken_back_by_the_servers_metrics(releases: Releases) -> None:
    with releases.load(RATE) as load:
        load.answered(20)
        stable = load.answers[-1].build
        # It raises: errors that a Python model answers itself count as successes there.
        releases.declare(3, switch(), raises="it fails")
        held = releases.held(3)
        back = time.monotonic()
        load.answered(20)
    assert held["reason"] == "ErrorRate"
    assert load.builds.keys() == {0, stable}
    assert any("it fails" in error for error in load.failed)
    assert {answer.build for answer in load.sent_after(back)} == {stable}


def test_a_version_that_does_not_load_meets_no_request(releases: Releases) -> None:
    with releases.load(RATE) as load:
        load.answered(20)
        stable = load.answers[-1].build
        releases.declare(4, switch(), broken=True)
        held = releases.held(4)
        load.answered(20)
    assert "no weights" in held["message"]
    assert load.failed == []
    assert load.builds.keys() == {stable}


def test_a_version_is_taken_back_by_a_query(releases: Releases, prometheus: StandinPrometheus) -> None:
    prometheus.say(vector(0.5))
    with prometheus.listening(), releases.load(RATE) as load:
        load.answered(20)
        stable = load.answers[-1].build
        bad = releases.declare(5, switch(analysis={"queries": [REFUSALS]}))
        held = releases.held(5)
        back = time.monotonic()
        load.answered(20)
    assert "refusals: 0.5" in held["message"]
    assert load.failed == []
    assert load.builds.keys() == {stable, bad}
    assert {answer.build for answer in load.sent_after(back)} == {stable}
    assert set(prometheus.queries) == {'refusals{version="5"}'}


def test_recreate_unloads_before_it_loads(releases: Releases, tmp_path: Path) -> None:
    with releases.load(RATE) as load:
        load.answered(20)
        stable = load.answers[-1].build
        build = releases.declare(6, switch(strategy="Recreate"), loads_at=str(tmp_path / "go on"))
        releases.up.until("the gap", lambda: bool(load.failed))
        assert releases.rollout["strategy"] == "Recreate"
        assert "is unloaded before" in releases.rollout["strategyMessage"]
        (tmp_path / "go on").touch()
        releases.promoted(6)
        promoted = time.monotonic()
        load.answered(20)
    assert load.builds.keys() == {0, stable, build}
    assert {answer.build for answer in load.sent_after(promoted)} == {build}
