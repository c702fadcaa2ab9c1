"""What happens to a fleet in the middle of a rollout: nodes, servers, replicas and pools come and go."""

from dataclasses import replace
from typing import Any

import pytest
from tests.operator.planning import declared
from tests.operator.planning.builds.simulated_builds import STORE, Fleet, hopper
from tests.operator.planning.declared import gpu_node, pool
from tests.operator.planning.rolling import MODEL, Rolling, model
from tests.operator.planning.simulated_cluster import Cluster

from argosy.rollout.state import Phase
from argosy.rollout.verdict import Outcome


def begun(*nodes: str, memory: int = 20, **spec: Any) -> Rolling:
    """Return a cluster with one GPU on each node, on which version 1 serves and version 2 is at its first step."""
    rolling = Rolling(Cluster(tuple(gpu_node(name) for name in nodes)))
    rolling.settle(model(1, memory, **spec))
    rolling.until(model(2, memory, **spec), Phase.STEPPING)
    rolling.tick(model(2, memory, **spec), 10)
    return rolling


def test_a_lost_node_takes_nothing_back() -> None:
    rolling = begun("a", "b", minReplicas=2)
    assert rolling.weights() == [{1: 90, 2: 10}] * 2
    rolling.cluster.lose("b")
    rolling.tick(model(2, minReplicas=2), 30)
    assert rolling.state.phase is Phase.STEPPING
    assert rolling.weights() == [{1: 90, 2: 10}]
    assert rolling.state.failed == ()


def test_the_only_server_moves_to_another_node_with_both_revisions() -> None:
    rolling = begun("a", "b")
    (server,) = rolling.cluster.servers.values()
    rolling.cluster.lose(server.step.plan.node)
    rolling.tick(model(2), 30)
    assert rolling.loaded() == [{1, 2}]
    assert rolling.weights() == [{1: 90, 2: 10}]
    rolling.pass_steps(model(2))
    rolling.settle(model(2))
    assert rolling.loaded() == [{2}]


def test_a_model_that_is_deleted_and_declared_again_begins_again() -> None:
    rolling = begun("a")
    rolling.cluster.settle([rolling.pool])
    assert rolling.cluster.snapshot.rollouts == {}
    assert rolling.loaded() == []
    rolling.settle(model(2))
    assert rolling.loaded() == [{2}]
    assert rolling.weights() == [{2: 100}]


def test_a_suspended_pool_goes_on_where_it_was() -> None:
    rolling = begun("a")
    suspended = pool(suspend=True)
    for _ in range(30):
        rolling.cluster.tick([suspended, model(2)])
    assert rolling.loaded() == []
    assert rolling.state.phase is Phase.STEPPING
    rolling.tick(model(2), 20)
    assert rolling.loaded() == [{1, 2}]
    assert rolling.weights() == [{1: 90, 2: 10}]


def test_a_model_without_replicas_waits_with_its_candidate() -> None:
    rolling = begun("a")
    rolling.tick(model(2, replicas=0), 60)
    assert rolling.loaded() == []
    assert rolling.state.phase is Phase.STEPPING
    rolling.tick(model(2), 20)
    assert rolling.loaded() == [{1, 2}]


def test_fewer_replicas_leave_the_steps_as_they_are() -> None:
    rolling = begun("a", "b", minReplicas=2)
    rolling.tick(model(2), 40)
    assert rolling.loaded() == [{1, 2}]
    assert rolling.weights() == [{1: 90, 2: 10}]


def test_without_memory_for_both_the_former_version_goes_on_serving() -> None:
    rolling = Rolling(Cluster((gpu_node("a"),)))
    rolling.settle(model(1, 60))
    rolling.tick(model(2, 60), 60)
    assert rolling.loaded() == [{1}]
    assert rolling.weights() == [{1: 100}]
    assert rolling.state.phase is Phase.LOADING
    assert rolling.state.failed == ()


