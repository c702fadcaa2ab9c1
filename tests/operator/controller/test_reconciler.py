"""A round does all that it can, whatever fails; virtual, without an API server."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from tests.operator.controller.test_store import STATUS, model, pool, with_status
from tests.operator.fleet.declared import gpu_node

from argosy.api import Resource
from argosy.cluster.apply import Applied, Applier
from argosy.cluster.errors import ApiError, ForbiddenError, UnreachableError
from argosy.cluster.observe import Observer
from argosy.cluster.pods import PodView
from argosy.cluster.poolview import PoolView
from argosy.controller.events import Announcer
from argosy.controller.reconciler import ELSEWHERE_AGAIN_S, REFUSED_AGAIN_S, Reconciler
from argosy.controller.store import Store
from argosy.fleet.facts import CurrentServer, Refusal, ServerReport
from argosy.fleet.status.statuses import Status
from argosy.reconcile import DRAIN
from argosy.render.workloads import Cluster, Images, KubernetesObject, object_identity
from argosy_runtime.agent.contract import LoadedModel, LoadState, RenderedModel, RenderedRepository, VersionSource

KEY = "n/p"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Observed:
    """A cluster with one node; what is known of pools, by key."""

    views: dict[str, PoolView] = field(default_factory=dict)

    def nodes(self) -> Sequence[object]:
        return (gpu_node("a"),)

    def pools(self) -> set[str]:
        return {KEY}

    def pool(self, key: str) -> PoolView:
        return self.views.get(key, PoolView())

    def foreign_gpus(self) -> dict[str, int]:
        return {}


@dataclass
class Writes:
    """What was written; `applied` is what becomes of the objects, `wrong` what is refused, by Pod or resource."""

    applied: Applied = field(default_factory=Applied)
    objects: set[str] = field(default_factory=set)
    keep: set[str] = field(default_factory=set)
    routes: dict[str, frozenset[str]] = field(default_factory=dict)
    statuses: dict[str, Status] = field(default_factory=dict)
    wrong: dict[str, ApiError] = field(default_factory=dict)

    async def apply(self, key: str, objects: Sequence[KubernetesObject], _: Any, keep: Collection[str]) -> Applied:
        self.objects, self.keep = {object_identity(each) for each in objects}, set(keep)
        return self.applied

    async def route(self, pod: PodView, namespace: str, routes: frozenset[str], settled: bool) -> None:
        if pod.name in self.wrong:
            raise self.wrong[pod.name]
        self.routes[pod.name] = routes

    async def status(self, resource: Resource, status: Status) -> bool:
        if resource.identity in self.wrong:
            raise self.wrong[resource.identity]
        self.statuses[resource.identity] = status
        return True

    async def changed(self, *_: Any) -> None:
        """An Event, which nobody reads here."""


def rounds(
    writes: Writes,
    resources: Store | None = None,
    observed: Observed | None = None,
    clock: Callable[[], datetime] = lambda: NOW,
) -> Reconciler:
    """Reconciler over a pool with one model, where nothing else is given."""
    if resources is None:
        resources = Store()
        for body in (pool(), model()):
            resources.put(body)
    seen, applier, announcer = cast(Observer, observed or Observed()), cast(Applier, writes), cast(Announcer, writes)
    return Reconciler(resources, seen, applier, announcer, Images("a", "b", "c"), Cluster("policy/v1"), clock)


async def test_statuses_are_written_though_an_object_could_not_be_applied() -> None:
    writes = Writes(Applied(failure=UnreachableError(500, "InternalError", "try later")))
    with pytest.raises(UnreachableError, match="try later"):
        await rounds(writes).reconcile(KEY)
    assert "Deployment n/p-0" in writes.objects
    assert writes.statuses.keys() == {"ServingPool n/p", "InferenceModel n/m"}


async def test_what_is_refused_is_told_in_the_next_round_which_comes_at_once() -> None:
    refusal = Refusal("InferenceModel n/m", "Service n/m", "exists and is not Argosy's")
    writes = Writes(Applied((refusal,)))
    run = rounds(writes)
    first = await run.reconcile(KEY)
    assert first is not None
    await run.reconcile(KEY)
    ready = writes.statuses["InferenceModel n/m"].conditions[0]
    assert (str(ready.reason), "Service n/m" in ready.message) == ("NotApplied", True)


def serving(server: str) -> PoolView:
    """A pool with one server that serves the model `m`."""
    routes = frozenset({"m"})
    loaded = (LoadedModel("m", 1, LoadState.READY),)
    return PoolView(
        (CurrentServer(server, "a", ()),),
        (ServerReport(server, True, loaded, settled=True, takes_requests=True, routes=routes),),
        (RenderedRepository(server, (RenderedModel("m", 'name: "m"', {1: VersionSource("s3://bucket/m")}),)),),
        pods=(PodView(server, server, server, True, True, False, routes, True, "", NOW),),
    )


async def test_a_pool_serves_what_asks_for_another_until_it_is_reached_there() -> None:
    resources, observed, writes, now = Store(), Observed({KEY: serving("p-0")}), Writes(), NOW
    for body in (pool(), pool("q"), with_status(model(generation=2, poolRef={"name": "q"}))):
        resources.put(body)
    run = rounds(writes, resources, observed, lambda: now)
    observed.views["n/q"] = serving("q-0")
    assert await run.reconcile(KEY) == NOW + timedelta(
        seconds=ELSEWHERE_AGAIN_S
    )  # its status is not of this generation
    assert "Deployment n/p-0" in writes.objects
    assert (writes.routes, writes.keep) == ({}, {"Service n/m"})
    status = STATUS.model_copy(update={"observed_generation": 2})
    resources.wrote("InferenceModel n/m", status)
    observed.views["n/q"] = PoolView()
    assert await run.reconcile(KEY) == NOW + timedelta(seconds=ELSEWHERE_AGAIN_S)
    observed.views["n/q"] = serving("q-0")
    wake = await run.reconcile(KEY)
    assert (wake, writes.routes) == (NOW + DRAIN / 2, {})
    now += DRAIN / 2
    await run.reconcile(KEY)
    assert writes.routes == {"p-0": frozenset()}


async def test_a_pool_that_is_gone_leaves_the_services_of_what_asks_for_another() -> None:
    resources, writes = Store(), Writes()
    resources.put(pool("q"))
    moved = model(poolRef={"name": "q"})
    resources.put(moved)
    await rounds(writes, resources, Observed({KEY: serving("p-0")})).reconcile(KEY)
    assert (writes.objects, writes.keep) == (set(), {"Service n/m"})
    resources.put({**moved, "metadata": {**moved["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}})
    await rounds(writes, resources, Observed({KEY: serving("p-0")})).reconcile(KEY)
    assert writes.keep == set()


async def test_a_service_is_made_by_the_pool_that_serves() -> None:
    resources, writes = Store(), Writes()
    for body in (pool(), pool("q"), model(), model(generation=2, poolRef={"name": "q"}, version="wrong")):
        resources.put(body)
    run = rounds(writes, resources)
    await run.reconcile(KEY)
    assert "Service n/m" in writes.objects
    await run.reconcile("n/q")
    assert "Service n/m" not in writes.objects


def pod(name: str) -> PodView:
    """A Pod that may be asked for what it no longer has."""
    return PodView(name, name, "p-0", True, True, False, frozenset({"old"}), False, "", NOW)


async def test_what_is_refused_of_one_object_holds_up_no_other() -> None:
    denied, later = ForbiddenError(403, "Forbidden", "labels are fixed"), UnreachableError(500, "", "try later")
    refusal = Refusal("InferenceModel n/m", "Service n/m", "exists")
    writes = Writes(Applied((refusal,)), wrong={"a": denied, "ServingPool n/p": later})
    run = rounds(writes, observed=Observed({KEY: PoolView(pods=(pod("a"), pod("b")))}))
    with pytest.raises(ForbiddenError, match="labels are fixed"):
        await run.reconcile(KEY)
    assert writes.routes.keys() == {"b"}
    assert writes.statuses.keys() == {"InferenceModel n/m"}
    with pytest.raises(ForbiddenError):
        await run.reconcile(KEY)
    assert writes.statuses["InferenceModel n/m"].conditions[0].reason == "NotApplied"
    writes.wrong.pop("a")
    with pytest.raises(UnreachableError, match="try later"):
        await run.reconcile(KEY)


async def test_a_refusal_in_other_words_is_no_new_one() -> None:
    def refused(words: str) -> Applied:
        return Applied((Refusal("InferenceModel n/m", "Service n/m", words),))

    writes = Writes(refused("read tcp 10.0.0.5:48712: connection reset"))
    run = rounds(writes)
    first = await run.reconcile(KEY)
    writes.applied = refused("read tcp 10.0.0.5:48999: connection reset")
    second = await run.reconcile(KEY)
    assert (first, second) == (NOW, NOW + timedelta(seconds=REFUSED_AGAIN_S))
