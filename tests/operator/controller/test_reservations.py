"""Pools on the same nodes, one round after another: a GPU goes from one to the other, and never has two servers."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from tests.operator.controller.bodies import model, pool
from tests.operator.controller.fakes import FakeCache, FakeStatusListener, FakeWriter
from tests.operator.controller.test_reconciler import NOW
from tests.operator.planning.declared import gpu_node

from argosy.api import ConditionType, ServingPoolStatus
from argosy.api.status import CordonedGpu, InferenceModelStatus
from argosy.api.values.identity import PoolKey
from argosy.cluster.apply.applier import Applied
from argosy.cluster.cache.builds.build_objects import BuildJob
from argosy.cluster.cache.builds.build_view import BuildView
from argosy.cluster.cache.pool_view import PoolView
from argosy.cluster.client.errors import UnreachableError
from argosy.controller.resources.parsed_body import parsed_body
from argosy.controller.resources.store import Store
from argosy.controller.rounds.reconciler import Reconciler
from argosy.planning.builds.build import JobState
from argosy.planning.facts import CurrentServer, Refusal, ServerReport
from argosy.planning.nodes.reservations import CONCESSION_DELAY
from argosy.render.workloads import Cluster, Images, KubernetesObject
from argosy_agent.contract import FailureKind, LoadedModel, LoadState

SHRUNKEN = CurrentServer("q-0", "a", (0, 1, 2, 3), {"y": (0,)})
"""A server of the pool `q` that lost models: it has all four GPUs, and needs one."""
GPU = "nvidia.com/gpu"


def fleet(pods: dict[str, dict[str, int]] | None = None, **views: PoolView) -> FakeCache:
    """Return one node with four GPUs; `pods` are GPUs of others, by node and Pod; `views` are pools by name."""
    node = gpu_node("a", 4, nvlink=(frozenset(range(4)),))
    return FakeCache((node,), {f"n/{name}": view for name, view in views.items()}, pods or {})


@dataclass(slots=True)
class Applies(FakeWriter):
    """Records the GPUs of every applied Deployment."""

    gpus: dict[str, int] = field(default_factory=dict)

    async def apply(
        self,
        pool: str,
        objects: Sequence[KubernetesObject],
        owners: Mapping[str, str],
        keep: Collection[str] = (),
    ) -> Applied:
        applied = await FakeWriter.apply(self, pool, objects, owners, keep)
        refused = {refusal.object for refusal in applied.refusals}
        for item in objects if applied.failure is None else ():
            name = item["metadata"]["name"]
            if item["kind"] == "Deployment" and f"Deployment n/{name}" not in refused:
                containers = item["spec"]["template"]["spec"]["containers"]
                limits = [container["resources"].get("limits", {}) for container in containers]
                self.gpus[name] = sum(int(limit.get(GPU, 0)) for limit in limits)
        assert sum(self.gpus.values()) <= 4
        return applied


def reconciler(observed: FakeCache, writes: Applies, message: list[str], gpus: int = 2) -> Reconciler:
    """Return a reconciler of pool `p` with a model of so many GPUs, and `q` with a model of one."""
    store = Store()
    y, x = {"name": "q"}, {"name": "p"}
    for body in (pool("p"), pool("q"), _full_gpus("x", x, gpus), _full_gpus("y", y, 1)):
        store.put(parsed_body(body))
    images, offered = Images("a", "b", "c"), Cluster("policy/v1")
    return Reconciler(
        store, observed, writes, FakeStatusListener(), images, offered, lambda: NOW, changed=message.append
    )


def _full_gpus(name: str, pool_ref: dict[str, str], gpus: int) -> dict[str, Any]:
    return model(name, poolRef=pool_ref, footprint={"gpus": gpus, "gpuMemory": "10Gi"})


def node_of(writes: FakeWriter, server: str) -> tuple[str, list[int]]:
    """Return the planned node and GPUs of a server, by its pool's status."""
    status = writes.statuses[f"ServingPool n/{server[0]}"]
    assert isinstance(status, ServingPoolStatus)
    (result,) = (item for item in status.servers if item.name == server)
    return result.node, list(result.gpus)


def gpus_of(writes: FakeWriter, identity: str) -> tuple[int, int, int]:
    """Return the used, free and withheld GPUs of a pool, by its status."""
    status = writes.statuses[identity]
    assert isinstance(status, ServingPoolStatus)
    assert status.gpus is not None
    return status.gpus.used, status.gpus.free, status.gpus.withheld


