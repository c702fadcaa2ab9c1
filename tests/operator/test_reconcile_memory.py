"""No GPU is ever over its memory, whichever versions, revisions and bindings of models change on it."""

from dataclasses import replace
from typing import Any

import pytest
from tests.operator.planning.declared import GIB, ensemble, gpu_node, model, pool
from tests.operator.planning.simulated_cluster import Cluster

from argosy.api import ConditionType, Resource

Sizes = dict[tuple[str, int], int]


def sizes(**versions: list[int]) -> Sizes:
    """Return the GiB of each model's versions, from the first."""
    return {(name, at): size * GIB for name, registered in versions.items() for at, size in enumerate(registered, 1)}


def never_too_full(
    cluster: Cluster, resources: list[Resource], memory: Sizes, routed: set[str], rounds: int = 60
) -> None:
    """Run rounds in each of which no GPU is over its memory and all of `routed` are reached, until all settles."""
    for _ in range(rounds):
        cluster.tick(resources)
        assert cluster.overcommitted(memory) == []
        assert routed <= cluster.routed().keys()
    cluster.settle(resources)


def loaded(cluster: Cluster, server: str = "p-0") -> dict[str, set[int]]:
    return {name: set(result.versions) for name, result in cluster.servers[server].loaded.items()}


def test_a_newcomer_waits_for_the_larger_former_version_of_another() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("m", memory=60)])
    smaller = [pool(), model("m", version=2, memory=20), model("a", memory=40)]
    cluster.tick(smaller)
    assert "it waits until m has changed on this server" in cluster.message("a")
    never_too_full(cluster, smaller, sizes(m=[60, 20], a=[40]), {"m"})
    assert loaded(cluster) == {"m": {2}, "a": {1}}


def test_a_larger_version_loads_alongside_a_small_one() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("m", memory=10)])
    never_too_full(cluster, [pool(), model("m", version=2, memory=50)], sizes(m=[10, 50]), {"m"})
    assert loaded(cluster) == {"m": {2}}


def test_two_that_change_at_once_do_so_one_after_the_other() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("m", memory=24), model("n", memory=24)])
    new = [pool(), model("m", version=2, memory=24), model("n", version=2, memory=24)]
    cluster.tick(new)
    assert "it waits until m has changed on this server" in cluster.message("n")
    never_too_full(cluster, new, sizes(m=[24, 24], n=[24, 24]), {"m", "n"})
    assert loaded(cluster) == {"m": {2}, "n": {2}}


def test_another_size_of_a_loaded_model_counts_at_once() -> None:
    cluster = Cluster((gpu_node("a", 2),))
    cluster.settle([pool(), model("m", memory=20)])
    done_at = cluster.servers["p-0"].done_at
    cluster.settle([pool(), model("m", memory=50)])
    assert cluster.servers["p-0"].done_at == done_at
    cluster.settle([pool(), model("m", version=2, memory=40)])
    assert "it needs 40 GiB on GPU 0 of node a, where 30 GiB are free" in cluster.message("m")


def test_a_version_without_a_recorded_size_counts_as_what_is_declared() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("m", memory=50)])
    for result in cluster.servers["p-0"].loaded.values():
        for source in result.versions.values():
            object.__setattr__(source, "memory", 0)
    cluster.tick([pool(), model("m", version=2, memory=50)])
    assert "version 2 does not fit next to version 1" in cluster.message("m")


@pytest.mark.parametrize(
    ("policy", "desired"),
    [({"latest": {"numVersions": 3}}, 60), ({"specific": {"versions": [1, 2, 3]}}, 60), ({"all": {}}, 60)],
)
def test_versions_that_stay_are_in_the_plan(policy: dict[str, object], desired: int) -> None:
    cluster = Cluster((gpu_node("a"),))
    for version in (1, 2, 3):
        cluster.settle([pool(), model("m", version=version, memory=20, versionPolicy=policy)])
    resources = [pool(), model("m", version=3, memory=20, versionPolicy=policy), model("n", memory=40)]
    never_too_full(cluster, resources, sizes(m=[20, 20, 20], n=[40]), {"m"})
    assert loaded(cluster) == {"m": {1, 2, 3}}
    assert cluster.message("n", ConditionType.PLACED).startswith("NoRoom: ")
    assert cluster.outcome is not None
    ((server,),) = (pool.servers for pool in cluster.outcome.plan.pools)
    assert [placement.memory for placement in server.placements] == [desired * GIB]


def test_a_version_that_an_ensemble_holds_to_is_in_the_plan() -> None:
    cluster = Cluster((gpu_node("a"),))
    own: dict[str, Any] = {"memory": 10, "instances": 1, "versionPolicy": {"latest": {"numVersions": 2}}}
    reserved = ensemble("e", "m").spec.model_dump(by_alias=True)
    step = {**reserved["steps"][0], "version": 1}
    pinned = ensemble("e", "m", steps=[step])
    for version in (1, 2, 3):
        cluster.settle([pool(), model("m", version=version, **own), pinned])
    assert loaded(cluster)["m"] == {1, 2, 3}
    cluster.tick([pool(), model("m", version=3, **own), pinned])
    assert cluster.outcome is not None
    (server,) = cluster.outcome.plan.pools[0].servers
    assert [placement.memory for placement in server.placements] == [30 * GIB]


def test_too_many_versions_are_named() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("m", memory=30, versionPolicy={"latest": {"numVersions": 3}})])
    reported = cluster.message("m", ConditionType.PLACED)
    assert "m needs 90 GiB for 3 versions on one GPU" in reported
    assert "the versions that versionPolicy keeps" in reported


