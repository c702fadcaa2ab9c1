"""Instances and batching change where a model serves: it stays where it is, and waits for the memory that it needs."""

from datetime import timedelta
from typing import Any

from tests.operator.planning import declared
from tests.operator.planning.declared import gpu_node, model
from tests.operator.planning.simulated_cluster import Cluster

from argosy.api import ServingPool
from argosy_agent.contract import RenderedModel


def pool(**spec: Any) -> ServingPool:
    """Return the pool of the declared models, all of whose memory is theirs."""
    return declared.pool(memoryHeadroom="0%", **spec)


def loaded(cluster: Cluster, name: str) -> tuple[str, RenderedModel]:
    """Return the server that has a model, and the model as loaded there."""
    ((server, result),) = [(s, server.loaded[name]) for s, server in cluster.servers.items() if name in server.loaded]
    return server, result


def test_one_that_grows_stays_on_its_gpu_where_it_fits_there() -> None:
    cluster = Cluster((gpu_node("a", 2), gpu_node("b", 2)))
    cluster.settle([pool(), model("m", memory=20), model("n", memory=30)])
    before = loaded(cluster, "m")
    cluster.settle([pool(), model("m", memory=20, instances=2), model("n", memory=30)])
    server, after = loaded(cluster, "m")
    assert (server, after.gpus) == (before[0], before[1].gpus)
    assert (before[1].instances, after.instances) == (1, 2)
    assert before[1].reload_key == after.reload_key
    assert "count: 2" in after.config_text


def test_while_it_grows_requests_reach_it() -> None:
    cluster = Cluster((gpu_node("a", 1),), slow=timedelta(seconds=5))
    cluster.settle([pool(), model("m", memory=20)])
    for _ in range(12):
        cluster.tick([pool(), model("m", memory=20, instances=3)])
        assert cluster.routed()["m"]
        assert cluster.serving()["m"]
    assert loaded(cluster, "m")[1].instances == 3


def test_what_fills_a_gpu_grows_there_without_space_for_a_second_copy() -> None:
    """A reload would need as much memory again; two more instances need 40 GiB, and 40 are free."""
    cluster = Cluster((gpu_node("a", 1),))
    cluster.settle([pool(), model("m", memory=20, instances=2)])
    outcome = cluster.settle([pool(), model("m", memory=20, instances=4)])
    assert loaded(cluster, "m")[1].instances == 4
    assert all(status.ready for status in outcome.statuses.values())


def test_it_waits_for_the_instances_of_another_that_frees_memory() -> None:
    cluster = Cluster((gpu_node("a", 1),), slow=timedelta(seconds=5))
    cluster.settle([pool(), model("m", memory=20, instances=3), model("n", memory=20)])
    desired = [pool(), model("m", memory=20), model("n", memory=20, instances=3)]
    seen = []
    for _ in range(40):
        cluster.tick(desired)
        seen.append((loaded(cluster, "m")[1].instances, loaded(cluster, "n")[1].instances))
    assert seen[-1] == (1, 3)
    assert all(m + n <= 4 for m, n in seen), "80 GiB have room for four of 20"


def test_another_window_needs_no_space_and_no_second_copy() -> None:
    cluster = Cluster((gpu_node("a", 1),))
    cluster.settle([pool(), model("m", memory=70, batching={})])
    outcome = cluster.settle([pool(), model("m", memory=70, batching={"maxQueueDelayMicroseconds": 500})])
    assert "max_queue_delay_microseconds: 500" in loaded(cluster, "m")[1].config_text
    assert all(status.ready for status in outcome.statuses.values())


def test_on_nvidia_s_server_batching_is_a_reload_that_has_no_space() -> None:
    cluster = Cluster((gpu_node("a", 1),))
    triton = pool(runtime={"name": "triton"})
    cluster.settle([triton, model("m", memory=70, batching={})])
    cluster.settle([triton, model("m", memory=70, batching={"maxQueueDelayMicroseconds": 500})])
    assert "500" not in loaded(cluster, "m")[1].config_text
    fits = Cluster((gpu_node("a", 1),))
    fits.settle([triton, model("m", memory=20)])
    fits.settle([triton, model("m", memory=20, instances=4)])
    assert loaded(fits, "m")[1].instances == 4