async def test_gpus_that_a_shrunken_server_keeps_go_to_the_pool_that_needs_them() -> None:
    observed, writes, reported = fleet(q=PoolView((SHRUNKEN,))), Applies(), list[str]()
    run = reconciler(observed, writes, reported)
    await run.reconcile(PoolKey("n/q"))
    assert (writes.gpus, reported) == ({"q-0": 4}, [])
    await run.reconcile(PoolKey("n/p"))
    assert (writes.gpus, reported) == ({"q-0": 4}, ["n/q"])
    placed = writes.statuses["InferenceModel n/x"].conditions[1:]
    assert any("servers of ServingPool n/q hold and no longer need" in item.message for item in placed)
    assert gpus_of(writes, "ServingPool n/p") == (0, 0, 4)
    await run.reconcile(PoolKey("n/q"))
    assert (writes.gpus, reported) == ({"q-0": 1}, ["n/q", "n/p"])
    await run.reconcile(PoolKey("n/p"))
    assert writes.gpus == {"q-0": 1, "p-0": 2}
    assert gpus_of(writes, "ServingPool n/p") == (2, 1, 1)


def preempting(writes: Applies, reported: list[str], preemption: str = "LowerPriority") -> tuple[Reconciler, Store]:
    """Return a reconciler of pool `p`, whose model `x` has no GPU, and `q`, whose `y` has all of them and gives way."""
    y, x = {"name": "q"}, {"name": "p"}
    store, lower = Store(), pool("q", packing={"preemption": preemption})
    for body in (pool("p"), lower, _full_gpus("y", y, 4), _full_gpus("x", x, 4)):
        store.put(parsed_body(body))
    images, offered = Images("a", "b", "c"), Cluster("policy/v1")
    run = Reconciler(
        store, fleet(), writes, FakeStatusListener(), images, offered, lambda: NOW, changed=reported.append
    )
    return run, store


async def test_what_gave_way_is_placed_again_once_nothing_claims_its_gpus_any_more() -> None:
    writes, reported = Applies(), list[str]()
    run, store = preempting(writes, reported)
    x = {"name": "p"}
    for key in ("n/q", "n/p"):
        await run.reconcile(PoolKey(key))
    store.put(parsed_body(model("x", poolRef=x, priority=500, footprint={"gpus": 4, "gpuMemory": "10Gi"})))
    for key in ("n/p", "n/q"):
        await run.reconcile(PoolKey(key))
    store.put(parsed_body(_full_gpus("x", x, 8)))
    reported.clear()
    writes.gpus.clear()
    await run.reconcile(PoolKey("n/p"))
    assert reported == ["n/q"]
    await run.reconcile(PoolKey("n/q"))
    assert writes.gpus["q-0"] == 4


async def test_a_gpu_goes_to_the_pool_whose_priority_comes_before_all_that_is_there() -> None:
    writes, reported, x = Applies(), list[str](), {"name": "p"}
    run, store = preempting(writes, reported)
    for key in ("n/q", "n/p"):
        await run.reconcile(PoolKey(key))
    assert (writes.gpus, reported) == ({"q-0": 4}, [])
    store.put(parsed_body(model("x", poolRef=x, priority=500, footprint={"gpus": 4, "gpuMemory": "10Gi"})))
    await run.reconcile(PoolKey("n/p"))
    assert reported == ["n/q"]
    del writes.gpus["q-0"]
    await run.reconcile(PoolKey("n/q"))
    await run.reconcile(PoolKey("n/p"))
    assert writes.gpus == {"p-0": 4}
    winner, loser = writes.statuses["InferenceModel n/x"], writes.statuses["InferenceModel n/y"]
    assert isinstance(winner, InferenceModelStatus)
    assert isinstance(loser, InferenceModelStatus)
    assert [(one.name, one.pool) for one in winner.preempted] == [("y", "n/q")]
    assert loser.preempted_by is not None
    assert (loser.preempted_by.name, loser.preempted_by.pool, loser.preempted_by.priority) == ("x", "n/p", 500)
    writes.gpus.clear()
    for key in ("n/q", "n/p", "n/q"):
        await run.reconcile(PoolKey(key))
    assert writes.gpus == {"p-0": 4}


async def test_a_pool_that_keeps_lower_priorities_is_named_as_what_could_give_way() -> None:
    writes = Applies()
    run, store = preempting(writes, [], "Never")
    for key in ("n/q", "n/p"):
        await run.reconcile(PoolKey(key))
    four = {"gpus": 4, "gpuMemory": "10Gi"}
    store.put(parsed_body(model("x", poolRef={"name": "p"}, priority=500, footprint=four)))
    await run.reconcile(PoolKey("n/p"))
    status = writes.statuses["ServingPool n/p"]
    assert isinstance(status, ServingPoolStatus)
    text = "packing.preemption: LowerPriority in ServingPool n/q, which takes it from y with priority 0"
    assert [(one.name, one.remedy) for one in status.unplaced] == [("x", text)]
    assert writes.gpus == {"q-0": 4}


