"""Rounds of rollouts are decided the same from their bundles: of models, of ensembles, on NVIDIA's server."""

import json
from collections.abc import Iterator
from datetime import datetime

import pytest
from tests.operator.planning import simulated_cluster
from tests.operator.planning.declared import ensemble, gpu_node, model, pool
from tests.operator.planning.rolling import STEPS, Rolling
from tests.operator.planning.rolling import model as released
from tests.operator.planning.simulated_cluster import Cluster

from argosy.api.values.reuse import RoundCache
from argosy.planning.migration.pool_migration import DRAIN_PERIOD
from argosy.reconcile import RoundOutcome, reconcile
from argosy.replay.bundle import bundle_document, parsed_bundle
from argosy.replay.decisions import replayed
from argosy.rollout.state import Phase
from argosy.rollout.verdict import Outcome
from argosy.snapshot import FleetSnapshot


@pytest.fixture
def bundles(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Yield the bundles of all rounds that the simulated cluster runs, and replay every third in the end."""
    texts: list[str] = []

    def recorded(snapshot: FleetSnapshot, now: datetime, cache: RoundCache) -> RoundOutcome:
        outcome = reconcile(snapshot, now, cache=cache)
        texts.append(json.dumps(bundle_document("1", snapshot, now, DRAIN_PERIOD, outcome)))
        return outcome

    monkeypatch.setattr(simulated_cluster, "reconcile", recorded)
    yield texts
    assert len(texts) > 10
    for number, text in enumerate(texts[::3]):
        assert [str(one) for one in replayed(parsed_bundle(text)).differences] == [], number


@pytest.mark.parametrize("runtime", ["argosy", "triton"])
def test_a_good_and_a_bad_version(bundles: list[str], runtime: str) -> None:
    steps = [{"traffic": "100%", "pause": "5s"}] if runtime == "triton" else [{"traffic": "10%", "pause": "5s"}]
    rolling = Rolling(Cluster((gpu_node("a"),)), runtime={"name": runtime})
    rolling.settle(released(1, rollout={"steps": steps}))
    rolling.until(released(2, rollout={"steps": steps}), Phase.STEPPING)
    rolling.pass_steps(released(2, rollout={"steps": steps}))
    rolling.until(released(3, rollout={"steps": steps}), Phase.STEPPING)
    rolling.judge(Outcome.FAILED)
    rolling.until(released(3, rollout={"steps": steps}), Phase.HELD)
    rolling.tick(released(3, rollout={"steps": steps}), 3)


def test_an_ensemble_as_one_unit(bundles: list[str]) -> None:
    cluster = Cluster((gpu_node("a"),))

    def declared(version: int) -> list:
        return [pool(), model("a", version, 5), model("b", 1, 5), ensemble("e", "a", "b", rollout={"steps": STEPS})]

    cluster.settle(declared(1))
    for _ in range(12):
        cluster.tick(declared(2))
