"""What leaves a server: when it goes, what waits for it, and that nobody who asks for it notices."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.operator.fleet.declared import GIB, ensemble, gpu_node, model, pool
from tests.operator.fleet.simulated_cluster import POOL, Cluster

from argosy.api import ConditionStatus, ConditionType, Resource
from argosy.fleet.migration.migrate import DRAIN_PERIOD


def message(cluster: Cluster, identity: str, kind: ConditionType = ConditionType.LOADED) -> str:
    assert cluster.outcome is not None
    condition = cluster.outcome.statuses[identity].condition(kind)
    assert condition is not None
    return f"{condition.reason}: {condition.message}"


def always_routed(cluster: Cluster, resources: list[Resource], names: set[str], rounds: int = 80) -> None:
    """Rounds until all is settled, in each of which all of `names` are reached."""
    for _ in range(rounds):
        before = cluster.routed()
        cluster.tick(resources)
        after = cluster.routed()
        assert all(before[name] & after[name] for name in names)  # endpoints are told of in no order
    cluster.settle(resources)


def test_a_replica_too_many_is_unrouted_then_drained_then_gone() -> None:
    cluster = Cluster((gpu_node("a", 2),))
    cluster.settle([pool(), model("m", minReplicas=2)])
    assert cluster.routed() == {"m": {"p-0", "p-1"}}
    fewer = [pool(), model("m")]
    first = cluster.tick(fewer)
    assert cluster.routed() == {"m": {"p-0", "p-1"}}
    assert first.wake == cluster.now - timedelta(seconds=1) + DRAIN_PERIOD / 2
    cluster.tick(fewer, seconds=DRAIN_PERIOD.total_seconds() / 2)
    cluster.tick(fewer)
    assert cluster.routed() == {"m": {"p-0"}}
    assert cluster.serving() == {"m": {"p-0", "p-1"}}
    steps = cluster.outcome.steps[POOL] if cluster.outcome else ()
    assert [(step.plan.name, step.draining) for step in steps] == [("p-0", False), ("p-1", True)]
    cluster.settle(fewer)
    assert cluster.servers.keys() == {"p-0"}


def test_versions_that_were_kept_come_back_with_a_new_pod() -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b")))
    both = {"versionPolicy": {"specific": {"versions": [1, 2]}}}
    step = {"model": "m", "version": 1, "inputs": {"X": "T0"}, "outputs": {"Y": "T1"}}
    cluster.settle([pool(), model("m", **both), ensemble("e", "m", steps=[step])])
    declared = [pool(), model("m", version=2, **both), ensemble("e", "m", steps=[step])]
    cluster.settle(declared)
    (server,) = cluster.servers
    cluster.restart(server)
    cluster.settle(declared)
    assert set(cluster.servers[server].loaded["m"].versions) == {1, 2}
    assert cluster.routed().keys() == {"m", "e"}
    cluster.lose(cluster.servers[server].step.plan.node)
    cluster.settle(declared)
    assert [set(each.loaded["m"].versions) for each in cluster.servers.values()] == [{1, 2}]
    assert cluster.routed().keys() == {"m", "e"}


def test_a_new_replica_has_the_versions_that_the_policy_keeps() -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b")))
    latest = {"versionPolicy": {"latest": {"numVersions": 2}}}
    cluster.settle([pool(), model("m", **latest)])
    cluster.settle([pool(), model("m", version=2, **latest)])
    cluster.settle([pool(), model("m", version=2, minReplicas=2, **latest)])
    assert [set(each.loaded["m"].versions) for each in cluster.servers.values()] == [{1, 2}, {1, 2}]


@pytest.mark.parametrize("gone", ["pod", "node"])
def test_what_served_comes_back_while_its_successor_does_not_load(gone: str) -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b")))
    cluster.settle([pool(), model("m")])
    cluster.refuses = frozenset({("m", 2)})
    cluster.settle([pool(), model("m", version=2)])
    (server,) = cluster.servers
    if gone == "pod":
        cluster.restart(server)
    else:
        cluster.lose(cluster.servers[server].step.plan.node)
    cluster.settle([pool(), model("m", version=2)])
    assert cluster.routed().keys() == {"m"}


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
    assert "the former one goes on serving" in message(cluster, "InferenceModel default/m")
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
    assert "its former graph goes on serving until k is loaded" in message(cluster, "Ensemble default/e")
    assert "e" in cluster.routed()
    cluster.refuses = frozenset()
    cluster.settle(longer)
    assert ready(cluster, "Ensemble default/e")


def test_what_never_served_does_not_come_back() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.refuses = frozenset({("m", 1)})
    for _ in range(10):
        cluster.tick([pool(), model("m")])
    (server,) = cluster.servers
    cluster.restart(server)
    cluster.settle([pool(), model("m", version=2)])
    assert set(cluster.servers[server].loaded["m"].versions) == {2}


def test_a_model_that_nobody_declares_is_drained_before_it_goes() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("m"), model("n")])
    cluster.tick([pool(), model("m")])
    assert cluster.routed() == {"m": {"p-0"}}
    assert cluster.serving() == {"m": {"p-0"}, "n": {"p-0"}}
    cluster.settle([pool(), model("m")])
    assert cluster.serving() == {"m": {"p-0"}}
    assert cluster.snapshot.pool(POOL).drain_since == {}


def test_what_is_still_routed_to_is_not_unloaded_whatever_the_time() -> None:
    cluster = Cluster((gpu_node("a", 2),))
    cluster.settle([pool(), model("m", minReplicas=2), model("n")])
    cluster.frozen = True
    for _ in range(60):
        cluster.tick([pool(), model("m")])
        assert cluster.serving() == {"m": {"p-0", "p-1"}, "n": {"p-0"}}
    cluster.frozen = False
    for _ in range(int(DRAIN_PERIOD.total_seconds())):
        cluster.tick([pool(), model("m")])
        assert cluster.serving() == {"m": {"p-0", "p-1"}, "n": {"p-0"}}
    cluster.settle([pool(), model("m")])
    assert cluster.serving() == {"m": {"p-0"}}


def test_models_of_a_new_ensemble_come_together_without_anyone_noticing() -> None:
    cluster = Cluster((gpu_node("a", 1), gpu_node("b", 1)))
    apart = [pool(), model("m", memory=40), model("n", memory=20)]
    cluster.settle([pool(), model("m", memory=40), model("big", memory=44)])
    cluster.settle([*apart, model("big", memory=44)])
    cluster.settle([pool(), model("m", memory=40), model("n", memory=20)])
    assert len(cluster.servers) == 2
    both = [*apart, ensemble("e", "m", "n")]
    always_routed(cluster, both, {"m", "n"})
    assert cluster.routed()["e"] == cluster.routed()["m"] == cluster.routed()["n"]


def test_a_selector_moves_a_pool_to_other_nodes_without_anyone_noticing() -> None:
    nodes = tuple(gpu_node(name, labels={"zone": name}) for name in ("a", "b"))
    cluster = Cluster(nodes)
    cluster.settle([pool(nodeSelector={"zone": "a"}), model("m"), model("n"), ensemble("e", "m", "n")])
    moved = [pool(nodeSelector={"zone": "b"}), model("m"), model("n"), ensemble("e", "m", "n")]
    always_routed(cluster, moved, {"m", "n", "e"})
    assert {server.step.plan.node for server in cluster.servers.values()} == {"b"}


@pytest.mark.parametrize("lacks", ["unlabelled", "unready"])
def test_a_model_stays_routed_until_requests_reach_its_new_place(lacks: str) -> None:
    nodes = tuple(gpu_node(name, labels={"zone": name}) for name in ("a", "b"))
    cluster = Cluster(nodes)
    cluster.settle([pool(nodeSelector={"zone": "a"}), model("m")])
    setattr(cluster, lacks, frozenset({"p-1"}))
    moved = [pool(nodeSelector={"zone": "b"}), model("m")]
    for _ in range(60):
        cluster.tick(moved)
        assert cluster.routed() == {"m": {"p-0"}}
    setattr(cluster, lacks, frozenset())
    always_routed(cluster, moved, {"m"})
    assert cluster.routed() == {"m": {"p-1"}}


def test_a_place_that_takes_no_requests_any_more_gives_the_route_back() -> None:
    nodes = tuple(gpu_node(name, labels={"zone": name}) for name in ("a", "b"))
    cluster = Cluster(nodes)
    moved = [pool(nodeSelector={"zone": "b"}), model("m")]
    cluster.settle([pool(nodeSelector={"zone": "a"}), model("m")])
    while cluster.routed() != {"m": {"p-1"}}:
        cluster.tick(moved)
    cluster.unready = frozenset({"p-1"})
    cluster.tick(moved)
    assert cluster.routed() == {"m": {"p-0"}}


def test_a_move_to_where_it_does_not_load_does_not_take_it_down() -> None:
    nodes = tuple(gpu_node(name, labels={"zone": name}) for name in ("a", "b"))
    cluster = Cluster(nodes)
    cluster.settle([pool(nodeSelector={"zone": "a"}), model("m")])
    cluster.refuses = frozenset({("m", 2)})
    moved = [pool(nodeSelector={"zone": "b"}), model("m", version=2)]
    always_routed(cluster, moved, {"m"})
    assert "until then it is served by p-0" in message(cluster, "InferenceModel default/m")
    cluster.refuses = frozenset()
    cluster.settle(moved)
    assert {server.step.plan.node for server in cluster.servers.values()} == {"b"}


def test_a_restarted_operator_takes_up_a_move() -> None:
    nodes = tuple(gpu_node(name, labels={"zone": name}) for name in ("a", "b"))
    cluster = Cluster(nodes)
    cluster.settle([pool(nodeSelector={"zone": "a"}), model("m")])
    for _ in range(40):
        cluster.tick([pool(nodeSelector={"zone": "b"}), model("m")])
        cluster.forget()
        assert "m" in cluster.routed()


def test_what_needs_the_memory_of_something_that_leaves_waits_for_it() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("old", memory=60)])
    resources = [pool(), model("new", memory=60)]
    cluster.tick(resources)
    assert "it waits until old has left this server" in message(cluster, "InferenceModel default/new")
    for _ in range(40):
        cluster.tick(resources)
        assert cluster.overcommitted({("old", 1): 60 * GIB, ("new", 1): 60 * GIB}) == []
    assert cluster.serving() == {"new": {"p-0"}}


def test_a_suspended_pool_lets_go_of_everything_at_once() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("m")])
    outcome = cluster.tick([pool(suspend=True), model("m")])
    assert (cluster.servers, outcome.steps[POOL]) == ({}, ())


def test_a_model_that_has_no_place_any_more_goes_on_serving_and_others_wait() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("m")])
    always_routed(cluster, [pool(), model("m", memory=100), model("n", memory=64)], {"m"}, rounds=30)
    assert cluster.serving() == {"m": {"p-0"}}
    assert "still served by p-0" in message(cluster, "InferenceModel default/m")
    assert "it waits until m has left" in message(cluster, "InferenceModel default/n")
    cluster.settle([pool(), model("n", memory=64)])
    assert cluster.serving() == {"n": {"p-0"}}


def test_what_runs_on_a_cordoned_node_stays_and_nothing_comes_to_it() -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b", 2)))
    cluster.settle([pool(), model("m")])
    cluster.nodes = (replace(cluster.nodes[0], schedulable=False), cluster.nodes[1])
    always_routed(cluster, [pool(), model("m"), model("n")], {"m"})
    assert {name: server.step.plan.node for name, server in cluster.servers.items()} == {"p-0": "a", "p-1": "b"}


MAINTENANCE = {"key": "maintenance", "value": "soon", "effect": "NoSchedule"}


@pytest.mark.parametrize("closed", [{"schedulable": False}, {"taints": (MAINTENANCE,)}], ids=["cordon", "taint"])
def test_what_is_evicted_from_a_node_that_takes_nothing_new_moves(closed: dict[str, Any]) -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b")))
    cluster.settle([pool(), model("m")])
    cluster.nodes = (replace(cluster.nodes[0], **closed), cluster.nodes[1])
    cluster.restart("p-0")
    cluster.settle([pool(), model("m")])
    assert {name: server.step.plan.node for name, server in cluster.servers.items()} == {"p-1": "b"}


def test_an_idle_server_that_is_evicted_gets_another_name() -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b")))
    resources = [pool(minServers=1)]
    cluster.settle(resources)
    cluster.nodes = (replace(cluster.nodes[0], schedulable=False), cluster.nodes[1])
    cluster.restart("p-0")
    cluster.settle(resources)
    assert {name: server.step.plan.node for name, server in cluster.servers.items()} == {"p-1": "b"}


def test_what_ends_on_a_node_whose_taint_is_tolerated_comes_back_there() -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b")))
    tolerant = pool(tolerations=[{"key": "maintenance", "operator": "Exists"}])
    cluster.settle([tolerant, model("m")])
    cluster.nodes = (replace(cluster.nodes[0], taints=(MAINTENANCE,)), cluster.nodes[1])
    cluster.restart("p-0")
    cluster.settle([tolerant, model("m")])
    assert [server.step.plan.node for server in cluster.servers.values()] == ["a"]


def test_a_node_that_is_not_ready_keeps_what_it_has_for_a_while() -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b")))
    resources = [pool(), model("m")]
    cluster.settle(resources)
    cluster.nodes = (replace(cluster.nodes[0], ready=False, unready_since=cluster.now), cluster.nodes[1])
    for _ in range(60):
        outcome = cluster.tick(resources)
        assert [server.step.plan.node for server in cluster.servers.values()] == ["a"]
    assert outcome.wake == cluster.now
    cluster.settle(resources)
    assert [server.step.plan.node for server in cluster.servers.values()] == ["b"]


def test_pods_that_are_not_ready_only_because_nobody_hears_of_their_node_keep_their_routes() -> None:
    """As after an outage of the API server: once they are Ready again they are asked at once."""
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("m")])
    cluster.nodes = (replace(cluster.nodes[0], ready=False, unready_since=cluster.now),)
    cluster.unready = frozenset(cluster.servers)
    for _ in range(45):
        cluster.tick([pool(), model("m", version=2)])
        assert [server.routes for server in cluster.servers.values()] == [{"m"}]
    cluster.nodes, cluster.unready = (gpu_node("a"),), frozenset()
    always_routed(cluster, [pool(), model("m", version=2)], {"m"})


def test_a_node_that_vanishes_loses_its_servers_at_once() -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b")))
    cluster.settle([pool(), model("m")])
    cluster.lose("a")
    cluster.tick([pool(), model("m")])
    assert [server.step.plan.node for server in cluster.servers.values()] == ["b"]


def test_a_version_that_does_not_fit_beside_the_old_one_takes_its_place_replica_by_replica() -> None:
    cluster = Cluster((gpu_node("a", 2),))
    cluster.settle([pool(), model("m", memory=50, minReplicas=2)])
    new = [pool(), model("m", version=2, memory=50, minReplicas=2)]
    for _ in range(120):
        before = cluster.routed()
        cluster.tick(new)
        assert before["m"] & cluster.routed()["m"]
        assert cluster.overcommitted({("m", 1): 50 * GIB, ("m", 2): 50 * GIB}) == []
    assert {tuple(server.loaded["m"].versions) for server in cluster.servers.values()} == {(2,)}


def test_a_version_that_does_not_fit_beside_the_only_one_waits_and_says_so() -> None:
    cluster = Cluster((gpu_node("a", 2),))
    cluster.settle([pool(), model("m", memory=50)])
    always_routed(cluster, [pool(), model("m", version=2, memory=50)], {"m"}, rounds=30)
    said = message(cluster, "InferenceModel default/m")
    assert said.startswith("NoRoom: ")
    assert "version 2 does not fit beside version 1" in said
    assert "it needs 50 GiB on GPU 0 of node a, where 30 GiB are free" in said
    always_routed(cluster, [pool(), model("m", version=2, memory=50, minReplicas=2)], {"m"}, rounds=120)
    assert {tuple(server.loaded["m"].versions) for server in cluster.servers.values()} == {(2,)}


def test_headroom_is_for_the_new_version() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("m", memory=40)])
    always_routed(cluster, [pool(), model("m", version=2, memory=40)], {"m"}, rounds=30)
    assert tuple(cluster.servers["p-0"].loaded["m"].versions) == (2,)


def test_a_server_keeps_its_gpus_while_it_serves() -> None:
    cluster = Cluster((gpu_node("a", 2),))
    limited = pool(maxServers=1)
    cluster.settle([limited, model("m", memory=40), model("n", memory=40)])
    always_routed(cluster, [limited, model("n", memory=40)], {"n"}, rounds=40)
    assert cluster.servers["p-0"].step.plan.gpus == (0, 1)


def test_a_wrong_edit_leaves_the_last_valid_form_in_the_plan() -> None:
    cluster = Cluster((gpu_node("a"),))
    right = [pool(), model("m"), model("n"), ensemble("e", "m", "n")]
    cluster.settle(right)
    wrong = [*right[:3], ensemble("e", "m", "nobody")]
    always_routed(cluster, wrong, {"m", "n", "e"}, rounds=20)
    said = message(cluster, "Ensemble default/e", ConditionType.VALID)
    assert said.startswith("InvalidGraph: ")
    assert said.endswith("what it said before is still served")
    cluster.forget()
    always_routed(cluster, wrong, {"m", "n", "e"}, rounds=20)


def test_an_ensemble_whose_model_is_deleted_goes_with_it() -> None:
    cluster = Cluster((gpu_node("a"),))
    right = [pool(), model("m"), model("n"), ensemble("e", "m", "n")]
    cluster.settle(right)
    cluster.settle([right[0], right[1], right[3]])
    assert cluster.serving() == {"m": {"p-0"}}


def test_an_ensemble_that_stays_keeps_the_models_it_runs() -> None:
    nodes = tuple(gpu_node(name, labels={"zone": name}) for name in ("a", "b"))
    cluster = Cluster(nodes)
    members = [model("m"), model("n"), ensemble("e", "m", "n")]
    cluster.settle([pool(nodeSelector={"zone": "a"}), *members])
    cluster.refuses = frozenset({("e", 1)})
    always_routed(cluster, [pool(nodeSelector={"zone": "b"}), *members], {"m", "n", "e"})
    routed = cluster.routed()
    assert routed["e"] == {"p-0"}
    assert routed["m"] == routed["n"] == {"p-1"}
    assert [each.name for each in cluster.servers["p-0"].step.repository.models] == ["m", "n", "e"]
    cluster.refuses = frozenset()
    always_routed(cluster, [pool(nodeSelector={"zone": "b"}), *members], {"m", "n", "e"})
    assert cluster.servers.keys() == {"p-1"}


def test_what_waits_for_each_other_is_not_left_waiting() -> None:
    cluster = Cluster((gpu_node("a", 2),))
    apart = [pool(), model("m", memory=10), model("n", memory=60)]
    cluster.settle(apart)
    together = [*apart, ensemble("e", "m", "n")]
    cluster.tick(together)
    said = message(cluster, "InferenceModel default/m") + message(cluster, "InferenceModel default/n")
    assert "because others waited for its room" in said
    cluster.settle(together)
    assert cluster.routed().keys() == {"m", "n", "e"}
    assert len(cluster.servers) == 1


def test_a_model_that_asks_for_another_pool_is_served_until_it_is_reached_there() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("m"), model("z")])
    cluster.elsewhere = {"m": False}
    rest = [pool(), model("z")]
    for _ in range(40):
        cluster.tick(rest)
        cluster.forget()
        assert cluster.routed() == {"m": {"p-0"}, "z": {"p-0"}}
    cluster.elsewhere = {"m": True}
    for _ in range(int(DRAIN_PERIOD.total_seconds() / 2)):
        cluster.tick(rest)
        assert cluster.routed().keys() == {"m", "z"}
    cluster.tick(rest)
    assert (cluster.routed().keys(), cluster.serving().keys()) == ({"z"}, {"m", "z"})
    cluster.settle(rest)
    assert cluster.serving() == {"z": {"p-0"}}


def test_the_last_model_that_asks_for_another_pool_keeps_its_server() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("m")])
    cluster.elsewhere = {"m": False}
    always_routed(cluster, [pool()], {"m"})
    cluster.elsewhere = {"m": True}
    cluster.settle([pool()])
    assert cluster.servers == {}


def test_an_ensemble_whose_model_asks_for_another_pool_goes_on_until_it_does_too() -> None:
    cluster = Cluster((gpu_node("a"),))
    right = [pool(), model("m"), model("n"), ensemble("e", "m", "n")]
    cluster.settle(right)
    cluster.elsewhere = {"m": True}
    without = [right[0], right[2], right[3]]
    always_routed(cluster, without, {"n", "e"}, rounds=40)
    assert cluster.serving().keys() == {"m", "n", "e"}
    cluster.elsewhere = {"m": True, "n": True, "e": True}
    cluster.settle([pool()])
    assert cluster.servers == {}


@pytest.mark.parametrize("devices", ["all", "0,1,", "GPU-1"])
def test_what_people_write_into_a_config_is_never_read_back(devices: str) -> None:
    cluster = Cluster((gpu_node("a"),))
    config = {"parameters": {"gpu_device_ids": {"string_value": devices}}}
    cluster.settle([pool(), model("m", config=config), model("k")])
    cluster.settle([pool(), model("m", version=2, config=config), model("k")])
    assert cluster.routed() == {"m": {"p-0"}, "k": {"p-0"}}
    cluster.settle([pool(), model("k")])
    assert cluster.serving() == {"k": {"p-0"}}
