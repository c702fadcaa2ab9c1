"""Models that move to other nodes or to another pool, without a failed request."""

import pytest
from tests.operator.planning.declared import ensemble, gpu_node, model, pool
from tests.operator.planning.simulated_cluster import Cluster

from argosy.planning.migration.pool_migration import DRAIN_PERIOD


def test_models_of_a_new_ensemble_come_together_without_anyone_noticing() -> None:
    cluster = Cluster((gpu_node("a", 1), gpu_node("b", 1)))
    apart = [pool(), model("m", memory=40), model("n", memory=20)]
    cluster.settle([pool(), model("m", memory=40), model("big", memory=44)])
    cluster.settle([*apart, model("big", memory=44)])
    cluster.settle([pool(), model("m", memory=40), model("n", memory=20)])
    assert len(cluster.servers) == 2
    both = [*apart, ensemble("e", "m", "n")]
    cluster.keep_routed(both, {"m", "n"})
    assert cluster.routed()["e"] == cluster.routed()["m"] == cluster.routed()["n"]


def test_a_selector_moves_a_pool_to_other_nodes_without_anyone_noticing() -> None:
    nodes = tuple(gpu_node(name, labels={"zone": name}) for name in ("a", "b"))
    cluster = Cluster(nodes)
    cluster.settle([pool(nodeSelector={"zone": "a"}), model("m"), model("n"), ensemble("e", "m", "n")])
    moved = [pool(nodeSelector={"zone": "b"}), model("m"), model("n"), ensemble("e", "m", "n")]
    cluster.keep_routed(moved, {"m", "n", "e"})
    assert {server.step.plan.node for server in cluster.servers.values()} == {"b"}


@pytest.mark.parametrize("lacks", ["unlabelled", "unready"])
def test_a_model_stays_routed_until_requests_reach_its_new_server(lacks: str) -> None:
    nodes = tuple(gpu_node(name, labels={"zone": name}) for name in ("a", "b"))
    cluster = Cluster(nodes)
    cluster.settle([pool(nodeSelector={"zone": "a"}), model("m")])
    setattr(cluster, lacks, frozenset({"p-1"}))
    moved = [pool(nodeSelector={"zone": "b"}), model("m")]
    for _ in range(60):
        cluster.tick(moved)
        assert cluster.routed() == {"m": {"p-0"}}
    setattr(cluster, lacks, frozenset())
    cluster.keep_routed(moved, {"m"})
    assert cluster.routed() == {"m": {"p-1"}}


def test_a_replica_that_takes_no_requests_gives_the_route_back() -> None:
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
    cluster.keep_routed(moved, {"m"})
    assert "until then it is served by p-0" in cluster.message("m")
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


def test_an_ensemble_that_stays_keeps_the_models_it_runs() -> None:
    nodes = tuple(gpu_node(name, labels={"zone": name}) for name in ("a", "b"))
    cluster = Cluster(nodes)
    members = [model("m"), model("n"), ensemble("e", "m", "n")]
    cluster.settle([pool(nodeSelector={"zone": "a"}), *members])
    cluster.refuses = frozenset({("e", 1)})
    cluster.keep_routed([pool(nodeSelector={"zone": "b"}), *members], {"m", "n", "e"})
    routed = cluster.routed()
    assert routed["e"] == {"p-0"}
    assert routed["m"] == routed["n"] == {"p-1"}
    assert [model.name for model in cluster.servers["p-0"].step.repository.models] == ["m", "n", "e"]
    cluster.refuses = frozenset()
    cluster.keep_routed([pool(nodeSelector={"zone": "b"}), *members], {"m", "n", "e"})
    assert cluster.servers.keys() == {"p-1"}


def test_a_model_that_changes_pools_is_served_until_it_is_reached() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("m"), model("z")])
    cluster.moved = {"m": False}
    rest = [pool(), model("z")]
    for _ in range(40):
        cluster.tick(rest)
        cluster.forget()
        assert cluster.routed() == {"m": {"p-0"}, "z": {"p-0"}}
    cluster.moved = {"m": True}
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
    cluster.moved = {"m": False}
    cluster.keep_routed([pool()], {"m"})
    cluster.moved = {"m": True}
    cluster.settle([pool()])
    assert cluster.servers == {}


def test_an_ensemble_whose_model_changes_pools_goes_on_until_it_does() -> None:
    cluster = Cluster((gpu_node("a"),))
    right = [pool(), model("m"), model("n"), ensemble("e", "m", "n")]
    cluster.settle(right)
    cluster.moved = {"m": True}
    without = [right[0], right[2], right[3]]
    cluster.keep_routed(without, {"n", "e"}, rounds=40)
    assert cluster.serving().keys() == {"m", "n", "e"}
    cluster.moved = {"m": True, "n": True, "e": True}
    cluster.settle([pool()])
    assert cluster.servers == {}
