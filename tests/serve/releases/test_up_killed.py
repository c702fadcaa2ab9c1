"""`argosy up` is killed in each phase of a rollout, and started again: no request fails, and the outcome is right."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.parts.up import Up
from tests.serve.releases.releases import QUICK, STEPS, Releases, started
from tests.serve.releases.watch import Watch, exactly_divided

pytestmark = pytest.mark.timeout(600)

SHADOW: dict[str, Any] = {
    "shadow": {"traffic": "100%", "duration": "3s", "tolerances": [{"output": "BUILD", "absolute": 1000}]},
    "analysis": {**QUICK, "timeout": "1m", "onInconclusive": "Promote"},
}
LONGER: dict[str, Any] = {"steps": [{"traffic": "20%", "pause": "3s"}, *STEPS[1:]]}
RATE = 40.0
PATIENCE_S = 60.0
LOOKS_S = 0.002
"""Between two looks at the status while a phase is awaited that lasts some milliseconds."""


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Releases]:
    """Yield the model, whose version 1 serves."""
    with started(Up(tmp_path_factory.mktemp("killed"))) as releases:
        yield releases


def killed_in(releases: Releases, phase: str) -> bool:
    """Kill `argosy up` in a phase, and start it again. Return whether the phase was what it had written last."""
    end = time.monotonic() + PATIENCE_S
    while (now := releases.rollout.get("phase")) != phase:
        assert time.monotonic() < end, now
        time.sleep(LOOKS_S)
    releases.up.kill()
    last = releases.rollout["phase"]
    releases.up.start()
    return bool(last == phase)


@pytest.mark.parametrize(
    ("phase", "rollout"),
    [("Loading", {}), ("Shadowing", SHADOW), ("Stepping", LONGER), ("Promoting", {})],
)
def test_a_good_version_is_promoted_nevertheless(
    releases: Releases, phase: str, rollout: dict[str, Any], tmp_path: Path
) -> None:
    settings = {"loads_at": str(tmp_path / "go on")} if phase == "Loading" else {}
    for _ in range(5):
        stable, version = releases.build, releases.rollout["stable"]["version"] + 1
        with Watch(releases.up) as watch, releases.load(RATE) as load:
            build = releases.declare(version, rollout, **settings)
            is_hit = killed_in(releases, phase)
            releases.restarted()
            (tmp_path / "go on").touch()
            releases.promoted(version)
            promoted = time.monotonic()
            load.answered(20)
        assert load.failed == []
        assert load.builds.keys() == {stable, build}
        assert {answer.build for answer in load.sent_after(promoted)} == {build}
        exactly_divided(watch)
        if is_hit:
            return
    raise AssertionError(f"{phase} was over before the end of the process, five times in a row")


def test_a_bad_version_is_taken_back_nevertheless(releases: Releases, tmp_path: Path) -> None:
    stable, version = releases.build, releases.rollout["stable"]["version"] + 1
    with Watch(releases.up) as watch, releases.load(RATE) as load:
        bad = releases.declare(version, fails_every=2, unloads_at=str(tmp_path / "go on"))
        assert killed_in(releases, "RollingBack")
        releases.restarted()
        assert releases.rollout["phase"] == "RollingBack"
        (tmp_path / "go on").touch()
        held = releases.held(version)
        back = time.monotonic()
        assert killed_in(releases, "Held")
        releases.restarted()
        load.answered(40)
        assert releases.held(version) == held
    assert load.builds.keys() <= {0, stable, bad}
    assert 0 < load.builds[0] + load.builds[bad] <= watch.met(version)
    assert {answer.build for answer in load.sent_after(back)} == {stable}
    exactly_divided(watch)
    assert all(divided.weights.get(version, 0) <= 0.2e6 for divided in watch.divided)
