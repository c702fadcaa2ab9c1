"""On NVIDIA's server a new version gets all requests at once, is analyzed, and stays or is taken back."""

import pytest
from tests.operator.planning.declared import gpu_node
from tests.operator.planning.rolling import Rolling, model
from tests.operator.planning.simulated_cluster import Cluster

from argosy.analysis.subjects import subjects
from argosy.rollout.state import Phase
from argosy.rollout.verdict import Outcome

SWITCH = {"rollout": {"steps": [{"traffic": "100%", "pause": "30s"}], "analysis": {"onInconclusive": "Rollback"}}}


@pytest.fixture
def rolling() -> Rolling:
    """Return a pool with NVIDIA's server, on which version 1 serves."""
    started = Rolling(Cluster((gpu_node("a"),)), runtime={"name": "triton"})
    started.settle(model(1, **SWITCH))
    return started


def test_a_good_version_is_promoted_after_a_switch(rolling: Rolling) -> None:
    rolling.until(model(2, **SWITCH), Phase.STEPPING)
    assert rolling.loaded() == [{1, 2}]
    assert rolling.weights() == [{}]  # its configuration says nothing of weights
    rolling.tick(model(2, **SWITCH), 60)
    assert (rolling.state.phase, rolling.state.waiting) == (Phase.STEPPING, "Verdict")
    rolling.pass_steps(model(2, **SWITCH))
    rolling.settle(model(2, **SWITCH))
    assert rolling.state.phase is Phase.PROMOTED
    assert rolling.loaded() == [{2}]


def test_a_bad_version_is_unloaded_so_that_the_former_answers(rolling: Rolling) -> None:
    rolling.until(model(2, **SWITCH), Phase.STEPPING)
    rolling.judge(Outcome.FAILED)
    rolling.until(model(2, **SWITCH), Phase.HELD)
    rolling.settle(model(2, **SWITCH))
    assert rolling.loaded() == [{1}]


def test_durations_are_not_compared_for_lack_of_histograms(rolling: Rolling) -> None:
    rolling.until(model(2, **SWITCH), Phase.STEPPING)
    assert rolling.cluster.outcome is not None
    (one,) = subjects(rolling.cluster.outcome.rollouts.members, rolling.pool).values()
    latency = one.measurable.latency
    assert (latency.service_time, latency.p50, latency.p95, latency.p99) == (None, None, None, None)


def test_a_configuration_that_differs_is_refused_together_with_a_new_version(rolling: Rolling) -> None:
    changed = model(2, maxBatchSize=4, **SWITCH)
    rolling.settle(changed)
    assert rolling.loaded() == [{1}]
    assert rolling.status.conditions
    (valid,) = (one for one in rolling.status.conditions if one.type == "Valid")
    assert "spec.maxBatchSize: differs from the version that serves" in valid.message
