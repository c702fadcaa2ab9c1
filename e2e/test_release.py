"""Versions are released by evidence under open-loop load, with a real Prometheus: a good one is promoted, and bad ones
are taken back before clients meet more of them than a step's share.

Of each request the version that answered is known, so shares are counted exactly. The tests build on one another, in
their order.
"""

from collections.abc import Callable
from typing import Any

import pytest

from e2e.asking.client import Client
from e2e.asking.namespace import Namespace
from e2e.asking.releases import Release, Releases, last_sent
from e2e.declared.resources import Body, pool, version_model
from e2e.deployed import prometheus
from e2e.deployed.builds import Images

pytestmark = pytest.mark.timeout(900)
Record = Callable[[str, object], None]

POOL, MODEL = "releases", "inferencemodel/released"
SERVERS = 2
WORK_S = 0.01
"""How long an execution takes."""
STEPS = (0.2, 0.5)
ROLLOUT: Body = {
    "steps": [{"traffic": f"{share:.0%}", "pause": "2500ms"} for share in STEPS],
    "analysis": {
        "warmUp": "2s",
        "errorRate": {"acceptable": "1%", "unacceptable": "10%"},
        "latency": {"serviceTime": 2},
        "templateRef": {"name": "durations"},
    },
}
EXECUTION = (
    'sum(rate(nv_inference_compute_infer_duration_us{model="$(model)",version="%s"}[8s]))'
    ' / sum(rate(nv_inference_request_success{model="$(model)",version="%s"}[8s]))'
)
CANDIDATE, STABLE = (EXECUTION.replace("%s", version) for version in ("$(version)", "$(stableVersion)"))
DURATIONS: Body = {
    "name": "durations",
    "queries": [
        {
            "name": "execution-ratio",
            "query": f"({CANDIDATE}) / ({STABLE})",
            "successCondition": "result < 2",
            "failureCondition": "result >= 3.5",
        }
    ],
}


@pytest.fixture(scope="module", autouse=True)
def releases(namespace: Namespace, client: Client, images: Images, storage: str) -> Releases:
    """Return the model, whose version 1 serves on two servers that a Prometheus scrapes."""

    def declared(version: int, **spec: Any) -> list[Body]:
        settings = {"work_s": WORK_S, "rollout": ROLLOUT, "minReplicas": SERVERS, **spec}
        return [version_model("released", POOL, storage, version, **settings)]

    url = prometheus.start(namespace, images.runtime)
    namespace.apply(pool(POOL, monitoring={"prometheus": {"url": url}}, analysisTemplates=[DURATIONS]))
    made = Releases(namespace, client, MODEL, declared)
    made.declare(1)
    namespace.ready()
    return made


def keeps_to_its_share(release: Release, version: int, stable: int, record: Record, share: float = STEPS[0]) -> None:
    """Check that no more requests than a step's share met a version that was taken back, and none afterwards."""
    replies = release.replies
    assert set(replies.answers) <= {(stable,), (version,)}
    met = replies.met_by((version,), failures=True)
    verdict, held = release.convicted_at(version), release.since("Held", version)
    record("met", len(met))
    record("back_s", round(last_sent(met) - verdict, 3))
    divided = replies.between(release.since("Stepping", version), last_sent(met))
    assert 0 < len(met) <= share * len(divided) + SERVERS
    assert last_sent(met) < held
    assert ("Stepping", 2) not in release.reached(version)


def test_a_good_version_is_promoted_and_no_request_fails_or_is_misrouted(
    releases: Releases, record_property: Record
) -> None:
    divided = []
    with releases.under_load() as release:
        releases.declare(2)
        for number, share in enumerate(STEPS, 1):
            releases.until("Stepping", 2, step=number)
            divided.append(releases.at_weight(POOL, 2, share))
        releases.until("Promoted", 2)
        releases.namespace.ready(MODEL)
    ends = [release.since("Stepping", 2, step=2), release.since("Promoting", 2)]
    replies = release.replies
    record_property("timeline", release.timeline)
    record_property("by_second", replies.by_second())
    assert replies.failed == []
    assert replies.answers == [(1,), (2,)]
    for share, since, until in zip(STEPS, divided, ends, strict=True):
        split = replies.split(replies.met_by((2,)), since, until)
        record_property(f"at_{share:.0%}", [split.met, split.requests, split.at_edges])
        assert split.requests > 10 * SERVERS
        # A server is at most one request off in any window.
        assert split.deviation(share) <= SERVERS
    assert last_sent(replies.met_by((1,))) < release.since("Promoted", 2)
    releases.stable = 2


def test_a_version_that_fails_is_taken_back(releases: Releases, record_property: Record) -> None:
    release = releases.taken_back(3, behavior={"FAILS": 0.5})
    keeps_to_its_share(release, 3, 2, record_property)
    assert release.replies.failed
    assert all("it fails" in error for error in release.replies.errors)


def test_a_version_with_one_percent_of_errors_is_taken_back_by_the_default_limits(
    releases: Releases, record_property: Record
) -> None:
    analysis = {"warmUp": "2s", "latency": {"serviceTime": 2}}
    steps = [{"traffic": "50%", "pause": "2s"}]
    release = releases.taken_back(
        4, behavior={"FAILS_EVERY": 100}, work_s=0.002, rollout={"steps": steps, "analysis": analysis}
    )
    keeps_to_its_share(release, 4, 2, record_property, share=0.5)
    assert 0 < len(release.replies.failed) <= 0.02 * len(release.replies.met_by((4,), failures=True))
    assert "errorRate" in releases.history(4)["message"]


def test_a_slow_version_is_taken_back(releases: Releases, record_property: Record) -> None:
    release = releases.taken_back(5, work_s=3 * WORK_S)
    keeps_to_its_share(release, 5, 2, record_property)
    assert release.replies.failed == []
    assert "serviceTime" in releases.history(5)["message"]


def test_a_query_of_the_pool_s_template_takes_a_version_back(releases: Releases, record_property: Record) -> None:
    tolerant = {**ROLLOUT, "analysis": {**ROLLOUT["analysis"], "latency": {"serviceTime": 100}}}
    release = releases.taken_back(6, work_s=6 * WORK_S, rollout=tolerant)
    keeps_to_its_share(release, 6, 2, record_property)
    assert release.replies.failed == []
    (measured,) = [one for one in releases.history(6)["analysis"]["measurements"] if one["name"] == "execution-ratio"]
    assert measured["outcome"] == "Failed"
    assert measured["value"] >= 3.5
    assert "execution-ratio" in releases.history(6)["message"]


def test_a_version_that_crashes_is_taken_back(releases: Releases, record_property: Record) -> None:
    release = releases.taken_back(7, behavior={"CRASHES": 1})
    keeps_to_its_share(release, 7, 2, record_property)
    assert release.replies.failed


def test_a_version_that_does_not_load_meets_no_client(releases: Releases) -> None:
    release = releases.taken_back(8, behavior={"BROKEN": 1})
    assert release.replies.failed == []
    assert release.replies.answers == [(2,)]
    assert "it is broken" in releases.history(8)["message"]
    assert release.reached(8) <= {("Loading", 0), ("RollingBack", 0)}


def test_a_version_that_answers_differently_in_shadow_meets_no_client(releases: Releases) -> None:
    shadow = {"shadow": {"traffic": "100%", "duration": "2s"}}
    release = releases.taken_back(9, rollout={**ROLLOUT, **shadow})
    assert release.replies.failed == []
    assert release.replies.answers == [(2,)]
    assert ("Shadowing", 0) in release.reached(9)
    assert ("Stepping", 1) not in release.reached(9)
