"""What serves goes on until an edit of it is loaded; an edit that cannot be says so."""

from typing import Any

import pytest
from tests.operator.planning.declared import GIB, ensemble, gpu_node, model, pool
from tests.operator.planning.simulated_cluster import Cluster

from argosy.api import ConditionStatus, ConditionType


def ready(cluster: Cluster, identity: str) -> bool:
    assert cluster.outcome is not None
    condition = cluster.outcome.statuses[identity].condition(ConditionType.READY)
    return condition is not None and condition.status is ConditionStatus.TRUE


@pytest.mark.parametrize("edit", [{"storageUri": "s3://b/m/other"}, {"maxBatchSize": 8}])
def test_an_edit_that_keeps_the_version_is_not_ready_before_it_is_loaded(edit: dict[str, Any]) -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("m")])
    edited = [pool(), model("m", **edit)]
    cluster.tick(edited)
    assert not ready(cluster, "InferenceModel default/m")
    assert "the declared revision is being loaded; the former one goes on serving" in cluster.message("m")
    assert cluster.routed().keys() == {"m"}
    cluster.settle(edited)
    assert ready(cluster, "InferenceModel default/m")


def test_an_ensemble_is_not_ready_while_its_former_graph_serves() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("m"), ensemble("e", "m")])
    cluster.refuses = frozenset({("k", 1)})
    longer = [pool(), model("m"), model("k"), ensemble("e", "m", "k")]
    cluster.settle(longer)
    assert not ready(cluster, "Ensemble default/e")
    assert "its former graph goes on serving until k is loaded" in cluster.message("Ensemble default/e")
    assert "e" in cluster.routed()
    cluster.refuses = frozenset()
    cluster.settle(longer)
    assert ready(cluster, "Ensemble default/e")


def test_a_version_that_does_not_fit_replaces_replica_by_replica() -> None:
    cluster = Cluster((gpu_node("a", 2),))
    cluster.settle([pool(), model("m", memory=50, minReplicas=2)])
    new = [pool(), model("m", version=2, memory=50, minReplicas=2)]
    for _ in range(120):
        before = cluster.routed()
        cluster.tick(new)
        assert before["m"] & cluster.routed()["m"]
        assert cluster.overcommitted({("m", 1): 50 * GIB, ("m", 2): 50 * GIB}) == []
    assert {tuple(server.loaded["m"].versions) for server in cluster.servers.values()} == {(2,)}


def test_a_version_that_does_not_fit_waits_and_says_so() -> None:
    cluster = Cluster((gpu_node("a", 2),))
    cluster.settle([pool(), model("m", memory=50)])
    cluster.keep_routed([pool(), model("m", version=2, memory=50)], {"m"}, rounds=30)
    reported = cluster.message("m")
    assert reported.startswith("NoRoom: ")
    assert "version 2 does not fit next to version 1" in reported
    assert "it needs 50 GiB on GPU 0 of node a, where 30 GiB are free" in reported
    cluster.keep_routed([pool(), model("m", version=2, memory=50, minReplicas=2)], {"m"}, rounds=120)
    assert {tuple(server.loaded["m"].versions) for server in cluster.servers.values()} == {(2,)}


def test_headroom_counts_for_the_new_version() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("m", memory=40)])
    cluster.keep_routed([pool(), model("m", version=2, memory=40)], {"m"}, rounds=30)
    assert tuple(cluster.servers["p-0"].loaded["m"].versions) == (2,)


def test_a_wrong_edit_leaves_the_last_valid_revision_in_the_plan() -> None:
    cluster = Cluster((gpu_node("a"),))
    right = [pool(), model("m"), model("n"), ensemble("e", "m", "n")]
    cluster.settle(right)
    wrong = [*right[:3], ensemble("e", "m", "nobody")]
    cluster.keep_routed(wrong, {"m", "n", "e"}, rounds=20)
    reported = cluster.message("Ensemble default/e", ConditionType.VALID)
    assert reported.startswith("InvalidGraph: ")
    assert reported.endswith("what it said before is still served")
    cluster.forget()
    cluster.keep_routed(wrong, {"m", "n", "e"}, rounds=20)


@pytest.mark.parametrize("devices", ["all", "0,1,", "GPU-1"])
def test_what_people_write_into_a_config_is_never_read_back(devices: str) -> None:
    cluster = Cluster((gpu_node("a"),))
    config = {"parameters": {"gpu_device_ids": {"string_value": devices}}}
    cluster.settle([pool(), model("m", config=config), model("k")])
    cluster.settle([pool(), model("m", version=2, config=config), model("k")])
    assert cluster.routed() == {"m": {"p-0"}, "k": {"p-0"}}
    cluster.settle([pool(), model("k")])
    assert cluster.serving() == {"k": {"p-0"}}
