"""How a candidate replaces what serves follows from what is free, and the status says which way and why beforehand."""

from dataclasses import replace
from typing import Any

import pytest
from tests.operator.planning import declared
from tests.operator.planning.declared import gpu_node, pool
from tests.operator.planning.rolling import Rolling, model
from tests.operator.planning.simulated_cluster import POOL, Cluster

from argosy.analysis.subjects import subjects
from argosy.api import InferenceModel
from argosy.rollout.state import Phase
from argosy.rollout.verdict import Outcome

WEIGHED = 2
"""Rounds until servers have the weights that send no request to a candidate, before anything else changes there."""


def rolling(*nodes: int, memory: int = 60, **spec: Any) -> Rolling:
    """Return a cluster with nodes of so many GPUs of 80 GiB, on which version 1 serves."""
    started = Rolling(Cluster(tuple(gpu_node(f"n{at}", gpus) for at, gpus in enumerate(nodes))))
    started.settle(model(1, memory, **spec))
    return started


def strategy(started: Rolling) -> tuple[str, str]:
    assert started.status.rollout is not None
    return started.status.rollout.strategy, started.status.rollout.strategy_message


def test_both_versions_are_loaded_on_a_server_with_memory_for_both() -> None:
    started = rolling(1, memory=20)
    started.until(model(2, 20), Phase.STEPPING)
    assert strategy(started) == (
        "SurgeInPlace",
        "there is memory for both: version 2 is loaded next to version 1 on 1 server",
    )
    assert started.weights() == [{1: 90, 2: 10}]


def test_one_replica_without_memory_for_both_goes_on_serving_and_the_status_says_what_helps() -> None:
    started = rolling(1)
    started.tick(model(2, 60), 60)
    assert started.loaded() == [{1}]
    name, message = strategy(started)
    assert name == ""
    assert message == (
        "version 2 of m needs 60 GiB on GPU 0 of node n0, where 20 GiB are free next to what is loaded, no GPU is "
        "free, and no other replica serves: version 1 goes on serving, and version 2 waits. Free GPU memory; or raise "
        "minReplicas to 2 until it has changed, so that one replica changes while the other serves; or set "
        "rollout.strategy to Recreate, which unloads the former one first"
    )
    assert started.state.phase is Phase.LOADING
    assert started.state.waiting == "NoMemory"


def recreated(version: int, memory: int = 60) -> InferenceModel:
    return model(version, memory, rollout={"strategy": "Recreate", "steps": [{"traffic": "10%", "pause": "30s"}]})


@pytest.mark.parametrize("memory", [10, 60])
def test_recreate_is_obeyed_and_the_new_version_is_analyzed_with_all_requests(memory: int) -> None:
    started = Rolling(Cluster((gpu_node("a"),)))
    started.settle(recreated(1, memory))
    started.tick(recreated(2, memory))
    assert started.loaded() == [{1}], "it is said before anything is unloaded"
    name, message = strategy(started)
    assert name == "Recreate"
    assert "no replica serves, and requests fail" in message
    seen: list[list[set[int]]] = []
    for _ in range(60):
        started.tick(recreated(2, memory))
        if not seen or seen[-1] != started.loaded():
            seen.append(started.loaded())
        if started.state.phase is Phase.STEPPING:
            break
    assert seen == [[{1}], [], [{2}]]
    assert started.weights() == [{2: 100}]
    started.pass_steps(recreated(2, memory))
    assert started.loaded() == [{2}]


def test_a_version_that_failed_after_it_was_recreated_gives_way_to_the_former_one() -> None:
    started = Rolling(Cluster((gpu_node("a"),)))
    started.settle(recreated(1))
    started.until(recreated(2), Phase.STEPPING)
    started.judge(Outcome.FAILED)
    started.until(recreated(2), Phase.HELD)
    started.settle(recreated(2))
    assert started.loaded() == [{1}]
    assert started.cluster.routed() == {"m": {"p-0"}}


def test_requests_that_an_activator_queues_let_one_replica_be_recreated() -> None:
    spec = {"minReplicas": 0, "replicas": 1}
    started = rolling(1, **spec)
    started.cluster.snapshot = replace(
        started.cluster.snapshot,
        pools={POOL: replace(started.cluster.snapshot.pool(POOL), holds=True)},
    )
    started.tick(model(2, 60, **spec), 3)
    assert strategy(started)[0] == "Recreate"
    assert started.loaded() == [{1}]
    assert "the activator queues requests" in strategy(started)[1]
    started.until(model(2, 60, **spec), Phase.STEPPING)
    assert started.loaded() == [{2}]


