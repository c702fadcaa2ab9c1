"""What a rollout means for Ready, Reconciling and Stalled, and for the traffic in the status."""

import re
from dataclasses import replace

import pytest
from tests.operator.planning.declared import gpu_node
from tests.operator.planning.rolling import Rolling, model
from tests.operator.planning.simulated_cluster import Cluster

from argosy.api import ConditionStatus, ConditionType
from argosy.rollout.state import Phase
from argosy.rollout.verdict import Outcome

SHADOW = {"shadow": {"traffic": "10%"}, "steps": [{"traffic": "5%"}, {"traffic": "50%"}]}


@pytest.fixture
def rolling() -> Rolling:
    """Return a cluster on which version 1 serves."""
    started = Rolling(Cluster((gpu_node("a"),)))
    started.settle(model(1))
    return started


def kstatus(rolling: Rolling) -> str:
    """Return what kstatus computes from the conditions: Current, InProgress or Failed."""
    conditions = {condition.type: condition.status for condition in rolling.status.conditions}
    if conditions[ConditionType.STALLED] is ConditionStatus.TRUE:
        return "Failed"
    if conditions[ConditionType.RECONCILING] is ConditionStatus.TRUE:
        return "InProgress"
    return "Current" if conditions[ConditionType.READY] is ConditionStatus.TRUE else "InProgress"


def ready(rolling: Rolling) -> tuple[str, str]:
    condition = rolling.status.condition(ConditionType.READY)
    assert condition is not None
    return str(condition.reason), condition.message


def traffic(rolling: Rolling) -> dict[int, int | None]:
    return {entry.version: entry.traffic_percent for entry in rolling.status.versions}


def test_a_rollout_is_in_progress_with_how_far_and_then_current(rolling: Rolling) -> None:
    assert (kstatus(rolling), ready(rolling)[0]) == ("Current", "Serving")
    shadowed = model(2, rollout=SHADOW)
    rolling.tick(shadowed)
    assert kstatus(rolling) == "InProgress"
    rolling.until(shadowed, Phase.SHADOWING)
    assert "requests are mirrored to it" in ready(rolling)[1]
    assert traffic(rolling) == {1: None, 2: None}
    rolling.cluster.snapshot = replace(rolling.cluster.snapshot, evidence={})
    while rolling.state.phase is not Phase.STEPPING:
        rolling.judge(Outcome.SUCCESSFUL)
        rolling.tick(shadowed)
    reason, message = ready(rolling)
    one, two = (revision.name for revision in (rolling.state.stable, rolling.state.candidate) if revision is not None)
    assert reason == "RollingOut"
    assert message.startswith(
        f"revision {two} (version 2) is to replace revision {one} (version 1): step 1 of 2, 5% of requests; "
    )
    assert traffic(rolling) == {1: None, 2: None}, "no request was measured"
    assert rolling.status.active_version == 1
    rollout = rolling.status.rollout
    assert rollout is not None
    assert (rollout.step, rollout.steps, rollout.desired_traffic) == (1, 2, 50)
    rolling.pass_steps(shadowed, 400)
    rolling.settle(shadowed)
    assert (kstatus(rolling), ready(rolling)[0], traffic(rolling)) == ("Current", "Serving", {2: None})


def test_a_paused_rollout_says_so_and_stays_in_progress(rolling: Rolling) -> None:
    rolling.until(model(2), Phase.STEPPING)
    rolling.tick(model(2, annotations={"argosy.dev/pause": "true"}), 3)
    assert (kstatus(rolling), ready(rolling)[0]) == ("InProgress", "Paused")


def test_what_is_taken_back_has_failed_with_the_reason_while_the_stable_version_serves(rolling: Rolling) -> None:
    rolling.until(model(2), Phase.STEPPING)
    rolling.judge(Outcome.FAILED)
    rolling.until(model(2), Phase.ROLLING_BACK)
    assert kstatus(rolling) == "InProgress"
    assert re.search(r"\(version 1\) serves in place of revision \w+ \(version 2\)", ready(rolling)[1])
    rolling.until(model(2), Phase.HELD)
    rolling.settle(model(2))
    reason, message = ready(rolling)
    assert (kstatus(rolling), reason) == ("Failed", "RolledBack")
    assert "12 of 400 requests failed" in message
    assert "argosy.dev/retry: " in message
    assert rolling.status.available_replicas == 1
    rolling.settle(model(1))
    assert (kstatus(rolling), ready(rolling)[0]) == ("Current", "Serving")


def test_a_higher_version_that_is_retained_does_not_keep_a_lower_one_from_being_ready(rolling: Rolling) -> None:
    policy = {"latest": {"numVersions": 2}}
    for version in (1, 2, 1):
        retained = model(version, 10, versionPolicy=policy)
        rolling.tick(retained)
        rolling.pass_steps(retained)
        rolling.settle(retained)
    assert rolling.loaded() == [{1, 2}]
    assert (kstatus(rolling), rolling.status.active_version, traffic(rolling)) == ("Current", 1, {1: None, 2: None})
