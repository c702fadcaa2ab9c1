"""How many servers are given up with their Nodes: a wrong list of Nodes ends no fleet."""

from tests.operator.planning.declared import gpu_node, model, pool
from tests.operator.planning.simulated_cluster import POOL, Cluster

from argosy.api import ConditionType, Resource

MODELS = tuple(model(f"m-{n}", memory=60) for n in range(8))


def serving() -> tuple[Cluster, list[Resource]]:
    """Return a pool of eight servers with a model each, on four nodes."""
    cluster, resources = Cluster(tuple(gpu_node(name, 2) for name in "abcd")), [pool(maxGpusPerServer=1), *MODELS]
    cluster.settle(resources)
    assert len(cluster.servers) == 8
    return cluster, resources


def test_servers_that_answer_stay_when_all_their_nodes_vanish_from_a_list() -> None:
    cluster, resources = serving()
    nodes, before = cluster.nodes, cluster.routed()
    cluster.nodes = ()
    for _ in range(30):
        cluster.tick(resources)
        assert cluster.routed() == before
    assert cluster.outcome is not None
    status = cluster.outcome.statuses["ServingPool default/p"]
    stalled = status.condition(ConditionType.STALLED)
    assert stalled is not None
    assert (str(stalled.status), str(stalled.reason)) == ("True", "DisruptionLimited")
    assert "the Nodes of 8 of 8 servers are gone" in stalled.message
    assert "gives up 2" in stalled.message
    assert "raise spec.maxDisruption" in stalled.message
    cluster.nodes = nodes
    cluster.settle(resources)
    assert cluster.routed() == before
    assert cluster.message("ServingPool default/p", ConditionType.STALLED) == "Settled: "


def test_it_is_forced_by_the_pools_own_field() -> None:
    cluster, resources = serving()
    cluster.nodes = ()
    cluster.tick(resources)
    assert len(cluster.servers) == 8
    cluster.tick([pool(maxGpusPerServer=1, maxDisruption="100%"), *MODELS])
    assert cluster.servers == {}


def test_a_few_of_many_servers_go_at_once() -> None:
    cluster, resources = serving()
    cluster.nodes = tuple(node for node in cluster.nodes if node.name != "a")
    cluster.tick(resources)
    assert "a" not in {server.step.plan.node for server in cluster.servers.values()}


def test_servers_whose_pods_went_with_their_nodes_hold_nothing_up() -> None:
    cluster, resources = serving()
    for name in "abc":
        cluster.lose(name)
    cluster.tick(resources)
    assert cluster.message("ServingPool default/p", ConditionType.STALLED) == "Settled: "
    assert {server.step.plan.node for server in cluster.servers.values()} == {"d"}


def test_deleted_and_suspended_models_are_no_disruption() -> None:
    cluster, _ = serving()
    cluster.settle([pool(maxGpusPerServer=1)])
    assert cluster.servers == {}
    cluster, _ = serving()
    cluster.tick([pool(maxGpusPerServer=1, suspend=True), *MODELS])
    assert cluster.servers == {}


def test_a_server_that_stays_keeps_what_is_noted_of_its_slot() -> None:
    cluster, resources = serving()
    before = {server.name: server for server in cluster.snapshot.pool(POOL).servers}
    cluster.nodes = ()
    cluster.tick(resources)
    assert {server.name: server for server in cluster.snapshot.pool(POOL).servers} == before