@pytest.mark.parametrize("declared_strategy", [None, "Recreate"])
def test_steps_are_shares_of_the_replicas_where_no_server_has_memory_for_both(declared_strategy: str | None) -> None:
    rollout = {"steps": [{"traffic": share, "pause": "30s"} for share in ("5%", "50%")]}
    rollout |= {"strategy": declared_strategy} if declared_strategy else {}
    spec = {"minReplicas": 4, "rollout": rollout}
    started = rolling(1, 1, 1, 1, **spec)
    new, seen = model(2, 60, **spec), list[int]()
    for _ in range(300):
        started.judge(Outcome.SUCCESSFUL)
        started.tick(new)
        assert len(started.cluster.routed().get("m", ())) >= 3, "one replica changes at a time"
        assert all(len(versions) == 1 for versions in started.loaded())
        count = sum(versions == {2} for versions in started.loaded())
        seen += [count] if not seen or seen[-1] != count else []
        limit = {Phase.LOADING: 1, Phase.STEPPING: (1, 2)[started.state.step]}.get(started.state.phase, 4)
        assert count <= limit
        if started.state.phase is Phase.PROMOTED:
            break
    started.settle(new)
    assert started.loaded() == [{2}] * 4
    assert sorted(set(seen) | {4}) == [0, 1, 2, 3, 4]


def test_shares_by_replicas_are_reported() -> None:
    spec = {"minReplicas": 4}
    started = rolling(1, 1, 1, 1, **spec)
    started.until(model(2, 60, **spec), Phase.STEPPING)
    name, message = strategy(started)
    assert name == "ReplicaByReplica"
    assert message.endswith("so steps of 10%, 50% have 25%, 50% (1, 2 of 4 replicas)")


def test_a_version_that_cannot_be_mirrored_is_not_promoted_without_a_verdict() -> None:
    spec = {"minReplicas": 4, "rollout": {"shadow": {"traffic": "10%"}}}
    started, new = rolling(1, 1, 1, 1, **spec), model(2, 60, **spec)
    started.until(new, Phase.STEPPING)
    started.tick(new, rounds=120)
    assert (started.state.phase, started.loaded().count({2})) == (Phase.STEPPING, 1)
    assert strategy(started)[1].endswith("a step of 10% has 25% (1 of 4 replicas)")


def test_a_bad_version_on_one_of_several_replicas_is_replaced_there() -> None:
    spec = {"minReplicas": 2}
    started = rolling(1, 1, **spec)
    new = model(2, 60, **spec)
    started.until(new, Phase.STEPPING)
    assert sorted(map(sorted, started.loaded())) == [[1], [2]]
    started.judge(Outcome.FAILED)
    for _ in range(60):
        started.tick(new)
        assert started.cluster.routed().get("m")
    started.settle(new)
    assert (started.state.phase, started.loaded()) == (Phase.HELD, [{1}, {1}])


def test_one_replica_without_memory_for_both_gets_another_one_on_a_free_gpu_for_a_while() -> None:
    started = rolling(1, 1)
    assert started.loaded() == [{1}]
    new, seen = model(2, 60), set[int]()
    for _ in range(300):
        started.judge(Outcome.SUCCESSFUL)
        started.tick(new)
        assert started.cluster.routed().get("m"), "one replica serves all the while"
        seen.add(len(started.loaded()))
        if started.state.phase is Phase.STEPPING:
            assert strategy(started)[0] == "SurgeFreeGpus"
            assert "so steps of 10%, 50% have 50%, 50% (1, 1 of 2 replicas)" in strategy(started)[1]
            assert sorted(map(sorted, started.loaded())) == [[1], [2]]
        if started.state.phase is Phase.PROMOTED:
            break
    started.settle(new)
    assert started.state.phase is Phase.PROMOTED
    assert (started.loaded(), max(seen)) == ([{2}], 2)


def test_a_bad_version_on_a_free_gpu_leaves_the_replica_that_serves_as_it_is() -> None:
    started = rolling(1, 1)
    new = model(2, 60)
    started.until(new, Phase.STEPPING)
    started.judge(Outcome.FAILED)
    for _ in range(60):
        started.tick(new)
        assert "p-0" in started.cluster.routed().get("m", ())
    started.settle(new)
    assert (started.state.phase, started.loaded()) == (Phase.HELD, [{1}])