def test_another_model_that_takes_the_memory_waits_until_the_rollout_has_ended() -> None:
    rolling = begun("a", memory=25)
    other = declared.model("n", memory=25)
    rolling.others = [other]
    rolling.tick(model(2, 25), 20)
    assert rolling.loaded() == [{1, 2}]
    rolling.pass_steps(model(2, 25))
    rolling.settle(model(2, 25))
    assert rolling.loaded() == [{2}]
    assert "n" in rolling.cluster.serving()


def test_an_ensemble_runs_the_stable_version_until_the_candidate_is_promoted() -> None:
    rolling = Rolling(Cluster((gpu_node("a"),)))
    rolling.others = [declared.ensemble("e", "m")]
    rolling.settle(model(1))
    rolling.until(model(2), Phase.STEPPING)
    rolling.tick(model(2), 10)
    (server,) = rolling.cluster.servers.values()
    assert server.loaded["e"].steps == {"m": 1}
    rolling.pass_steps(model(2))
    rolling.settle(model(2))
    (server,) = rolling.cluster.servers.values()
    assert server.loaded["e"].steps == {"m": 2}
    assert rolling.loaded() == [{2}]


def test_steps_that_are_taken_out_in_the_middle_end_the_rollout_with_the_declared_version() -> None:
    rolling = begun("a")
    plain = model(2, rollout=None)
    rolling.cluster.settle([rolling.pool, plain])
    assert rolling.loaded() == [{2}]
    assert rolling.weights() == [{}]


def test_steps_that_are_added_with_a_version_prove_it() -> None:
    rolling = Rolling(Cluster((gpu_node("a"),)))
    rolling.cluster.settle([rolling.pool, model(1, rollout=None)])
    rolling.until(model(2), Phase.STEPPING)
    rolling.tick(model(2), 5)
    assert rolling.weights() == [{1: 90, 2: 10}]


@pytest.mark.parametrize("phase", [Phase.LOADING, Phase.STEPPING])
def test_a_version_whose_files_change_under_its_number_is_proven_from_the_beginning(phase: Phase) -> None:
    rolling = Rolling(Cluster((gpu_node("a"),)))
    rolling.settle(model(1, 10))
    rolling.until(model(2, 10), phase)
    other = model(2, 10, storageUri="s3://b/m/other")
    rolling.tick(other)
    assert rolling.state.phase is Phase.LOADING
    assert rolling.weights() == [{1: 100}]
    rolling.until(other, Phase.STEPPING)
    (server,) = rolling.cluster.servers.values()
    assert server.loaded["m"].versions[2].uri == "s3://b/m/other"


def test_an_undo_takes_the_promoted_version_back_without_a_gap() -> None:
    rolling = begun("a")
    rolling.pass_steps(model(2))
    rolling.settle(model(2))
    assert rolling.state.stable is not None
    undone = model(2, annotations={"argosy.dev/undo": rolling.state.stable.name})
    for _ in range(40):
        rolling.tick(undone)
        assert rolling.cluster.routed() == {"m": {"p-0"}}
    rolling.settle(undone)
    assert rolling.loaded() == [{1}]
    assert rolling.weights() == [{1: 100}]
    assert rolling.state.phase is Phase.HELD
    rolling.tick(model(2), 30)
    assert rolling.loaded() == [{1}]


def test_a_paused_rollout_stays_at_its_step_and_is_still_taken_back() -> None:
    rolling = begun("a")
    paused = model(2, annotations={"argosy.dev/pause": "true"})
    rolling.judge(Outcome.SUCCESSFUL)
    rolling.tick(paused, 120)
    assert (rolling.state.phase, rolling.state.step) == (Phase.STEPPING, 0)
    rolling.judge(Outcome.FAILED)
    rolling.tick(paused)
    assert rolling.weights() == [{1: 100}]


def test_a_promotion_by_hand_skips_the_steps() -> None:
    rolling = begun("a")
    assert rolling.state.candidate is not None
    promoted = model(2, annotations={"argosy.dev/promote": rolling.state.candidate.name})
    rolling.settle(promoted)
    assert rolling.loaded() == [{2}]
    assert rolling.weights() == [{2: 100}]