@pytest.mark.parametrize(
    "outcome",
    [
        Applied(failure=UnreachableError(500, "InternalError", "try later")),
        Applied((Refusal("ServingPool n/q", "Deployment n/q-0", "a quota is used up"),)),
    ],
)
async def test_gpus_are_not_free_until_the_server_that_gives_them_up_is_changed(outcome: Applied) -> None:
    observed, writes, reported = fleet(q=PoolView((SHRUNKEN,))), Applies(), list[str]()
    run = reconciler(observed, writes, reported)
    await run.reconcile(PoolKey("n/q"))
    await run.reconcile(PoolKey("n/p"))
    writes.applied = outcome
    try:
        await run.reconcile(PoolKey("n/q"))
    except UnreachableError:
        assert outcome.failure is not None
    writes.applied = Applied()
    await run.reconcile(PoolKey("n/p"))
    assert (writes.gpus, reported) == ({"q-0": 4}, ["n/q"])
    await run.reconcile(PoolKey("n/q"))
    await run.reconcile(PoolKey("n/p"))
    assert writes.gpus == {"q-0": 1, "p-0": 2}


async def test_gpus_of_other_pods_are_reported_with_who_holds_them() -> None:
    observed, writes = fleet({"a": {"team/train-0": 3, "team/train-1": 1}}), Applies()
    await reconciler(observed, writes, []).reconcile(PoolKey("n/p"))
    status = writes.statuses["ServingPool n/p"]
    assert isinstance(status, ServingPoolStatus)
    assert status.gpus is not None
    assert [(item.holder, item.gpus) for item in status.gpus.withheld_by] == [
        ("Pod team/train-0", 3),
        ("Pod team/train-1", 1),
    ]
    assert (status.gpus.total, status.gpus.free, status.gpus.withheld) == (4, 0, 4)
    assert "others hold 4: 3 by Pod team/train-0, 1 by Pod team/train-1" in status.unplaced[0].message


async def test_a_pool_that_waits_looks_again_when_another_one_needs_less() -> None:
    full = CurrentServer("q-0", "a", (0, 1, 2, 3), {"y": (0,), "gone": (1, 2, 3)})
    observed, writes, reported = fleet(q=PoolView((full,))), Applies(), list[str]()
    run = reconciler(observed, writes, reported)
    await run.reconcile(PoolKey("n/p"))
    assert reported == []
    await run.reconcile(PoolKey("n/q"))
    assert reported == ["n/p"]


async def test_a_gpu_less_moves_the_server_that_does_not_answer() -> None:
    ours = CurrentServer("p-0", "a", (0, 1), {"x": (0, 1)})
    theirs = CurrentServer("q-0", "a", (3,), {"y": (3,)})
    answers = PoolView((theirs,), (ServerReport("q-0", True),))
    observed, writes = fleet(p=PoolView((ours,), (ServerReport("p-0", False),)), q=answers), Applies()
    observed.ready_nodes = (gpu_node("a", 3), gpu_node("b", 2, nvlink=(frozenset({0, 1}),)))
    run = reconciler(observed, writes, [], gpus=2)
    for key in ("n/q", "n/p", "n/q", "n/p"):
        await run.reconcile(PoolKey(key))
    assert node_of(writes, "q-0") == ("a", [3])
    observed.ready_nodes = (gpu_node("a", 1), *observed.ready_nodes[1:])
    for key in ("n/q", "n/p", "n/q", "n/p"):
        await run.reconcile(PoolKey(key))
    assert node_of(writes, "q-0") == ("a", [3])


async def test_a_gpu_less_moves_the_server_with_device_errors_though_all_answer() -> None:
    ours = CurrentServer("p-0", "a", (0,), {"x": (0,)})
    theirs = CurrentServer("q-0", "a", (3,), {"y": (3,)})
    broken = LoadedModel("x", 1, LoadState.UNAVAILABLE, "no device", FailureKind.DEVICE, attempts=1)
    failing = PoolView((ours,), (ServerReport("p-0", True, (broken,)),))
    observed, writes = fleet(p=failing, q=PoolView((theirs,), (ServerReport("q-0", True),))), Applies()
    observed.ready_nodes = (gpu_node("a", 1), gpu_node("b", 1))
    run = reconciler(observed, writes, [], gpus=1)
    for key in ("n/q", "n/p", "n/q", "n/p"):
        await run.reconcile(PoolKey(key))
    assert node_of(writes, "q-0") == ("a", [3])
    assert node_of(writes, "p-1") == ("b", [0])


