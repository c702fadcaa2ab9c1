"""Versions are released by evidence under load, with a real Prometheus: a good one is promoted, and bad ones are taken
back before clients meet more of them than a step's share.

The tests build on one another, in their order.
"""

from collections.abc import Callable
from typing import Any

import pytest

from e2e.asking.client import Client, Load
from e2e.asking.namespace import Namespace
from e2e.cluster import Cluster
from e2e.declared.resources import Body, pool, version_model
from e2e.deployed import prometheus, release
from e2e.deployed.builds import Images
from e2e.parts import podprocesses

pytestmark = pytest.mark.timeout(900)

MODEL = "inferencemodel/released"
WORK_S = 0.02
"""How long an execution takes."""
SHARE = 0.2
ROLLOUT: Body = {
    "steps": [{"traffic": f"{SHARE:.0%}", "pause": "2s"}, {"traffic": "50%", "pause": "2s"}],
    "analysis": {
        "warmUp": "2s",
        "errorRate": {"acceptable": "1%", "unacceptable": "10%"},
        "latency": {"serviceTime": 2},
    },
}
RELEASE_S = 180.0


class Releases:
    """The model on its pool, with the version that was promoted last."""

    def __init__(self, namespace: Namespace, client: Client, storage: str) -> None:
        self.namespace, self.client, self._storage = namespace, client, storage
        self.stable = 1

    def declare(self, version: int, **spec: Any) -> None:
        """Declare a version, as a commit in Git does."""
        settings = {"work_s": WORK_S, "rollout": ROLLOUT, **spec}
        self.namespace.apply(version_model("released", "releases", self._storage, version, **settings))

    @property
    def rollout(self) -> dict[str, Any]:
        """The rollout in the status."""
        rollout: dict[str, Any] = self.namespace.status(MODEL).get("rollout", {})
        return rollout

    def until(self, phase: str, version: int) -> None:
        """Wait until a version is in a phase."""
        self.namespace.until(f"{phase} of {version}", lambda: self._is(phase, version), RELEASE_S)

    def _is(self, phase: str, version: int) -> bool:
        rollout = self.rollout
        if rollout.get("phase") != phase:
            return False
        if phase == "Held":
            return version in [held["version"] for held in rollout["held"]]
        part = "stable" if phase in ("Stable", "Promoted") else "candidate"
        return bool(rollout.get(part, {}).get("version") == version)

    def taken_back(self, version: int, workers: int = 6, **spec: Any) -> Load:
        """Declare a bad version under load. Return the load once the version is held, and the stable one answers."""
        with self.client.load(MODEL, RELEASE_S, workers) as load:
            self.declare(version, **spec)
            self.until("Held", version)
            assert self.client.version(MODEL) == [self.stable]
        held = self.namespace.says(MODEL, "Ready", "False", "RolledBack")
        assert f"version {self.stable}" in held
        return load


@pytest.fixture(scope="module", autouse=True)
def releases(namespace: Namespace, client: Client, images: Images, storage: str) -> Releases:
    """Return the model, whose version 1 serves on two servers that a Prometheus scrapes."""
    url = prometheus.start(namespace, images.runtime)
    namespace.apply(pool("releases", monitoring={"prometheus": {"url": url}}))
    made = Releases(namespace, client, storage)
    made.declare(1)
    namespace.ready()
    return made


def test_a_good_version_is_promoted_in_steps_without_a_failed_request(releases: Releases) -> None:
    with releases.client.load(MODEL, RELEASE_S, workers=6) as load:
        releases.declare(2)
        releases.until("Promoted", 2)
        releases.namespace.ready(MODEL)
        assert releases.client.version(MODEL) == [2]
    assert load.failed == []
    assert load.answers() == [[[1]], [[2]]]
    releases.stable = 2


def test_a_version_that_fails_is_taken_back(releases: Releases) -> None:
    load = releases.taken_back(3, fails=0.5)
    assert 0 < len(load.failed) <= SHARE * load.sent
    assert all("it fails" in message for _, message in load.failed)


def test_a_slow_version_is_taken_back(releases: Releases) -> None:
    assert releases.taken_back(4, work_s=3 * WORK_S).failed == []
    (record,) = [one for one in releases.rollout["history"] if one["version"] == 4]
    assert "serviceTime" in record["message"]


def test_a_version_that_crashes_is_taken_back(releases: Releases) -> None:
    load = releases.taken_back(5, crashes=True)
    assert 0 < len(load.failed) <= SHARE * load.sent


def test_a_version_that_answers_differently_in_shadow_meets_no_client(releases: Releases) -> None:
    shadow = {"shadow": {"traffic": "100%", "duration": "2s"}}
    # Nothing is mirrored while requests wait: what clients want comes first.
    load = releases.taken_back(6, workers=1, rollout={**ROLLOUT, **shadow})
    assert load.failed == []
    assert load.answers() == [[[2]]]


def test_an_operator_that_is_killed_in_the_middle_goes_on(
    releases: Releases, cluster: Cluster, record_property: Callable[[str, object], None]
) -> None:
    with releases.client.load(MODEL, RELEASE_S, workers=6) as load:
        releases.declare(7)
        releases.until("Stepping", 7)
        pod = cluster.read("pod", release.leader(cluster), "-n", release.NAMESPACE)
        podprocesses.kill(pod, "argosy operator")
        releases.until("Promoted", 7)
    record_property("rollout", releases.rollout)
    assert load.failed == []
    assert load.answers() == [[[2]], [[7]]]
