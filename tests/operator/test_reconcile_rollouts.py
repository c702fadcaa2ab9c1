"""A new version is released in steps: weights follow the verdicts, a bad one is taken back, a restart goes on."""

from dataclasses import replace

import pytest
from tests.operator.planning.declared import gpu_node
from tests.operator.planning.rolling import Rolling, model
from tests.operator.planning.simulated_cluster import Cluster

from argosy.rollout.state import Phase
from argosy.rollout.verdict import Outcome


@pytest.fixture
def rolling() -> Rolling:
    """Return a cluster on which version 1 serves."""
    started = Rolling(Cluster((gpu_node("a"),)))
    started.settle(model(1))
    return started


def test_the_first_version_gets_all_requests(rolling: Rolling) -> None:
    assert rolling.weights() == [{1: 100}]
    assert rolling.loaded() == [{1}]
    assert rolling.status.ready
    assert rolling.state.stable is not None
    assert rolling.state.stable.version == 1


def test_a_good_version_gets_more_requests_step_by_step_and_then_all(rolling: Rolling) -> None:
    rolling.tick(model(2))
    assert rolling.weights() == [{1: 100}]
    rolling.until(model(2), Phase.STEPPING)
    assert rolling.loaded() == [{1, 2}]
    assert rolling.weights() == [{1: 90, 2: 10}]
    seen = [rolling.weights()[0]]
    for _ in range(100):
        rolling.judge(Outcome.SUCCESSFUL)
        rolling.tick(model(2))
        seen += [rolling.weights()[0]] if rolling.weights()[0] != seen[-1] else []
        assert rolling.cluster.routed() == {"m": {"p-0"}}
    assert seen == [{1: 90, 2: 10}, {1: 50, 2: 50}, {2: 100}]
    rolling.settle(model(2))
    assert rolling.state.phase is Phase.PROMOTED
    assert rolling.loaded() == [{2}]
    assert rolling.status.ready


def test_a_bad_version_loses_its_requests_in_the_round_of_the_verdict_and_is_held(rolling: Rolling) -> None:
    rolling.until(model(2), Phase.STEPPING)
    rolling.judge(Outcome.FAILED)
    rolling.tick(model(2))
    assert rolling.weights() == [{1: 100}]
    rolling.until(model(2), Phase.HELD)
    rolling.settle(model(2))
    assert rolling.loaded() == [{1}]
    rolling.tick(model(2), 60)
    assert (rolling.state.phase, rolling.loaded()) == (Phase.HELD, [{1}])
    assert rolling.status.rollout is not None
    assert [held.version for held in rolling.status.rollout.held] == [2]


def test_another_version_is_tried_after_a_bad_one(rolling: Rolling) -> None:
    rolling.until(model(2), Phase.STEPPING)
    rolling.judge(Outcome.FAILED)
    rolling.until(model(2), Phase.HELD)
    rolling.until(model(3), Phase.STEPPING)
    rolling.pass_steps(model(3))
    rolling.settle(model(3))
    assert rolling.loaded() == [{3}]


def test_an_annotation_tries_a_held_revision_again(rolling: Rolling) -> None:
    rolling.until(model(2), Phase.STEPPING)
    rolling.judge(Outcome.FAILED)
    rolling.until(model(2), Phase.HELD)
    name = rolling.state.failed[0].revision.name
    again = model(2, annotations={"argosy.dev/retry": name})
    rolling.until(again, Phase.STEPPING)
    assert rolling.weights() == [{1: 90, 2: 10}]


def test_a_version_that_does_not_load_is_taken_back(rolling: Rolling) -> None:
    rolling.cluster.crashes = frozenset({("m", 2)})
    rolling.until(model(2), Phase.HELD)
    rolling.settle(model(2))
    assert rolling.loaded() == [{1}]
    assert rolling.weights() == [{1: 100}]
    assert rolling.state.failed[0].reason == "CrashLoop"


def test_a_lower_version_is_released_in_steps_too(rolling: Rolling) -> None:
    rolling.until(model(5), Phase.STEPPING)
    rolling.pass_steps(model(5))
    rolling.settle(model(5))
    rolling.until(model(4), Phase.STEPPING)
    assert rolling.weights() == [{5: 90, 4: 10}]
    rolling.pass_steps(model(4))
    rolling.settle(model(4))
    assert rolling.loaded() == [{4}]
    assert rolling.weights() == [{4: 100}]


def test_the_former_version_stays_loaded_as_the_policy_says(rolling: Rolling) -> None:
    policy = {"latest": {"numVersions": 2}}
    for version in (1, 2, 3):
        retained = model(version, 10, versionPolicy=policy)
        rolling.tick(retained)
        rolling.pass_steps(retained)
        rolling.settle(retained)
    assert rolling.loaded() == [{2, 3}]
    assert rolling.weights() == [{3: 100}]
    back = model(2, 10, versionPolicy=policy)
    rolling.tick(back)
    rolling.pass_steps(back)
    rolling.settle(back)
    assert rolling.loaded() == [{2, 3}]
    assert rolling.weights() == [{2: 100}]


def test_a_revert_in_the_middle_unloads_the_candidate(rolling: Rolling) -> None:
    rolling.until(model(2), Phase.STEPPING)
    rolling.tick(model(1))
    assert rolling.weights() == [{1: 100}]
    rolling.settle(model(1))
    assert rolling.loaded() == [{1}]
    assert rolling.state.failed == ()


def test_two_pushes_in_the_middle_try_the_last_one(rolling: Rolling) -> None:
    rolling.until(model(2, 10), Phase.STEPPING)
    rolling.tick(model(3, 10))
    rolling.until(model(4, 10), Phase.STEPPING)
    assert rolling.weights() == [{1: 90, 4: 10}]
    assert rolling.loaded() == [{1, 4}]


