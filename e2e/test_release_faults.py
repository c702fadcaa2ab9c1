"""Releases while what carries them out is killed, under open-loop load: the operator in every phase, and a server. They
end as without it.

The tests build on one another, in their order. Servers are measured directly.
"""

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from e2e.asking.client import Client
from e2e.asking.namespace import Namespace
from e2e.asking.releases import Releases, last_sent
from e2e.cluster import Cluster
from e2e.declared.resources import Body, pool, version_model
from e2e.deployed import release as operators
from e2e.parts import podprocesses

pytestmark = pytest.mark.timeout(900)
Record = Callable[[str, object], None]

POOL, MODEL = "faults", "inferencemodel/tried"
SERVERS = 2
WORK_S, UNLOAD_S = 0.01, 2.0
RATE = 40.0
ANALYSIS: Body = {
    "warmUp": "1s",
    "errorRate": {"acceptable": "1%", "unacceptable": "10%"},
    "latency": {"serviceTime": 3},
}
STEPS = [{"traffic": "50%", "pause": "3s"}]
# Versions answer their numbers.
SHADOW: Body = {"traffic": "50%", "duration": "3s", "tolerances": [{"output": "VERSION", "absolute": 100}]}
LOST = ("reset", "RemoteDisconnected", "IncompleteRead", "BadStatusLine")
"""What clients see whose requests a server had that was killed."""


@pytest.fixture(scope="module", autouse=True)
def releases(namespace: Namespace, client: Client, storage: str) -> Releases:
    """Return the model, whose version 1 serves on two servers."""

    def declared(version: int, **spec: Any) -> list[Body]:
        settings = {
            "load_s": 2.0,
            "work_s": WORK_S,
            "behavior": {"UNLOAD_S": UNLOAD_S},
            "minReplicas": SERVERS,
            "rollout": {"steps": STEPS, "analysis": ANALYSIS},
            **spec,
        }
        return [version_model("tried", POOL, storage, version, **settings)]

    namespace.apply(pool(POOL))
    made = Releases(namespace, client, MODEL, declared, RATE)
    made.declare(1)
    namespace.ready()
    return made


class Operators:
    """The operators, whose leader is killed again and again."""

    def __init__(self, cluster: Cluster, releases: Releases) -> None:
        self._cluster, self._releases, self._killed = cluster, releases, set[int]()

    def killed_in(self, phase: str, version: int) -> None:
        """Kill the leader as soon as a version is in a phase. Fails where the phase is over by then."""
        leaders: set[int] = set()

        def lead() -> bool:
            leaders.update({operators.leader_process(self._cluster)} - {0} - self._killed)
            return bool(leaders)

        self._releases.namespace.until("another leader", lead, every_s=0.1)
        self._releases.until(phase, version, every_s=0.02)
        (pid,) = leaders
        os.kill(pid, signal.SIGKILL)
        self._killed.add(pid)
        assert self._releases.rollout["phase"] == phase


@pytest.fixture(scope="module")
def leader(cluster: Cluster, releases: Releases) -> Operators:
    return Operators(cluster, releases)


def test_an_operator_that_is_killed_in_every_phase_promotes_a_good_version(
    releases: Releases, leader: Operators, record_property: Record
) -> None:
    with releases.under_load() as release:
        releases.declare(2, rollout={"steps": STEPS, "analysis": ANALYSIS, "shadow": SHADOW})
        for phase in ("Loading", "Shadowing", "Stepping", "Promoting"):
            leader.killed_in(phase, 2)
        releases.until("Promoted", 2)
        releases.namespace.ready(MODEL)
    replies = release.replies
    record_property("timeline", release.timeline)
    record_property("by_second", replies.by_second())
    assert replies.failed == []
    assert replies.answers == [(1,), (2,)]
    assert last_sent(replies.met_by((1,))) < release.since("Promoted", 2)
    assert [one["outcome"] for one in releases.rollout["history"]] == ["Promoted", "Promoted"]
    releases.stable = 2


def test_an_operator_that_is_killed_while_it_takes_a_version_back_holds_it(
    releases: Releases, leader: Operators, record_property: Record
) -> None:
    with releases.under_load() as release:
        releases.declare(3, behavior={"FAILS": 0.5, "UNLOAD_S": UNLOAD_S})
        leader.killed_in("RollingBack", 3)
        leader.killed_in("Held", 3)
    replies = release.replies
    record_property("timeline", release.timeline)
    record_property("by_second", replies.by_second())
    met = replies.met_by((3,), failures=True)
    assert all("it fails" in error for error in replies.errors)
    assert last_sent(met) < release.since("Held", 3)
    record_property("back_s", round(last_sent(met) - release.convicted_at(3), 3))
    promoted = releases.promoted(4)
    assert promoted.replies.failed == []
    assert promoted.replies.answers == [(2,), (4,)]
    assert [one["outcome"] for one in releases.rollout["history"]] == ["Promoted", "RolledBack", "Promoted", "Promoted"]


def test_a_server_that_is_killed_is_not_the_candidate_s_failure(
    releases: Releases, namespace: Namespace, record_property: Record
) -> None:
    pods = namespace.server_uids(POOL)
    with releases.under_load() as release:
        releases.declare(5)
        releases.until("Stepping", 5)
        killed_at = time.time()
        podprocesses.kill(namespace.server_pods(POOL)[0], "argosy_runtime.server")
        releases.until("Promoted", 5)
        namespace.until("the server again", lambda: _restarts(namespace) == [0, 1])
        namespace.ready(MODEL)
    replies = release.replies
    record_property("timeline", release.timeline)
    record_property("by_second", replies.by_second())
    record_property("errors", replies.errors)
    # Kubernetes sends requests to the Pod until it hears that its container ended; none of these reaches a server.
    lost = [reply for reply in replies.failed if "refused" not in reply.error]
    record_property("lost_after_s", [round(reply.sent - killed_at, 3) for reply in lost])
    assert [reply.error for reply in lost if not any(word in reply.error for word in LOST)] == []
    assert replies.answers == [(4,), (5,)]
    assert last_sent(replies.met_by((4,))) < release.since("Promoted", 5)
    assert namespace.server_uids(POOL) == pods
    assert releases.history(5)["outcome"] == "Promoted"


def _restarts(namespace: Namespace) -> list[int]:
    """Return how often each server's process was started again."""
    statuses = [status for pod in namespace.server_pods(POOL) for status in pod["status"]["containerStatuses"]]
    return sorted(status["restartCount"] for status in statuses if status["name"] == "server")