def test_a_model_that_changes_its_gpu_waits_for_what_leaves_there() -> None:
    cluster = Cluster((gpu_node("a", 2),))
    limited = pool(maxServers=1)
    stays = [limited, model("m", memory=20), model("n", memory=40)]
    cluster.settle([*stays, model("k", memory=60)])
    before = dict(cluster.snapshot.pool("default/p").servers[0].placed)
    resources = [*stays, model("o", memory=44), model("q", memory=24)]
    cluster.tick(resources)
    after = cluster.snapshot.pool("default/p").servers[0].placed
    assert before["n"] != after["n"]
    assert "it waits until k has left this server" in cluster.message("n")
    memory = sizes(m=[20], n=[40], k=[60], o=[44], q=[24])
    never_too_full(cluster, resources, memory, {"m", "n"})
    assert cluster.serving().keys() == {"m", "n", "o", "q"}


def test_a_version_on_another_gpu_is_charged_where_it_is() -> None:
    cluster = Cluster((gpu_node("a", 2),))
    limited = pool(maxServers=1)
    cluster.settle([limited, model("m", memory=20), model("n", memory=40), model("k", memory=60)])
    resources = [limited, model("m", version=2, memory=50), model("n", memory=40)]
    never_too_full(cluster, resources, sizes(m=[20, 50], n=[40], k=[60]), {"m", "n"})
    assert loaded(cluster) == {"m": {2}, "n": {1}}


@pytest.mark.parametrize("edit", [{"maxBatchSize": 8}, {"storageUri": "s3://b/m/other"}, {"batching": {}}])
def test_a_configuration_that_does_not_fit_waits_and_says_so(edit: dict[str, object]) -> None:
    cluster = Cluster((gpu_node("a", 2),))
    cluster.settle([pool(), model("m", memory=60)])
    revision = cluster.servers["p-0"].loaded["m"]
    base = {"maxBatchSize": 4, **edit} if "batching" in edit else edit
    changed = [pool(), model("m", memory=60, **base)]
    never_too_full(cluster, changed, sizes(m=[60]), {"m"}, rounds=10)
    assert cluster.servers["p-0"].loaded["m"] == revision
    assert cluster.message("m").startswith("NoRoom: ")
    assert "the new configuration of version 1 does not fit next to the one that serves" in cluster.message("m")
    twice = [pool(), model("m", memory=60, minReplicas=2, **base)]
    never_too_full(cluster, twice, sizes(m=[60]), {"m"}, rounds=120)
    assert all(server.loaded["m"] != revision for server in cluster.servers.values())
    assert "does not fit" not in cluster.message("m")


def test_a_configuration_is_never_loaded_twice_without_memory() -> None:
    cluster = Cluster((gpu_node("a", 2),))
    cluster.settle([pool(), model("m", memory=60, minReplicas=2)])
    changed = [pool(), model("m", memory=60, minReplicas=2, maxBatchSize=8)]
    for _ in range(120):
        former = {name: dict(server.loaded) for name, server in cluster.servers.items()}
        cluster.tick(changed)
        assert "m" in cluster.routed()
        for name, server in cluster.servers.items():
            assert "m" not in server.loaded or former[name].get("m") in (None, server.loaded["m"])
    assert "max_batch_size: 8" in cluster.servers["p-0"].loaded["m"].config_text


def test_a_small_model_takes_a_new_configuration_while_it_serves() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("m", memory=20)])
    never_too_full(cluster, [pool(), model("m", memory=20, maxBatchSize=8)], sizes(m=[20]), {"m"})
    assert "max_batch_size: 8" in cluster.servers["p-0"].loaded["m"].config_text


def test_a_policy_alone_needs_no_space() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("m", memory=60)])
    cluster.settle([pool(), model("m", memory=60, versionPolicy={"all": {}})])
    assert cluster.message("m").startswith("Loaded: ")


def test_two_that_wait_for_one_anothers_gpu_are_not_left_waiting() -> None:
    cluster = Cluster((gpu_node("a", 2),))
    resources = [pool(maxServers=1), model("m", memory=50), model("n", memory=50)]
    cluster.settle(resources)
    (server,) = cluster.snapshot.pool("default/p").servers
    exchanged = {"m": server.placed["n"], "n": server.placed["m"]}
    pool_now = replace(cluster.snapshot.pool("default/p"), servers=(replace(server, placed=exchanged),))
    cluster.snapshot = replace(cluster.snapshot, pools={"default/p": pool_now})
    cluster.tick(resources)
    assert "because others waited for its room" in cluster.message("m")
    never_too_full(cluster, resources, sizes(m=[50], n=[50]), {"n"})
    assert cluster.snapshot.pool("default/p").servers[0].placed == exchanged
    assert cluster.serving().keys() == {"m", "n"}


def test_a_version_that_does_not_load_holds_up_no_one() -> None:
    cluster = Cluster((gpu_node("a"),), refuses=frozenset({("m", 2)}))
    cluster.settle([pool(), model("m", memory=30)])
    bad = [pool(), model("m", version=2, memory=30)]
    cluster.settle(bad)
    assert cluster.message("m").startswith("LoadFailed: ")
    never_too_full(cluster, [*bad, model("n", memory=30)], sizes(m=[30, 30], n=[30]), {"m"})
    assert cluster.routed().keys() == {"m", "n"}