def test_a_status_of_a_revision_whose_spec_is_gone_begins_with_what_is_declared() -> None:
    rolling = begun("a")
    rolling.cluster.snapshot = replace(rolling.cluster.snapshot, rollouts={}, valid={})
    rolling.settle(model(2))
    assert rolling.weights() == [{2: 100}]
    assert rolling.cluster.snapshot.rollouts[MODEL].state is not None


def test_an_engine_is_built_before_its_version_is_proven() -> None:
    fleet = Fleet((hopper(gpus=2),))
    rolling = Rolling(fleet, storage={"engineCache": {"storageUri": STORE}})
    engine = {"builder": "onnxruntime"}
    rolling.settle(model(1, engine=engine))
    assert rolling.loaded() == [{1}]
    rolling.tick(model(2, engine=engine))
    assert rolling.state.phase is Phase.STABLE
    rolling.until(model(2, engine=engine), Phase.STEPPING)
    rolling.tick(model(2, engine=engine), 5)
    (server,) = fleet.servers.values()
    uris = {version: source.uri for version, source in server.loaded["m"].versions.items()}
    assert uris.keys() == {1, 2}
    assert len(set(uris.values())) == 2
    assert all(uri.startswith(STORE) for uri in uris.values())
    rolling.pass_steps(model(2, engine=engine))
    rolling.settle(model(2, engine=engine))
    assert rolling.loaded() == [{2}]


def test_files_with_another_digest_are_loaded_before_they_are_proven() -> None:
    rolling = begun("a", memory=10)
    other = model(2, 10, digest=f"sha256:{'1' * 64}")
    rolling.tick(other)
    rolling.until(other, Phase.STEPPING)
    (server,) = rolling.cluster.servers.values()
    assert server.loaded["m"].versions[2].digest == f"sha256:{'1' * 64}"


def test_a_failure_of_the_files_before_is_none_of_the_new_ones() -> None:
    rolling = Rolling(Cluster((gpu_node("a"),)))
    rolling.settle(model(1, 10))
    rolling.cluster.crashes = frozenset({("m", 2)})
    rolling.until(model(2, 10), Phase.ROLLING_BACK)
    mended = model(2, 10, storageUri="s3://b/m/mended")
    rolling.tick(mended, 2)  # the server still reports the former files
    rolling.cluster.crashes = frozenset()
    rolling.until(mended, Phase.STEPPING)
    assert [failed.revision.version for failed in rolling.state.failed] == [2]


def test_an_undo_may_name_an_older_revision() -> None:
    rolling = Rolling(Cluster((gpu_node("a"),)))
    rolling.settle(model(1))
    assert rolling.state.stable is not None
    oldest = rolling.state.stable.name
    for version in (2, 3):
        rolling.tick(model(version))
        rolling.pass_steps(model(version))
        rolling.settle(model(version))
    undone = model(3, annotations={"argosy.dev/undo": f"{rolling.state.stable.name}@{oldest}"})
    for _ in range(40):
        rolling.tick(undone)
        assert rolling.cluster.routed() == {"m": {"p-0"}}
    rolling.settle(undone)
    assert rolling.loaded() == [{1}]
    assert rolling.weights() == [{1: 100}]


def test_a_spec_that_is_not_accepted_stops_the_rollout_of_the_one_before_it() -> None:
    rolling = begun("a")
    candidate = rolling.state.candidate
    refused = model(1, maxBatchSize=8)
    for _ in range(60):
        rolling.judge(Outcome.SUCCESSFUL)
        rolling.tick(refused)
    assert (rolling.state.phase, rolling.state.candidate) == (Phase.STEPPING, candidate)
    assert rolling.state.waiting == "InvalidSpec"
    assert rolling.state.message.startswith("stopped: the declared spec is not accepted: spec.version ")
    rolling.pass_steps(model(2))
    assert rolling.state.stable == candidate
