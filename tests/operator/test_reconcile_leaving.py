"""What leaves a server: when it goes, and what waits for it."""

from datetime import timedelta

from tests.operator.planning.declared import GIB, ensemble, gpu_node, model, pool
from tests.operator.planning.simulated_cluster import POOL, Cluster

from argosy.planning.migration.pool_migration import DRAIN_PERIOD


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


def test_a_model_that_no_one_declares_is_drained_before_it_goes() -> None:
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


def test_what_needs_the_memory_of_something_that_leaves_waits_for_it() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("old", memory=60)])
    resources = [pool(), model("new", memory=60)]
    cluster.tick(resources)
    assert "it waits until old has left this server" in cluster.message("new")
    for _ in range(40):
        cluster.tick(resources)
        assert cluster.overcommitted({("old", 1): 60 * GIB, ("new", 1): 60 * GIB}) == []
    assert cluster.serving() == {"new": {"p-0"}}


def test_a_suspended_pool_lets_go_of_everything_at_once() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("m")])
    outcome = cluster.tick([pool(suspend=True), model("m")])
    assert (cluster.servers, outcome.steps[POOL]) == ({}, ())


def test_a_model_that_no_longer_fits_goes_on_serving_and_others_wait() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("m")])
    cluster.keep_routed([pool(), model("m", memory=100), model("n", memory=64)], {"m"}, rounds=30)
    assert cluster.serving() == {"m": {"p-0"}}
    assert "still served by p-0" in cluster.message("m")
    assert "it waits until m has left" in cluster.message("n")
    cluster.settle([pool(), model("n", memory=64)])
    assert cluster.serving() == {"n": {"p-0"}}


def test_a_server_keeps_its_gpus_while_it_serves() -> None:
    cluster = Cluster((gpu_node("a", 2),))
    limited = pool(maxServers=1)
    cluster.settle([limited, model("m", memory=40), model("n", memory=40)])
    cluster.keep_routed([limited, model("n", memory=40)], {"n"}, rounds=40)
    assert cluster.servers["p-0"].step.plan.gpus == (0, 1)


def test_an_ensemble_whose_model_is_deleted_goes_with_it() -> None:
    cluster = Cluster((gpu_node("a"),))
    right = [pool(), model("m"), model("n"), ensemble("e", "m", "n")]
    cluster.settle(right)
    cluster.settle([right[0], right[1], right[3]])
    assert cluster.serving() == {"m": {"p-0"}}


def test_what_waits_for_one_another_is_not_left_waiting() -> None:
    cluster = Cluster((gpu_node("a", 2),))
    apart = [pool(), model("m", memory=10), model("n", memory=60)]
    cluster.settle(apart)
    together = [*apart, ensemble("e", "m", "n")]
    cluster.tick(together)
    reported = cluster.message("m") + cluster.message("n")
    assert "because others waited for its room" in reported
    cluster.settle(together)
    assert cluster.routed().keys() == {"m", "n", "e"}
    assert len(cluster.servers) == 1
