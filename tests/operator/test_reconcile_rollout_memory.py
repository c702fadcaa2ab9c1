"""A candidate's memory is part of the plan: nothing else is placed there, and nothing that serves gives way to it."""

from typing import Any

from tests.operator.planning import declared
from tests.operator.planning.declared import GIB, gpu_node
from tests.operator.planning.rolling import Rolling, model
from tests.operator.planning.simulated_cluster import Cluster

from argosy.api import ConditionType, Resource
from argosy.planning.plan import Placement
from argosy.rollout.state import Phase
from argosy.rollout.verdict import Outcome


def serving(*gpus: int, memory: int = 30, others: tuple[Resource, ...] = (), **spec: Any) -> Rolling:
    """Return a cluster with nodes of so many GPUs of 80 GiB, 64 of them usable, on which version 1 serves."""
    rolling = Rolling(Cluster(tuple(gpu_node(f"n{at}", count) for at, count in enumerate(gpus))))
    rolling.others = others
    rolling.settle(model(1, memory, **spec))
    return rolling


def placements(rolling: Rolling, name: str = "m") -> list[Placement]:
    assert rolling.cluster.outcome is not None
    (plan,) = rolling.cluster.outcome.plan.pools
    return [one for server in plan.servers for one in server.placements if one.model == name]


def test_a_newcomer_is_not_placed_into_the_memory_of_a_candidate() -> None:
    rolling = serving(2)
    rolling.tick(model(2, 30))
    rolling.others = [declared.model("n", memory=25)]
    rolling.until(model(2, 30), Phase.STEPPING)
    assert rolling.loaded() == [{1, 2}]
    assert [(one.memory, one.surge) for one in placements(rolling)] == [(30 * GIB, 30 * GIB)]
    assert [one.gpus for one in placements(rolling, "n")] == [(1,)]


def test_a_rollout_that_begins_with_an_arrival_reserves_its_memory_first() -> None:
    rolling = serving(1)
    rolling.others = [declared.model("n", memory=25)]
    rolling.tick(model(2, 30), 40)
    assert (rolling.state.phase, rolling.loaded()) == (Phase.STEPPING, [{1, 2}])
    assert placements(rolling, "n") == []
    message = rolling.cluster.message("n", ConditionType.PLACED)
    assert (
        "GPU 0 of node n0 with 20 GiB and 100 % free, where 30 GiB are reserved until the rollout of m ends. "
        in message
    )
    rolling.pass_steps(model(2, 30))
    rolling.settle(model(2, 30))
    assert rolling.loaded() == [{2}]
    assert [(one.memory, one.surge) for one in placements(rolling)] == [(30 * GIB, 0)]
    assert "n" in rolling.cluster.serving()


def test_the_memory_of_a_candidate_that_failed_is_free_again() -> None:
    rolling = serving(1)
    rolling.others = [declared.model("n", memory=25)]
    rolling.until(model(2, 30), Phase.STEPPING)
    rolling.judge(Outcome.FAILED)
    rolling.until(model(2, 30), Phase.HELD)
    rolling.settle(model(2, 30))
    assert rolling.loaded() == [{1}]
    assert "n" in rolling.cluster.serving()


def test_a_candidate_counts_by_its_own_footprint() -> None:
    rolling = serving(1, memory=30)
    rolling.until(model(2, 40), Phase.STEPPING)
    assert [(one.memory, one.surge) for one in placements(rolling)] == [(30 * GIB, 40 * GIB)]
    rolling.pass_steps(model(2, 40))
    rolling.settle(model(2, 40))
    assert [(one.memory, one.surge) for one in placements(rolling)] == [(40 * GIB, 0)]


def test_a_candidate_that_would_not_fit_once_it_is_promoted_evicts_nothing_and_is_not_loaded() -> None:
    rolling = serving(1, memory=10, others=(declared.model("n", memory=20),))
    rolling.tick(model(2, 50), 60)
    assert rolling.loaded() == [{1}]
    assert "n" in rolling.cluster.routed()
    assert rolling.status.rollout is not None
    assert rolling.status.rollout.strategy == ""
    assert rolling.status.rollout.strategy_message.startswith(
        "m takes 50 GiB once its candidate is promoted, and 44 GiB of GPU 0 of node n0 are left for it (memoryHeadroom "
        "keeps 20 % free), no GPU is free, and no other replica serves: version 1 goes on serving"
    )
    assert rolling.state.waiting == "NoMemory"


