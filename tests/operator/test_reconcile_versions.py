"""Several declared versions are served at once: placed, loaded, sized, told, and changed one by one."""

from typing import Any

import pytest
from tests.operator.planning import declared
from tests.operator.planning.declared import GIB, ensemble, gpu_node, pool
from tests.operator.planning.simulated_cluster import Cluster

from argosy.api import ConditionType, InferenceModel, InferenceModelStatus
from argosy.api.status import VersionState


def model(*versions: int, memory: int = 20, **spec: Any) -> InferenceModel:
    """Return `m`, of which each of these versions takes so many GiB."""
    sources = [{"version": version, "storageUri": f"s3://b/m/{version}"} for version in versions]
    return declared.model("m", memory=memory, versions=sources, **spec)


def status(cluster: Cluster) -> InferenceModelStatus:
    assert cluster.outcome is not None
    result = cluster.outcome.statuses["InferenceModel default/m"]
    assert isinstance(result, InferenceModelStatus)
    return result


def states(cluster: Cluster) -> dict[int, tuple[VersionState, int, int]]:
    result = status(cluster).versions
    return {item.version: (item.state, item.available_replicas, item.traffic_percent) for item in result}


def loaded(cluster: Cluster) -> dict[int, str]:
    (server,) = cluster.servers.values()
    return {version: source.uri for version, source in server.loaded["m"].versions.items()}


def test_every_declared_version_is_loaded_from_its_own_files_and_reported() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model(2, 1)])
    assert loaded(cluster) == {1: "s3://b/m/1", 2: "s3://b/m/2"}
    assert states(cluster) == {2: (VersionState.SERVING, 1, 100), 1: (VersionState.SERVING, 1, 0)}
    assert status(cluster).active_version == 2
    assert cluster.message("m", ConditionType.READY) == "Serving: versions 1, 2 serve on 1 server"
    (server,) = cluster.servers.values()
    assert [placement.memory for placement in server.step.plan.placements] == [40 * GIB]


def test_versions_that_do_not_fit_together_say_so() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model(1, 2, memory=40)])
    assert cluster.message("m", ConditionType.PLACED).startswith("GpuTooSmall")
    assert "80 GiB for 2 versions" in cluster.message("m", ConditionType.PLACED)


def test_one_that_does_not_load_is_reported_and_the_others_serve() -> None:
    cluster = Cluster((gpu_node("a"),), refuses=frozenset({("m", 2)}))
    cluster.settle([pool(), model(1)])
    cluster.settle([pool(), model(1, 2)])
    assert not status(cluster).ready
    assert states(cluster)[2][0] is VersionState.FAILED
    assert states(cluster)[1] == (VersionState.SERVING, 1, 100)
    assert cluster.routed() == {"m": {"p-0"}}


def test_one_comes_and_another_goes_while_the_rest_serves() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model(1, 2, memory=10)])
    changed = [pool(), model(2, 3, memory=10)]
    for _ in range(30):
        cluster.tick(changed)
        assert cluster.routed() == {"m": {"p-0"}}
        assert 2 in loaded(cluster)
    cluster.settle(changed)
    assert loaded(cluster) == {2: "s3://b/m/2", 3: "s3://b/m/3"}
    assert status(cluster).ready


def test_after_a_rollback_the_declared_version_answers() -> None:
    cluster = Cluster((gpu_node("a"),))
    for version in (1, 2):
        retained = model(version, memory=10, versionPolicy={"latest": {"numVersions": 2}})
        cluster.settle([pool(), retained])
    assert loaded(cluster).keys() == {1, 2}
    back = [pool(), model(1, memory=10, versionPolicy={"latest": {"numVersions": 2}})]
    for _ in range(30):
        cluster.tick(back)
        assert cluster.routed() == {"m": {"p-0"}}
        assert not status(cluster).ready or status(cluster).active_version == 1
    cluster.settle(back)
    assert loaded(cluster).keys() == {1}
    assert (status(cluster).ready, status(cluster).active_version) == (True, 1)


