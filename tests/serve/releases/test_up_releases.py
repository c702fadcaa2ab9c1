"""Versions that `argosy up` releases under an open-loop load: what clients meet of each, by exact counts."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.parts.up import Up
from tests.serve.releases.load import RATE, Load
from tests.serve.releases.releases import QUICK, STEPS, Releases, started
from tests.serve.releases.watch import Watch, became_ready_once, exactly_divided, no_more_than_divided

pytestmark = pytest.mark.timeout(600)

STEP = 0.25


def by_default(*shares: float) -> dict[str, Any]:
    """Return a rollout with these steps, and with the default limits of errors, 0.1% and 1%."""
    steps = [{"traffic": f"{share:.0%}", "pause": "0s"} for share in shares]
    return {"steps": steps, "analysis": {"warmUp": "0s", "latency": {"serviceTime": 2}}}


PINNED: dict[str, Any] = {"steps": [{"traffic": "20%", "pause": "1h"}], "analysis": {**QUICK, "timeout": "2h"}}
"""The first step lasts."""
SHADOW: dict[str, Any] = {
    "shadow": {
        "traffic": "100%",
        "duration": "1s",
        "maxDifferent": "20%",
        "tolerances": [{"output": "BUILD", "absolute": 1000}, {"output": "SCORE", "absolute": 0.01}],
    }
}
AFTER_S = 1.5
"""For so long after a promotion the condition Ready is watched: rounds follow each other within a second."""


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Releases]:
    """Yield the model, whose version 1 serves. The tests build on one another, in their order."""
    with started(Up(tmp_path_factory.mktemp("releases"))) as releases:
        yield releases


def taken_back(
    releases: Releases, version: int, share: float, rate: float = RATE, **spec: Any
) -> tuple[Load, Watch, dict[str, Any]]:
    """Release a bad version under load. Return load and watch once it is held and the stable one answers.

    Assert that no more of the requests than the step's share met it, and none after it was taken back.
    """
    stable = releases.rollout["stable"]["version"]
    with Watch(releases.up) as watch, releases.load(rate) as load:
        load.answered(20)
        releases.declare(version, **spec)
        held = releases.held(version)
        back = time.monotonic()
        load.answered(20)
    assert {answer.version for answer in load.sent_after(back)} == {stable}
    assert {answer.version for answer in load.answers} <= {0, stable, version}
    no_more_than_divided(watch, version)
    assert all(divided.weights.get(version, 0) <= share * 1e6 for divided in watch.divided), watch.divided
    return load, watch, held


def test_a_good_version_fails_and_misroutes_no_request(releases: Releases) -> None:
    with Watch(releases.up) as watch, releases.load() as load:
        load.answered(50)
        build = releases.declare(2, by_default(0.5, 0.75))
        releases.promoted(2)
        promoted = time.monotonic()
        time.sleep(AFTER_S)
    assert load.failed == []
    assert {(answer.version, answer.build) for answer in load.answers} == {(1, 1), (2, build)}
    assert {answer.version for answer in load.sent_after(promoted)} == {2}
    exactly_divided(watch)
    assert [divided.weights[2] / 1e6 for divided in watch.divided if 0 < divided.weights.get(2, 0) < 1e6] == [0.5, 0.75]
    proven = sum(divided.sent[2] for divided in watch.divided if 0 < divided.weights.get(2, 0) < 1e6)
    assert proven > 600, "each step was proven by the default limits, which takes 326 requests"
    assert sum(watch.met(version) for version in (1, 2)) == len(load.answers)
    became_ready_once(watch)


def test_a_version_that_does_not_load_meets_no_request(releases: Releases) -> None:
    load, watch, held = taken_back(releases, 3, 0.0, broken=True)
    assert load.failed == []
    assert "no weights" in held["message"]
    assert watch.phases[0] == "Promoted"


def test_a_version_that_fails_one_percent_is_convicted_by_the_default_limits(releases: Releases) -> None:
    load, watch, held = taken_back(releases, 4, 0.5, rollout=by_default(STEP, 0.5), fails_every=100)
    assert held["reason"] == "ErrorRate", held
    assert all("fails" in error for error in load.failed)
    met = watch.met(4)
    assert 2 <= len(load.failed) <= met / 100 + 1


def test_a_version_that_is_three_times_slower_is_convicted(releases: Releases) -> None:
    load, _, held = taken_back(releases, 5, STEP, rollout=by_default(STEP), work_s=0.015)
    assert load.failed == []
    assert "serviceTime" in held["message"]


def test_a_version_that_crashes_at_the_first_request_is_taken_back(releases: Releases) -> None:
    load, watch, held = taken_back(releases, 6, 0.2, crashes=True)
    met = watch.met(6)
    assert 0 < len(load.failed) <= met, held


def test_a_version_that_answers_differently_in_shadow_meets_no_client(releases: Releases) -> None:
    # At a low rate: nothing is mirrored while requests wait.
    load, _, held = taken_back(releases, 7, 0.0, 20.0, rollout=SHADOW, score=0.8)
    assert load.failed == []
    assert held["reason"] == "DifferentAnswers"


def test_a_version_that_hangs_is_taken_back_though_it_cannot_be_unloaded(releases: Releases, tmp_path: Path) -> None:
    stable = releases.rollout["stable"]["version"]
    with Watch(releases.up) as watch, releases.load(timeout_s=1) as load:
        load.answered(50)
        releases.declare(8, hangs_until=str(tmp_path / "go on"))
        releases.phase("RollingBack", 8)
        load.answered(60)
        back = load.answers[-1].at
        load.answered(60)
        assert releases.rollout["phase"] == "RollingBack"
        (tmp_path / "go on").touch()
        held = releases.held(8)
    assert {answer.version for answer in load.sent_after(back)} == {stable}
    assert "unanswered" in held["message"]
    exactly_divided(watch)
    assert 0 < len(load.failed) <= watch.met(8)
    assert all("Timeout" in error for error in load.failed)


def test_of_two_pushes_in_the_middle_the_latter_is_released(releases: Releases) -> None:
    with Watch(releases.up) as watch, releases.load() as load:
        releases.declare(9, PINNED)
        releases.phase("Stepping", 9)
        load.answered(60)
        first = releases.build
        releases.declare(10, PINNED)
        latter = releases.declare(11)
        releases.promoted(11)
        promoted = time.monotonic()
        time.sleep(AFTER_S)
    assert load.failed == []
    assert set(load.builds) <= {2, first, latter}
    assert {answer.build for answer in load.sent_after(promoted)} == {latter}
    exactly_divided(watch)
    endings = {entry["version"]: entry["outcome"] for entry in releases.rollout["history"]}
    assert (endings[9], endings[11]) == ("Superseded", "Promoted")
    became_ready_once(watch)


def test_a_revert_in_the_middle_gives_all_requests_back(releases: Releases) -> None:
    stable = releases.build
    with Watch(releases.up) as watch, releases.load() as load:
        reverted = releases.declare(12, PINNED)
        releases.phase("Stepping", 12)
        load.answered(60)
        releases.redeclare(11, stable)
        releases.phase("Stable", 11, "stable")
        load.answered(30)  # the status is written just before the servers get their weights
        back = load.answers[-1].at
        time.sleep(AFTER_S)
    assert load.failed == []
    assert set(load.builds) == {stable, reverted}
    assert {answer.build for answer in load.sent_after(back)} == {stable}
    exactly_divided(watch)
    assert releases.rollout["history"][0]["outcome"] == "Withdrawn"


@pytest.mark.parametrize("version", [3, 2], ids=["one that failed", "one that served"])
def test_a_version_number_that_was_there_before_with_other_files_is_a_new_revision(
    releases: Releases, version: int
) -> None:
    stable = releases.build
    with Watch(releases.up) as watch, releases.load() as load:
        build = releases.declare(version)
        releases.promoted(version)
        promoted = time.monotonic()
        time.sleep(AFTER_S)
    assert load.failed == []
    assert stable != build
    assert {answer.build for answer in load.sent_after(promoted)} == {build}
    exactly_divided(watch)
    became_ready_once(watch)


def test_a_server_that_is_killed_in_a_step_convicts_nothing(releases: Releases) -> None:
    stable = releases.build
    with releases.load() as load:
        build = releases.declare(20, {"steps": [{"traffic": "20%", "pause": "2s"}, STEPS[1]]})
        releases.phase("Stepping", 20)
        load.answered(60)
        releases.kill_server()
        releases.promoted(20)
        promoted = time.monotonic()
        time.sleep(AFTER_S)
    assert set(load.builds) == {0, stable, build}
    assert {answer.build for answer in load.sent_after(promoted)} == {build}
    assert not [error for error in load.failed if "fails" in error]