@pytest.mark.parametrize("phase", [Phase.LOADING, Phase.STEPPING, Phase.PROMOTING])
def test_a_restarted_operator_goes_on(rolling: Rolling, phase: Phase) -> None:
    for _ in range(100):
        if rolling.state.phase is phase:
            break
        rolling.judge(Outcome.SUCCESSFUL)
        rolling.tick(model(2))
    before = rolling.state
    assert before.phase is phase
    rolling.cluster.forget()
    rolling.tick(model(2))
    assert rolling.state.number == before.number
    rolling.pass_steps(model(2))
    rolling.settle(model(2))
    assert rolling.loaded() == [{2}]


def test_a_restarted_operator_still_holds_what_failed(rolling: Rolling) -> None:
    rolling.until(model(2), Phase.STEPPING)
    rolling.judge(Outcome.FAILED)
    rolling.tick(model(2))
    rolling.cluster.forget()
    rolling.until(model(2), Phase.HELD)
    rolling.cluster.forget()
    rolling.settle(model(2))
    assert rolling.loaded() == [{1}]
    assert rolling.state.phase is Phase.HELD


def test_replicas_follow_the_declared_spec_while_the_candidate_is_held() -> None:
    rolling = Rolling(Cluster((gpu_node("a"), gpu_node("b"))))
    rolling.settle(model(1))
    rolling.until(model(2), Phase.STEPPING)
    rolling.judge(Outcome.FAILED)
    rolling.until(model(2), Phase.HELD)
    rolling.settle(model(2, minReplicas=2))
    assert rolling.loaded() == [{1}, {1}]


def test_a_new_server_gets_both_revisions_and_the_weights() -> None:
    rolling = Rolling(Cluster((gpu_node("a"), gpu_node("b"))))
    rolling.settle(model(1))
    rolling.until(model(2), Phase.STEPPING)
    rolling.tick(model(2, minReplicas=2), 20)
    assert rolling.weights() == [{1: 90, 2: 10}] * 2
    assert rolling.loaded() == [{1, 2}] * 2


def test_a_server_that_is_killed_comes_back_with_both(rolling: Rolling) -> None:
    rolling.until(model(2), Phase.STEPPING)
    rolling.cluster.restart("p-0")
    rolling.tick(model(2), 20)
    assert rolling.weights() == [{1: 90, 2: 10}]
    assert rolling.loaded() == [{1, 2}]


def test_without_steps_a_new_version_takes_all_requests_once_it_is_loaded(rolling: Rolling) -> None:
    plain = model(2, rollout=None)
    rolling.cluster.settle([rolling.pool, plain])
    assert rolling.cluster.outcome is not None
    assert rolling.cluster.outcome.rollouts.members == {}
    assert rolling.weights() == [{}]
    assert rolling.loaded() == [{2}]


def test_a_changed_configuration_needs_another_version(rolling: Rolling) -> None:
    changed = model(1, maxBatchSize=8)
    outcome = rolling.cluster.settle([rolling.pool, changed])
    (problem,) = outcome.problems
    assert problem.path == "spec.version"
    assert rolling.loaded() == [{1}]
    settled = replace(rolling.state)
    assert settled.phase is Phase.STABLE


def test_requests_are_divided_otherwise_before_anything_is_loaded_or_unloaded(rolling: Rolling) -> None:
    rolling.until(model(2), Phase.STEPPING)
    rolling.tick(model(2), 5)
    rolling.judge(Outcome.FAILED)
    rolling.tick(model(2))
    assert (rolling.desired(), rolling.weights()) == ([{1, 2}], [{1: 100}])
    rolling.tick(model(2))
    assert (rolling.desired(), rolling.weights()) == ([{1}], [{1: 100}])


def test_a_candidate_that_gives_way_to_another_loses_its_requests_first(rolling: Rolling) -> None:
    rolling.until(model(2, 10), Phase.STEPPING)
    rolling.tick(model(2, 10), 5)
    rolling.tick(model(3, 10))
    assert (rolling.desired(), rolling.weights()) == ([{1, 2}], [{1: 100}])
    rolling.tick(model(3, 10))
    assert (rolling.desired(), rolling.weights()) == ([{1, 3}], [{1: 100}])


def test_it_is_not_ready_until_the_declared_version_has_all_requests(rolling: Rolling) -> None:
    rolling.until(model(2), Phase.STEPPING)
    rolling.tick(model(2), 5)
    assert rolling.condition("Ready") == ("False", "RollingOut")
    assert rolling.condition("Reconciling") == ("True", "RollingOut")
    rolling.pass_steps(model(2))
    rolling.settle(model(2))
    assert rolling.condition("Ready") == ("True", "Serving")


def test_a_version_that_was_taken_back_leaves_its_model_stalled(rolling: Rolling) -> None:
    rolling.until(model(2), Phase.STEPPING)
    rolling.judge(Outcome.FAILED)
    rolling.until(model(2), Phase.HELD)
    rolling.settle(model(2))
    assert rolling.condition("Stalled") == ("True", "RolledBack")
    assert rolling.condition("Available") == ("True", "Available")


def test_the_status_has_the_traffic_that_was_measured(rolling: Rolling) -> None:
    rolling.until(model(2), Phase.STEPPING)
    rolling.tick(model(2), 5)
    rolling.judge(Outcome.INCONCLUSIVE, traffic=0.12)
    rolling.tick(model(2))
    assert {entry.version: entry.traffic_percent for entry in rolling.status.versions} == {1: 88, 2: 12}
    assert rolling.status.active_version == 1
    rollout = rolling.status.rollout
    assert rollout is not None
    assert (rollout.step, rollout.steps, rollout.desired_traffic, rollout.traffic) == (1, 2, 100, 120)