def test_an_ensemble_without_memory_for_both_revisions_keeps_serving_and_changes_replica_by_replica() -> None:
    def e(**spec: Any) -> Any:
        return declared.ensemble("e", "m", rollout={"steps": [{"traffic": "10%", "pause": "30s"}]}, **spec)

    def m(version: int) -> Any:
        return declared.model("m", version, 60, minReplicas=2)

    cluster = Cluster((gpu_node("a"), gpu_node("b")))
    cluster.settle([pool(), m(1), e()])
    for _ in range(200):
        cluster.tick([pool(), m(2), e()])
        assert cluster.routed().get("e"), "one replica serves all the while"
        assert cluster.outcome is not None
        rollout = cluster.outcome.rollouts.members["Ensemble default/e"].state
        if rollout.phase is Phase.STEPPING and len(cluster.routed()["e"]) == 2:
            break
    assert cluster.outcome is not None
    status = cluster.outcome.statuses["Ensemble default/e"].rollout  # type: ignore[union-attr]
    assert status is not None
    assert status.strategy == "ReplicaByReplica"
    assert "the steps have no effect, and version 2 is analyzed once it has all requests" in status.strategy_message
    assert [dict(server.loaded["e"].steps_of(2)) for server in cluster.servers.values()] == [{"m": 2}, {"m": 2}]


def test_a_restarted_operator_goes_on_with_the_strategy_that_was_chosen() -> None:
    started = rolling(1, 1, minReplicas=2)
    new = model(2, 60, minReplicas=2)
    started.until(new, Phase.STEPPING)
    before = strategy(started)
    started.cluster.forget()
    started.tick(new, 20)
    assert (started.state.phase, strategy(started)) == (Phase.STEPPING, before)
    assert sorted(map(sorted, started.loaded())) == [[1], [2]]


def test_a_failed_version_gets_no_more_requests_from_the_verdict_on_though_the_former_one_must_be_loaded() -> None:
    started = Rolling(Cluster((gpu_node("a"),)))
    started.settle(recreated(1))
    started.until(recreated(2), Phase.STEPPING)
    started.judge(Outcome.FAILED)
    started.until(recreated(2), Phase.ROLLING_BACK)
    started.tick(recreated(2), WEIGHED)
    assert started.loaded() == [{2}], "requests under way are answered"
    assert started.cluster.routed() == {}


def test_a_failed_version_is_taken_from_the_routes_of_every_replica_at_once() -> None:
    spec = {"minReplicas": 4, "rollout": {"steps": [{"traffic": "50%", "pause": "30s"}]}}
    started = rolling(1, 1, 1, 1, **spec)
    new = model(2, 60, **spec)
    started.until(new, Phase.STEPPING)
    for _ in range(60):
        started.tick(new)
    assert sorted(map(sorted, started.loaded())) == [[1], [1], [2], [2]]
    stable = {name for name, server in started.cluster.servers.items() if set(server.loaded["m"].versions) == {1}}
    started.judge(Outcome.FAILED)
    started.until(new, Phase.ROLLING_BACK)
    started.tick(new, WEIGHED)
    for _ in range(5):
        assert started.cluster.routed() == {"m": stable}
        started.tick(new)
    started.settle(new)
    assert (started.state.phase, started.loaded()) == (Phase.HELD, [{1}] * 4)


def test_a_failed_version_on_a_free_gpu_gets_no_more_requests_from_the_verdict_on() -> None:
    started = rolling(1, 1)
    new = model(2, 60)
    started.until(new, Phase.STEPPING)
    assert len(started.cluster.routed()["m"]) == 2
    started.judge(Outcome.FAILED)
    started.until(new, Phase.ROLLING_BACK)
    assert started.cluster.routed() == {"m": {"p-0"}}


def test_the_analysis_reports_at_the_requests_that_the_only_step_of_recreate_waits_for() -> None:
    steps = [{"traffic": "5%", "minRequests": 100}, {"traffic": "50%", "minRequests": 5000}]
    rollout = {"strategy": "Recreate", "steps": steps}
    started = Rolling(Cluster((gpu_node("a"),)))
    started.settle(model(1, rollout=rollout))
    new = model(2, rollout=rollout)
    started.until(new, Phase.STEPPING)
    started.judge(Outcome.SUCCESSFUL, requests=4999)
    started.tick(new, 60)
    assert started.state.message == "it has answered 4999 of 5000 requests"
    assert started.cluster.outcome is not None
    (analyzed,) = subjects(started.cluster.outcome.rollouts.members, started.pool).values()
    assert analyzed.least == 5000