async def test_a_gpu_that_one_pool_has_cordoned_is_no_other_pools_either() -> None:
    cordon = CordonedGpu(node="a", gpu=0, time="2026-01-01T00:00:00Z")
    status = ServingPoolStatus(cordoned_gpus=(cordon,)).model_dump(mode="json", by_alias=True, exclude_none=True)
    observed, writes, store = fleet(), Applies(), Store()
    observed.ready_nodes = (gpu_node("a", 2),)
    for body in ({**pool("p"), "status": status}, pool("q"), _full_gpus("y", {"name": "q"}, 1)):
        store.put(parsed_body(body))
    run = Reconciler(
        store, observed, writes, FakeStatusListener(), Images("a", "b", "c"), Cluster("policy/v1"), lambda: NOW
    )
    await run.reconcile(PoolKey("n/q"))
    assert node_of(writes, "q-0") == ("a", [1])
    for key in ("n/p", "n/q"):
        await run.reconcile(PoolKey(key))
    assert store.cordoned() == {"n/p": {("a", 0)}}, "a round of its own pool leaves it as it is"


async def test_a_gpu_that_a_foreign_pod_took_is_conceded_after_a_while() -> None:
    since = NOW - CONCESSION_DELAY + timedelta(seconds=5)
    mine = CurrentServer("q-0", "a", (0,), {"y": (0,)})
    view = PoolView((mine,), (ServerReport("q-0", False, unscheduled_since=since),))
    observed, writes, now = fleet({"a": {"team/train": 4}}, q=view), Applies(), NOW
    observed.ready_nodes = (gpu_node("a", 4), gpu_node("b", 1))
    store = Store()
    for body in (pool("q"), _full_gpus("y", {"name": "q"}, 1)):
        store.put(parsed_body(body))
    images = Images("a", "b", "c")
    run = Reconciler(store, observed, writes, FakeStatusListener(), images, Cluster(), lambda: now)
    assert await run.reconcile(PoolKey("n/q")) == NOW + timedelta(seconds=5)
    assert node_of(writes, "q-0") == ("a", [0])
    now += timedelta(seconds=5)
    await run.reconcile(PoolKey("n/q"))
    status = writes.statuses["ServingPool n/q"]
    assert isinstance(status, ServingPoolStatus)
    assert [server.node for server in status.servers] == ["b"]


def builder(observed: FakeCache, writes: Applies) -> Reconciler:
    """Return a reconciler of pool `p` with a model that requests an engine, and `q` with a model of all four GPUs."""
    store, retained = Store(), {"storage": {"engineCache": {"storageUri": "s3://b/e"}}}
    engine = model("x", poolRef={"name": "p"}, modelFormat={"name": "onnx"}, engine={"builder": "onnxruntime"})
    for body in (pool("p", **retained), pool("q"), engine, _full_gpus("y", {"name": "q"}, 4)):
        store.put(parsed_body(body))
    return Reconciler(store, observed, writes, FakeStatusListener(), Images("a", "b", "c"), Cluster(), lambda: NOW)


async def test_a_gpu_that_a_build_is_to_have_is_no_other_pools() -> None:
    node = replace(gpu_node("a", 4, nvlink=(frozenset(range(4)),)), compute_capability="9.0")
    observed, writes = FakeCache((node,)), Applies()
    run = builder(observed, writes)
    await run.reconcile(PoolKey("n/p"))
    (job,) = (item for item in writes.objects if item.startswith("Job "))
    await run.reconcile(PoolKey("n/q"))
    assert writes.gpus == {}
    placed = writes.statuses["InferenceModel n/y"].condition(ConditionType.PLACED)
    assert placed is not None
    assert "1 by ServingPool n/p" in placed.message
    name = job.rpartition("-build-")[2]
    made = BuildJob(name, job, "", JobState.ACTIVE, "a", (0,))
    for node_name, withheld in (("", {"ServingPool n/p": 1}), ("a", {})):
        observed.views = {PoolKey("n/p"): PoolView(builds={name: BuildView(name, job=made, node=node_name)})}
        again = builder(observed, writes)  # the operator restarted
        await again.reconcile(PoolKey("n/q"))
        status = writes.statuses["ServingPool n/q"]
        assert isinstance(status, ServingPoolStatus)
        assert status.gpus is not None
        assert {item.holder: item.gpus for item in status.gpus.withheld_by} == withheld
