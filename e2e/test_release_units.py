"""What is released other than as one model next to its former version, under open-loop load: an ensemble as a unit, one
replica after another where there is no memory for two versions, and Recreate while an activator queues requests.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from e2e.asking.client import Client
from e2e.asking.namespace import Namespace
from e2e.asking.releases import RELEASE_S, Release, Releases, last_sent
from e2e.cluster import Cluster
from e2e.cluster.node.node import NAME as NODE
from e2e.cluster.standins.gpus import Gpus, offer_gpus
from e2e.declared.resources import Body, pair, pool, version_model

pytestmark = pytest.mark.timeout(900)
Record = Callable[[str, object], None]

RATE = 30.0
WORK_S = 0.005
SHARE = 0.5
ANALYSIS: Body = {
    "warmUp": "1s",
    "errorRate": {"acceptable": "1%", "unacceptable": "10%"},
    "latency": {"serviceTime": 3},
}
STEPS = [{"traffic": f"{SHARE:.0%}", "pause": "3s"}]
ROLLOUT: Body = {"steps": STEPS, "analysis": ANALYSIS}
LARGE: Body = {"footprint": {"gpuMemory": "50Gi"}, "instanceGroups": [{"kind": "KIND_MODEL", "count": 1}]}
"""More than half of a GPU. KIND_MODEL leaves it to the model which device it uses, here none."""

BACK_S = 3.0
"""A generous limit of the time from a verdict to the last request that meets the candidate; 1 s is to be expected."""


def back_s(release: Release, version: int) -> float:
    """Return how long after the verdict the last request was sent that the candidate got."""
    return last_sent(release.replies.met_by((version,), failures=True)) - release.convicted_at(version)


@pytest.fixture
def two_gpus(cluster: Cluster) -> Iterator[None]:
    """Give the node two GPUs on paper, which is enough for a model that uses none."""
    offer_gpus(cluster, NODE, Gpus(2))
    yield
    offer_gpus(cluster, NODE, Gpus(0))


def test_an_ensemble_is_released_as_a_unit(
    namespace: Namespace, client: Client, storage: str, record_property: Record
) -> None:
    def declared(version: int, **spec: Any) -> list[Body]:
        steps = [version_model(name, "paired", storage, version, load_s=1.0) for name in ("first", "second")]
        return [*steps, pair("both", "paired", "first", "second", rollout=ROLLOUT)]

    releases = Releases(namespace, client, "ensemble/both", declared, RATE)
    namespace.apply(pool("paired"))
    releases.declare(1)
    namespace.ready()
    with releases.under_load() as release:
        releases.declare(2)
        namespace.until("both steps' versions", lambda: _promoted(releases.rollout) == {"first": 2, "second": 2})
        namespace.ready()
    replies = release.replies
    record_property("timeline", release.timeline)
    record_property("by_second", replies.by_second())
    assert replies.failed == []
    assert replies.answers == [(1, 1), (2, 2)]
    met = replies.met_by((2, 2))
    (candidate,) = {one["candidate"]["version"] for one in release.rollouts if one["phase"] == "Stepping"}
    split = replies.split(met, min(reply.ended for reply in met), release.since("Promoting", candidate))
    record_property("at_the_step", [split.met, split.requests, split.at_edges])
    assert split.requests > RATE
    assert split.deviation(SHARE) <= 1
    assert last_sent(replies.met_by((1, 1))) < release.since("Promoted", candidate)
    namespace("delete", "ensemble/both", "inferencemodel/first", "inferencemodel/second", "servingpool/paired")


def _promoted(rollout: dict[str, Any]) -> dict[str, int]:
    """Return the versions of the steps of the revision that was promoted."""
    steps = rollout.get("stable", {}).get("steps", []) if rollout.get("phase") == "Promoted" else []
    return {step["model"]: step["version"] for step in steps}


@pytest.mark.usefixtures("two_gpus")
def test_without_memory_for_two_versions_one_replica_changes_after_another(
    namespace: Namespace, client: Client, storage: str, record_property: Record
) -> None:
    def declared(version: int, **spec: Any) -> list[Body]:
        settings = {"work_s": WORK_S, "minReplicas": 2, "rollout": ROLLOUT, **LARGE, **spec}
        return [version_model("large", "tight", storage, version, **settings)]

    releases = Releases(namespace, client, "inferencemodel/large", declared, RATE)
    namespace.apply(pool("tight", maxGpusPerServer=1))
    releases.declare(1)
    namespace.ready("inferencemodel/large")
    pods = namespace.server_uids("tight")
    release = releases.promoted(2)
    replies = release.replies
    record_property("timeline", release.timeline)
    record_property("by_second", replies.by_second())
    strategies = {(one.get("strategy", ""), one.get("strategyMessage", "")) for one in release.rollouts}
    record_property("strategies", sorted(strategies))
    assert replies.failed == []
    assert replies.answers == [(1,), (2,)]
    assert {name for name, _ in strategies if name} == {"ReplicaByReplica"}
    assert any("a step of 50% has 50% (1 of 2 replicas)" in message for _, message in strategies)
    assert ("Stepping", 1) in release.reached(2)
    assert last_sent(replies.met_by((1,))) < release.since("Promoted", 2)
    assert namespace.server_uids("tight") == pods
    bad = releases.taken_back(3, behavior={"FAILS": 0.5})
    record_property("bad_timeline", bad.timeline)
    record_property("bad_by_second", bad.replies.by_second())
    record_property("back_s", round(back_s(bad, 3), 3))
    assert all("it fails" in error for error in bad.replies.errors)
    assert back_s(bad, 3) < BACK_S
    assert bad.replies.answers[0] == (2,)
    namespace("delete", "inferencemodel/large", "servingpool/tight")


def test_requests_of_the_gap_of_recreate_wait_at_the_activator(
    namespace: Namespace, client: Client, storage: str, record_property: Record
) -> None:
    def declared(version: int, **spec: Any) -> list[Body]:
        steps = [{"traffic": "100%", "pause": "2s"}]
        rollout = {"strategy": "Recreate", "steps": steps, "analysis": ANALYSIS}
        settings = {"load_s": 1.0, "work_s": WORK_S, "minReplicas": 0, "replicas": 1, "rollout": rollout, **spec}
        return [version_model("single", "queued", storage, version, **settings)]

    releases = Releases(namespace, client, "inferencemodel/single", declared, RATE)
    namespace.apply(pool("queued"))
    releases.declare(1)
    namespace.ready("inferencemodel/single", timeout_s=RELEASE_S)
    release = releases.promoted(2)
    replies = release.replies
    record_property("timeline", release.timeline)
    record_property("by_second", replies.by_second())
    messages = {one.get("strategyMessage", "") for one in release.rollouts}
    record_property("messages", sorted(messages))
    assert replies.failed == []
    assert replies.answers == [(1,), (2,)]
    assert {one["strategy"] for one in release.rollouts if one.get("strategy")} == {"Recreate"}
    assert any("the activator queues requests" in message for message in messages)
    bad = releases.taken_back(3, behavior={"FAILS": 0.5})
    record_property("bad_timeline", bad.timeline)
    record_property("bad_by_second", bad.replies.by_second())
    record_property("back_s", round(back_s(bad, 3), 3))
    assert all("it fails" in error for error in bad.replies.errors)
    assert back_s(bad, 3) < BACK_S
    assert client.version("inferencemodel/single") == [2]
