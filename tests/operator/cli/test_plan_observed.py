"""The fleet of a cluster's caches, planned from what runs."""

from datetime import UTC, datetime

from tests.operator.controller.bodies import model, pool
from tests.operator.controller.fakes import FakeCache
from tests.operator.planning.declared import gpu_node

from argosy.cli.planning.built_plan import built_plan
from argosy.cli.planning.fleet.observed import observed_snapshot
from argosy.cli.planning.fleet.what_if import Changes, changed
from argosy.cluster.cache.pool_view import PoolView
from argosy.controller.resources.parsed_body import parsed_body
from argosy.controller.resources.store import Store
from argosy.planning.explanation.difference import difference
from argosy.planning.facts import CurrentServer
from argosy.snapshot import FleetSnapshot

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ON_B = CurrentServer("p-0", "b", (1,), {"m": (1,)})


def observed(*servers: CurrentServer, pods: dict[str, dict[str, int]] | None = None) -> FleetSnapshot:
    store = Store()
    footprint = {"gpuMemory": "30Gi"}
    for body in (
        pool("p"),
        pool("q"),
        model(footprint=footprint),
        model("other", footprint=footprint, poolRef={"name": "q"}),
    ):
        store.put(parsed_body(body))
    nodes = (gpu_node("a", 2), gpu_node("b", 2))
    return observed_snapshot(store, FakeCache(nodes, {"n/p": PoolView(current=servers)}, pods or {}))


def test_every_pool_is_planned_from_what_runs() -> None:
    snapshot = observed(ON_B)
    running = {key: of_pool.servers for key, of_pool in snapshot.pools.items()}
    changes = difference(running, built_plan(snapshot, NOW)[0].plan, snapshot.nodes)
    assert changes.moved == ()
    assert [(one.model, one.after.gpus) for one in changes.placed if one.after] == [("other", (0,))]


def test_a_node_is_taken_from_what_runs() -> None:
    snapshot = observed(ON_B)
    plan = built_plan(changed(snapshot, Changes(without_nodes=("b",))).snapshot, NOW)[0].plan
    running = {key: of_pool.servers for key, of_pool in snapshot.pools.items()}
    (move,) = difference(running, plan, snapshot.nodes).moved
    assert (move.before and move.before.node, move.after and move.after.node) == ("b", "a")


def test_gpus_of_other_pods_are_withheld() -> None:
    snapshot = observed(ON_B, pods={"a": {"team/train-0": 2}})
    plan = built_plan(snapshot, NOW)[0].plan
    assert {server.node for of_pool in plan.pools for server in of_pool.servers} == {"b"}
    assert not any(of_pool.unplaced for of_pool in plan.pools)


def test_a_resource_with_an_invalid_spec_is_reported_and_the_rest_is_planned() -> None:
    store = Store()
    for body in (pool("p"), model(footprint={"gpuMemory": "thirty"}), model("fine", footprint={"gpuMemory": "3Gi"})):
        store.put(parsed_body(body))
    outcome = built_plan(observed_snapshot(store, FakeCache((gpu_node("a"),))), NOW)[0]
    assert [one.group for of_pool in outcome.plan.pools for server in of_pool.servers for one in server.placements] == [
        "fine"
    ]
    assert any("gpuMemory" in problem.path for problem in outcome.problems)
