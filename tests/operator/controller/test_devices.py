"""Devices of nodes over several rounds of a reconciler: what flaps moves nothing, and what is tainted is left."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.operator.controller.bodies import model, pool
from tests.operator.controller.fakes import FakeCache, FakeStatusListener, FakeWriter
from tests.operator.planning.declared import gpu_node
from tests.operator.planning.nodes.slices_v1 import gpu, resource_slice
from tests.operator.planning.nodes.test_dra import bare, node

from argosy.api.values.identity import PoolKey
from argosy.controller.resources.parsed_body import parsed_body
from argosy.controller.resources.store import Store
from argosy.controller.rounds.reconciler import Reconciler
from argosy.planning.facts import Node
from argosy.planning.nodes.reported.holds import HOLD
from argosy.render.workloads import Cluster, Images

KEY = PoolKey("n/p")


@dataclass(slots=True)
class Rounds:
    """A reconciler of one pool with these models, on nodes that change."""

    cache: FakeCache
    writes: FakeWriter = field(default_factory=FakeWriter)
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    reconciler: Reconciler = field(init=False)

    def __post_init__(self) -> None:
        store = Store()
        for body in (pool("p"), *(model(f"m-{at}", poolRef={"name": "p"}, footprint=_FOOTPRINT) for at in range(2))):
            store.put(parsed_body(body))
        offered = Cluster("policy/v1", device_claims=True)
        listener, images = FakeStatusListener(), Images("a", "b", "c")
        self.reconciler = Reconciler(store, self.cache, self.writes, listener, images, offered, lambda: self.now)

    async def round(self, *nodes: Node, seconds: float = 5) -> datetime | None:
        """Run a round on these nodes, so much later."""
        self.cache.ready_nodes = nodes
        self.now += timedelta(seconds=seconds)
        return await self.reconciler.reconcile(KEY)

    def placed(self) -> dict[str, Any]:
        """Return the placement of each server, as its ConfigMap has it."""
        bodies = [one for one in self.writes.bodies.values() if one["kind"] == "ConfigMap"]
        notes = {one["metadata"]["name"]: one["metadata"].get("annotations") or {} for one in bodies}
        return {name: of["argosy.dev/placement"] for name, of in notes.items() if "argosy.dev/placement" in of}

    def kinds(self, kind: str) -> list[str]:
        """Return the names of the written objects of a kind."""
        return sorted(one["metadata"]["name"] for one in self.writes.bodies.values() if one["kind"] == kind)


_FOOTPRINT = {"gpuMemory": "60Gi"}


async def test_a_count_that_flaps_moves_no_server_and_ends_with_a_round() -> None:
    rounds = Rounds(FakeCache())
    spare = gpu_node("b", 1)
    await rounds.round(gpu_node("a", 2))
    before = rounds.placed()
    assert len(before) == 2
    for count in (1, 2, 1, 1, 2, 1):
        wake = await rounds.round(gpu_node("a", count), spare)
        assert rounds.placed() == before
        assert wake is not None
        assert wake <= rounds.now + HOLD
    await rounds.round(gpu_node("a", 1), spare, seconds=HOLD.total_seconds())
    assert rounds.placed() != before, "no server answers there, and the GPU is gone for good"


async def test_servers_have_devices_by_claims_and_half_a_pool_changes_nothing() -> None:
    rounds = Rounds(FakeCache())
    both = node(resource_slice("s", gpu(0), gpu(1)))
    await rounds.round(both)
    before, templates = rounds.placed(), rounds.kinds("ResourceClaimTemplate")
    assert (len(before), len(templates)) == (2, 2)
    half = node(resource_slice("s", gpu(0), pool={"generation": 2, "resourceSliceCount": 2}))
    gone = tuple(one for one in both.gpus if one.index not in {here.index for here in half.gpus})
    await rounds.round(replace(half, former=gone))
    assert rounds.placed() == before
    written = {f"ResourceClaimTemplate n/{name}" for name in rounds.kinds("ResourceClaimTemplate")}
    assert {f"ResourceClaimTemplate n/{name}" for name in templates} <= written | rounds.writes.keep
    assert rounds.kinds("Deployment") == ["p-0", "p-1"]


async def test_a_cluster_without_devices_writes_no_templates() -> None:
    rounds = Rounds(FakeCache())
    await rounds.round(gpu_node("a", 2), bare("b"))
    assert rounds.kinds("ResourceClaimTemplate") == []
    assert len(rounds.placed()) == 2
