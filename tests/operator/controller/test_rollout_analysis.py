"""From readings of versions to weights: a bad version goes in the round after its verdict, a good one is promoted."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.operator.analysis.versions import answered
from tests.operator.planning.declared import gpu_node
from tests.operator.planning.rolling import MODEL, Rolling, model
from tests.operator.planning.simulated_cluster import POOL, Cluster

from argosy.api import InferenceModel
from argosy.api.values.identity import PoolKey
from argosy.autoscaling.metrics.signals import PoolSignals
from argosy.autoscaling.metrics.version_counts import VersionSignals
from argosy.rollout.state import Phase
from argosy.scaling import Holding, Scaling


class AnalyzedRollout:
    """A rollout of `m` from version 1 to 2 whose versions are read each second."""

    def __init__(self) -> None:
        prometheus = {"prometheus": {"url": "http://prometheus:9090"}}
        self.rolling = Rolling(Cluster((gpu_node("a"),)), monitoring=prometheus)
        self.rolling.settle(model(1))
        self.rounds: list[PoolKey] = []
        self.start()

    def start(self) -> None:
        """Start another operator, which knows what the cluster has."""
        cluster = self.rolling.cluster
        self.scaling = Scaling(lambda _: Holding(), self.rounds.append, lambda: cluster.now, records=True)

    def second(self, candidate: VersionSignals, member: InferenceModel | None = None, **signals: object) -> None:
        """Run a round, and read 100 requests of the stable version and those of the candidate."""
        cluster, declared = self.rolling.cluster, member or model(2)
        decided = self.scaling.before(POOL, [declared])
        cluster.snapshot = replace(cluster.snapshot, evidence=decided.evidence, recordings=decided.recordings)
        self.rolling.tick(declared)
        assert cluster.outcome is not None
        self.scaling.after(POOL, cluster.outcome)
        versions = {"m": {1: answered(100), 2: candidate}}
        self.scaling.measured(POOL, PoolSignals(versions=versions, **signals))  # type: ignore[arg-type]

    def until(self, phase: Phase, candidate: VersionSignals, seconds: int = 300) -> int:
        """Return after how many seconds the rollout is in a phase."""
        for second in range(seconds):
            self.second(candidate)
            if self.rolling.state.phase is phase:
                return second
        raise AssertionError(f"it is not {phase}: {self.rolling.state}")


@pytest.fixture
def analyzed() -> AnalyzedRollout:
    return AnalyzedRollout()


def test_a_good_version_is_promoted_by_its_evidence(analyzed: AnalyzedRollout) -> None:
    analyzed.until(Phase.STEPPING, answered(0))
    assert analyzed.scaling.analysis_targets(POOL).under_way
    analyzed.until(Phase.PROMOTED, answered(20))
    assert analyzed.rolling.weights() == [{2: 100}]
    history = analyzed.rolling.state.history[0]
    assert history.outcome == "Promoted"
    assert not analyzed.scaling.analysis_targets(POOL).under_way


def test_a_bad_version_loses_its_requests_in_the_next_round(analyzed: AnalyzedRollout) -> None:
    analyzed.until(Phase.STEPPING, answered(0))
    analyzed.rounds.clear()
    analyzed.second(answered(20, 3))
    assert analyzed.rounds == [POOL]
    assert analyzed.rolling.weights() == [{1: 90, 2: 10}]
    analyzed.second(answered(0))
    assert analyzed.rolling.weights() == [{1: 100}]
    analyzed.until(Phase.HELD, answered(0))
    held = analyzed.rolling.state.failed[0]
    assert (held.revision.version, held.reason, held.message) == (2, "ErrorRate", "errorRate: 3 of 20 requests failed")


def test_measurements_that_say_nothing_new_ask_for_no_round(analyzed: AnalyzedRollout) -> None:
    analyzed.until(Phase.STEPPING, answered(0))
    analyzed.second(answered(1))
    analyzed.rounds.clear()
    for _ in range(5):
        analyzed.second(answered(1))
    assert analyzed.rounds == []


def test_another_operator_goes_on_with_the_requests_of_the_former(analyzed: AnalyzedRollout) -> None:
    analyzed.until(Phase.STEPPING, answered(0))
    for _ in range(15):
        analyzed.second(answered(10, 0))
    analyzed.start()
    analyzed.second(answered(1, 1))
    analyzed.second(answered(0))
    verdict = analyzed.rolling.state.verdict
    assert verdict is not None
    # What was read since the last report of the former operator, ten seconds at most, is not known.
    assert verdict.message == "errorRate: 1 of 111 requests failed"


def test_queries_have_the_versions_of_the_rollout(analyzed: AnalyzedRollout) -> None:
    query = {"name": "q", "query": "x{v='$(version)',w='$(stableVersion)'}", "successCondition": "result > 0"}
    steps = {"steps": [{"traffic": "10%"}], "analysis": {"queries": [query]}}
    for _ in range(10):
        analyzed.second(answered(0), model(2, rollout=steps))
    assert analyzed.rolling.state.phase is Phase.STEPPING
    targets = analyzed.scaling.analysis_targets(POOL)
    assert targets.queries == (("m", "rollout/q", "x{v='2',w='1'}"),)
    assert targets.warm_up_s == {"m": 30.0}


def test_a_fault_of_ours_leaves_the_verdicts(analyzed: AnalyzedRollout, monkeypatch: pytest.MonkeyPatch) -> None:
    analyzed.until(Phase.STEPPING, answered(0))
    analyzed.second(answered(5))
    before = analyzed.scaling.before(POOL, [model(2)]).evidence[MODEL]

    def broken(*_: object) -> Mapping[str, object]:
        raise ZeroDivisionError

    monkeypatch.setattr("argosy.scaling.analyzed", broken)
    analyzed.second(answered(5))
    assert analyzed.scaling.before(POOL, [model(2)]).evidence[MODEL] == before