def test_two_candidates_that_fit_one_at_a_time_are_proven_one_after_the_other() -> None:
    rolling = Rolling(Cluster((gpu_node("a"),)))
    steps = {"steps": [{"traffic": "10%", "pause": "30s"}]}
    rolling.others = [declared.model("n", 1, 20, rollout=steps)]
    rolling.settle(model(1, 20))
    rolling.others = [declared.model("n", 2, 25, rollout=steps)]
    rolling.until(model(2, 25), Phase.STEPPING)
    rolling.tick(model(2, 25), 30)
    assert rolling.cluster.outcome is not None
    other = rolling.cluster.outcome.rollouts.members["InferenceModel default/n"].state
    assert (other.phase, other.waiting) == (Phase.LOADING, "NoMemory")
    assert "25 GiB are reserved until the rollout of m ends: version 1 goes on serving" in other.message
    rolling.pass_steps(model(2, 25))
    rolling.tick(model(2, 25), 40)
    assert rolling.cluster.outcome.rollouts.members["InferenceModel default/n"].state.phase is Phase.STEPPING


def test_a_second_push_unloads_the_first_candidate_before_it_loads_its_own() -> None:
    rolling = serving(1)
    rolling.until(model(2, 30), Phase.STEPPING)
    for _ in range(60):
        rolling.tick(model(3, 30))
        assert len(rolling.loaded()[0]) <= 2
        assert rolling.cluster.routed() == {"m": {"p-0"}}
    assert (rolling.state.phase, rolling.loaded()) == (Phase.STEPPING, [{1, 3}])
    assert rolling.status.rollout is not None
    assert rolling.status.rollout.strategy == "SurgeInPlace"


def test_a_replica_that_moves_goes_where_there_is_memory_for_both() -> None:
    rolling = serving(1, memory=20)
    rolling.until(model(2, 20), Phase.STEPPING)
    rolling.cluster.nodes += (gpu_node("n1"),)
    rolling.others = [declared.model("n", memory=42)]
    rolling.tick(model(2, 20), 20)
    assert rolling.cluster.servers["p-1"].step.plan.node == "n1"
    rolling.cluster.nodes += (gpu_node("n2"),)
    rolling.cluster.lose("n0")
    rolling.tick(model(2, 20), 20)
    assert rolling.loaded() == [{1, 2}]
    assert {server.step.plan.node for server in rolling.cluster.servers.values()} == {"n1", "n2"}


def test_instances_that_scaling_adds_count_for_the_candidate_too() -> None:
    rolling = serving(1, memory=15, instances=2)
    rolling.until(model(2, 15, instances=2), Phase.STEPPING)
    assert [(one.memory, one.surge) for one in placements(rolling)] == [(30 * GIB, 30 * GIB)]


def test_a_further_replica_is_placed_where_the_candidate_fits_by_its_own_footprint() -> None:
    filler = declared.model("n", memory=30)
    rolling = serving(1, 1, memory=40, others=(filler,))
    new = model(2, 50)
    rolling.tick(new, 60)
    assert rolling.loaded() == [{1}], "30 + 50 GiB are more than the 64 usable ones"
    assert rolling.status.rollout is not None
    assert rolling.status.rollout.strategy == ""
    rolling.cluster.nodes += (gpu_node("n2"),)
    rolling.until(new, Phase.STEPPING)
    assert rolling.status.rollout.strategy == "SurgeFreeGpus"
    assert sorted(map(sorted, rolling.loaded())) == [[1], [2]]
    rolling.pass_steps(new)
    rolling.settle(new)
    assert (rolling.state.phase, rolling.loaded()) == (Phase.PROMOTED, [{2}])
    assert "n" in rolling.cluster.routed()