def test_an_ensemble_may_hold_to_any_of_them() -> None:
    cluster = Cluster((gpu_node("a"),))
    step = {"model": "m", "version": 1, "inputs": {"X": "T0"}, "outputs": {"Y": "T1"}}
    cluster.settle([pool(), model(1, 2), ensemble("e", "m", steps=[step])])
    (server,) = cluster.servers.values()
    assert server.loaded["e"].steps == {"m": 1}
    assert cluster.routed() == {"m": {"p-0"}, "e": {"p-0"}}


def test_a_version_that_ends_with_every_request_replaces_none() -> None:
    cluster = Cluster((gpu_node("a"),), crashes=frozenset({("m", 2)}))
    cluster.settle([pool(), model(1)])
    cluster.settle([pool(), model(2)])
    assert loaded(cluster).keys() == {1, 2}
    assert cluster.message("m", ConditionType.STALLED).startswith("CrashLoop: ")
    assert states(cluster)[1][0] is VersionState.SERVING
    cluster.crashes = frozenset()
    cluster.settle([pool(), model(2)])
    assert loaded(cluster).keys() == {2}
    assert status(cluster).ready


RECREATE = {"rollout": {"strategy": "Recreate"}}


@pytest.mark.parametrize("memory", [10, 60])
def test_recreate_unloads_the_old_version_before_the_new_one_is_loaded(memory: int) -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model(1, memory=memory, **RECREATE)])
    new = [pool(), model(2, memory=memory, **RECREATE)]
    seen = set()
    for _ in range(60):
        cluster.tick(new)
        (server,) = cluster.servers.values()
        seen.add(frozenset(server.loaded["m"].versions) if "m" in server.loaded else frozenset())
    cluster.settle(new)
    assert seen == {frozenset({1}), frozenset(), frozenset({2})}
    assert status(cluster).ready


def test_recreate_changes_one_replica_after_the_other() -> None:
    cluster = Cluster((gpu_node("a", 1), gpu_node("b", 1)))
    old, new = ([pool(), model(item, memory=60, minReplicas=2, **RECREATE)] for item in (1, 2))
    cluster.settle(old)
    for _ in range(100):
        cluster.tick(new)
        assert cluster.routed().get("m"), "one replica serves all the while"
        assert all(len(server.loaded["m"].versions) == 1 for server in cluster.servers.values() if "m" in server.loaded)
    cluster.settle(new)
    assert [set(server.loaded["m"].versions) for server in cluster.servers.values()] == [{2}, {2}]


def test_recreate_takes_its_ensembles_along() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model(1, memory=10, **RECREATE), ensemble("e", "m")])
    cluster.settle([pool(), model(2, memory=10, **RECREATE), ensemble("e", "m")])
    (server,) = cluster.servers.values()
    assert server.loaded["e"].steps == {"m": 2}
    assert cluster.routed() == {"m": {"p-0"}, "e": {"p-0"}}


@pytest.mark.parametrize("policy", [None, {"latest": {"numVersions": 2}}])
@pytest.mark.parametrize("replicas", [1, 2])
def test_an_engine_that_is_opened_by_path_is_never_open_twice(replicas: int, policy: Any) -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b")))
    strategy = RECREATE if replicas == 1 else {}
    spec = {"modelFormat": {"name": "tensorrt_llm"}, "minReplicas": replicas, "versionPolicy": policy, **strategy}
    old, new = ([pool(), declared.model("m", version, 10, **spec)] for version in (1, 2))
    cluster.settle(old)
    for _ in range(100):
        cluster.tick(new)
        assert all(len(server.loaded["m"].versions) == 1 for server in cluster.servers.values() if "m" in server.loaded)
        assert replicas == 1 or cluster.routed().get("m")
    cluster.settle(new)
    assert [set(server.loaded["m"].versions) for server in cluster.servers.values()] == [{2}] * replicas
