"""A round does all that it can, whatever fails; virtual, without an API server."""

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.operator.controller.bodies import model, pool
from tests.operator.controller.fakes import FakeCache, FakeStatusListener, FakeWriter
from tests.operator.controller.test_store import STATUS, with_status
from tests.operator.planning.declared import GIB, gpu_node

from argosy.api import Condition, ConditionType, InferenceModel
from argosy.api.conditions import Reason
from argosy.api.status import Status
from argosy.api.values.identity import PoolKey
from argosy.api.values.reuse import RoundCache
from argosy.autoscaling.decision import Allocation, Decision, Ejection
from argosy.autoscaling.pool.regimes import FleetRegime
from argosy.cluster.apply.applier import Applied
from argosy.cluster.cache.pods.pod_cache import PodView
from argosy.cluster.cache.pool_view import PoolView
from argosy.cluster.client.errors import ForbiddenError, UnreachableError
from argosy.controller.resources.parsed_body import parsed_body
from argosy.controller.resources.store import Store
from argosy.controller.rounds import reconciler as module
from argosy.controller.rounds.reconciler import MOVED_RETRY_S, REFUSED_RETRY_S, Reconciler
from argosy.controller.rounds.report_expiry import EXPIRY
from argosy.planning.facts import CurrentServer, Node, Refusal, ServerReport
from argosy.planning.migration.pool_migration import DRAIN_PERIOD
from argosy.planning.packing.priorities import RankedPlan
from argosy.planning.plan import Placement, ServerPlan
from argosy.reconcile import decide
from argosy.render.keys import RenderedKeys
from argosy.render.workloads import DRAIN_ANNOTATION as DRAIN
from argosy.render.workloads import HARDWARE_ANNOTATION, Cluster, Images, KubernetesObject, parse_drain
from argosy.replay.bundle import Bundle
from argosy.replay.decisions import replayed
from argosy.replay.folder import BundleFolder, Record, not_recorded, read_bundle
from argosy.round import DecidedRound
from argosy.scaling import Decided, Scaling
from argosy.status.statuses import statuses
from argosy_agent.contract import LoadedModel, LoadState, RenderedModel, RenderedRepository, VersionSource
from argosy_common.regimes import RegimeState

KEY = PoolKey("n/p")
OFFERED = Cluster("policy/v1")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def observed(**views: PoolView) -> FakeCache:
    """Return the cache of a cluster with one node; `views` are the pools of the namespace `n`, by name."""
    return FakeCache((gpu_node("a"),), {KEY: PoolView()} | {f"n/{name}": view for name, view in views.items()})


def rounds(
    writes: FakeWriter,
    resources: Store | None = None,
    cache: FakeCache | None = None,
    clock: Callable[[], datetime] = lambda: NOW,
    record: Record = not_recorded,
    offered: Cluster = OFFERED,
) -> Reconciler:
    """Return a reconciler, by default of a pool with one model."""
    if resources is None:
        resources = Store()
        for body in (pool(), model()):
            resources.put(parsed_body(body))
    listener = FakeStatusListener()
    images = Images("a", "b", "c")
    return Reconciler(resources, cache or observed(), writes, listener, images, offered, clock, record=record)


async def test_a_round_that_nothing_changed_for_packs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    packed: list[RankedPlan | None] = []

    def deciding(*arguments: Any, **options: Any) -> DecidedRound:
        decided = decide(*arguments, **options)
        packed.append(decided.packed)
        return decided

    monkeypatch.setattr(module, "decide", deciding)
    reconciler = rounds(FakeWriter())
    for _ in range(3):
        await reconciler.reconcile(KEY)
    _, second, third = packed
    assert second is not None
    assert third is second


async def test_statuses_are_written_though_an_object_could_not_be_applied() -> None:
    writes = FakeWriter(Applied(failure=UnreachableError(500, "InternalError", "try later")))
    with pytest.raises(UnreachableError, match="try later"):
        await rounds(writes).reconcile(KEY)
    assert "Deployment n/p-0" in writes.objects
    assert writes.statuses.keys() == {"ServingPool n/p", "InferenceModel n/m"}


async def test_what_is_refused_is_reported_in_the_next_round_which_comes_at_once() -> None:
    refusal = Refusal("InferenceModel n/m", "Service n/m", "exists and is not Argosy's")
    writes = FakeWriter(Applied((refusal,)))
    run = rounds(writes)
    first = await run.reconcile(KEY)
    assert first is not None
    await run.reconcile(KEY)
    ready = writes.statuses["InferenceModel n/m"].conditions[0]
    assert (str(ready.reason), "Service n/m" in ready.message) == ("NotApplied", True)


async def test_what_fits_nowhere_has_a_placeholder_where_the_cluster_has_a_class_for_it() -> None:
    resources, cache = Store(), observed()
    footprint = {"gpuMemory": "60Gi"}
    for body in (pool(), model(footprint=footprint), model("other", footprint=footprint)):
        resources.put(parsed_body(body))
    writes = FakeWriter()
    await rounds(writes, resources, cache, offered=Cluster(placeholder_priority_class="last")).reconcile(KEY)
    (placeholder,) = (name for name in writes.objects if "placeholder" in name)
    assert writes.bodies[placeholder]["spec"]["template"]["spec"]["priorityClassName"] == "last"
    unplaced = next(status for status in writes.statuses.values() if "placeholder" in str(status))
    assert placeholder.rpartition("/")[2] in str(unplaced)
    cache.ready_nodes = (*cache.ready_nodes, gpu_node("b"))
    await rounds(writes, resources, cache, offered=Cluster(placeholder_priority_class="last")).reconcile(KEY)
    assert not any("placeholder" in name for name in writes.objects)
    cache.ready_nodes = cache.ready_nodes[:1]
    await rounds(writes, resources, cache).reconcile(KEY)
    assert not any("placeholder" in name for name in writes.objects)


def serving(server: str) -> PoolView:
    """Return a pool with one server that serves the model `m`."""
    routes = frozenset({"m"})
    loaded = (LoadedModel("m", 1, LoadState.READY),)
    return PoolView(
        (CurrentServer(server, "a", ()),),
        (ServerReport(server, True, loaded, settled=True, takes_requests=True, routes=routes),),
        (RenderedRepository(server, (RenderedModel("m", 'name: "m"', {1: VersionSource("s3://bucket/m")}),)),),
        pods=(PodView(server, server, server, True, True, False, routes, True, "", NOW),),
    )


async def test_a_node_whose_gpus_no_server_uses_may_lose_them() -> None:
    """As where they are taken out: what runs on its CPU is no reason to take nothing new."""
    resources, writes, cache = Store(), FakeWriter(), observed(p=serving("p-0"))
    for body in (pool(), with_status(model(footprint={"device": "CPU"}))):
        resources.put(parsed_body(body))
    await rounds(writes, resources, cache).reconcile(KEY)
    assert HARDWARE_ANNOTATION not in _annotations(writes.bodies["ConfigMap n/p-0"])


async def test_a_fleet_of_which_no_node_is_heard_stands_as_it_is() -> None:
    gpu = (CurrentServer("p-0", "a", (0,), {"m": (0,)}),)
    resources, writes, cache = Store(), FakeWriter(), observed(p=replace(serving("p-0"), current=gpu))
    for body in (pool(), with_status(model(footprint={"gpuMemory": "20Gi"}))):
        resources.put(parsed_body(body))
    run = rounds(writes, resources, cache)
    await run.reconcile(KEY)
    noted = _annotations(writes.bodies["ConfigMap n/p-0"])
    assert json.loads(noted[HARDWARE_ANNOTATION])["memory"] == [80 * GIB]
    silent = gpu_node("a", ready=False, unready_since=NOW - timedelta(hours=1))
    unreadable = Node("a", (), schedulable=False, stale=True)
    for node in (silent, unreadable):
        cache.ready_nodes = (node,)
        await rounds(writes, resources, cache).reconcile(KEY)  # also after a restart
        await run.reconcile(KEY)
        assert {"Deployment n/p-0", "ConfigMap n/p-0", "ConfigMap n/p-0-state"} <= writes.objects
        assert "p-0" not in writes.routes or writes.routes["p-0"] == {"m"}


async def test_a_pool_serves_what_asks_for_another_until_it_is_reached_there() -> None:
    resources, cache, writes, now = Store(), observed(p=serving("p-0")), FakeWriter(), NOW
    for body in (pool(), pool("q"), with_status(model(generation=2, poolRef={"name": "q"}))):
        resources.put(parsed_body(body))
    run = rounds(writes, resources, cache, lambda: now)
    cache.views["n/q"] = serving("q-0")
    assert await run.reconcile(KEY) == NOW + timedelta(seconds=MOVED_RETRY_S)  # its status is not of this generation
    assert "Deployment n/p-0" in writes.objects
    assert (writes.routes, writes.keep) == ({}, {"Service n/m"})
    status = STATUS.model_copy(update={"observed_generation": 2})
    resources.wrote("InferenceModel n/m", status)
    cache.views["n/q"] = PoolView()
    assert await run.reconcile(KEY) == NOW + timedelta(seconds=MOVED_RETRY_S)
    cache.views["n/q"] = serving("q-0")
    wake = await run.reconcile(KEY)
    assert (wake, writes.routes) == (NOW + DRAIN_PERIOD / 2, {})
    noted = writes.bodies["ConfigMap n/p-0"]
    since = parse_drain(_annotations(noted)[DRAIN])
    assert since == {"m": NOW + DRAIN_PERIOD / 2}
    cache.views[KEY] = replace(serving("p-0"), drain_since={("p-0", "m"): since["m"]})
    another = rounds(writes, resources, cache, lambda: now)  # it knows no more than what the cluster holds
    now += DRAIN_PERIOD / 2
    await another.reconcile(KEY)
    assert writes.routes == {"p-0": frozenset()}


async def test_a_server_with_a_queue_that_is_too_long_is_sent_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = serving("p-0"), serving("p-1")
    view = PoolView(
        one.current + other.current, one.reports + other.reports, one.repositories + other.repositories,
        pods=one.pods + other.pods,
    )  # fmt: skip
    resources, writes = Store(), FakeWriter()
    for body in (pool(), with_status(model(replicas=2))):
        resources.put(parsed_body(body))
    decision = Decision(Allocation(2), 2, Reason.FIXED_REPLICAS, "It is so.", ejection=Ejection(("p-0",)))
    monkeypatch.setattr(Scaling, "before", lambda *_: Decided({"InferenceModel n/m": decision}))
    await rounds(writes, resources, observed(p=view)).reconcile(KEY)
    assert (writes.routes["p-0"], writes.ejected["p-0"]) == ({"m"}, {"m"})
    assert not writes.ejected.get("p-1")


def _variant_server(
    server: str, variant: str, *, of: str = "m", ready: bool = True, ejected: frozenset[str] = frozenset()
) -> PoolView:
    """Return a pool with one server that has one variant of a model."""
    name, routes = f"{of}--{variant}", frozenset({of, f"{of}--{variant}"})
    own = RenderedModel(name, f'name: "{name}"', {1: VersionSource("s3://bucket/m")})
    routed = RenderedModel(of, f'name: "{of}"', {1: VersionSource()}, {name: 1}, alternatives=True)
    loaded = tuple(LoadedModel(model, 1, LoadState.READY) for model in sorted(routes))
    return PoolView(
        (CurrentServer(server, "a", ()),),
        (ServerReport(server, ready, loaded, settled=True, takes_requests=ready, routes=routes),),
        (RenderedRepository(server, (own, routed)),),
        pods=(PodView(server, server, server, ready, ready, False, routes, True, "", NOW, ejected=ejected),),
    )


def _shared(one: PoolView, other: PoolView) -> PoolView:
    """Return a pool whose server has what both servers have, which are one."""
    (report,), (repository,), (pod,) = one.reports, one.repositories, one.pods
    routes = pod.routes | other.pods[0].routes
    return replace(
        one,
        reports=(replace(report, models=(*report.models, *other.reports[0].models), routes=routes),),
        repositories=(replace(repository, models=(*repository.models, *other.repositories[0].models)),),
        pods=(replace(pod, routes=routes),),
    )


def _together(*views: PoolView) -> PoolView:
    return PoolView(
        tuple(server for view in views for server in view.current),
        tuple(report for view in views for report in view.reports),
        tuple(repository for view in views for repository in view.repositories),
        pods=tuple(pod for view in views for pod in view.pods),
    )


async def test_the_service_of_a_model_leads_to_the_servers_of_one_variant(monkeypatch: pytest.MonkeyPatch) -> None:
    resources, writes = Store(), FakeWriter()
    variants = [{"name": "low", "maxConcurrency": 8}, {"name": "high"}]
    separate = model(variants=variants, routing={"placement": "Separate"}, footprint={"device": "CPU"})
    for body in (pool(), separate):
        resources.put(parsed_body(body))
    m = frozenset({"m"})
    both = _together(_variant_server("p-0", "low"), _variant_server("p-1", "high", ejected=m))
    await rounds(writes, resources, observed(p=both)).reconcile(KEY)
    assert writes.ejected == {}, "they are led to as they should be"
    regime = FleetRegime("high", RegimeState(1, 0, 1))
    decided = Decided(regimes={"InferenceModel n/m": regime})
    monkeypatch.setattr(Scaling, "before", lambda *_: decided)
    await rounds(writes, resources, observed(p=both)).reconcile(KEY)
    assert list(writes.ejected.items()) == [("p-1", frozenset()), ("p-0", m)], "first it opens, then it closes"
    assert writes.routes == {"p-0": {"m", "m--low"}, "p-1": {"m", "m--high"}}
    services = {name: writes.bodies[f"Service n/{name}"] for name in ("m", "m--low", "m--high")}
    assert [one["spec"]["selector"] for one in services.values()] == [
        {f"serves.argosy.dev/{name}": "true"} for name in services
    ]
    owner = services["m--low"]["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("InferenceModel", "m", "uid-m")
    writes.ejected.clear()
    down = _together(_variant_server("p-0", "low"), _variant_server("p-1", "high", ready=False))
    await rounds(writes, resources, observed(p=down)).reconcile(KEY)
    assert not writes.ejected.get("p-0"), "the variant that the load asks for cannot answer"


async def test_a_variant_whose_pod_cannot_be_opened_takes_no_requests_from_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resources, writes = Store(), FakeWriter(wrong={"p-1": UnreachableError(500, "InternalError", "try later")})
    variants = [{"name": "low", "maxConcurrency": 8}, {"name": "high"}]
    separate = model(variants=variants, routing={"placement": "Separate"}, footprint={"device": "CPU"})
    for body in (pool(), separate):
        resources.put(parsed_body(body))
    decided = Decided(regimes={"InferenceModel n/m": FleetRegime("high", RegimeState(1, 0, 1))})
    monkeypatch.setattr(Scaling, "before", lambda *_: decided)
    both = _together(_variant_server("p-0", "low"), _variant_server("p-1", "high", ejected=frozenset({"m"})))
    with pytest.raises(UnreachableError):
        await rounds(writes, resources, observed(p=both)).reconcile(KEY)
    assert not writes.ejected.get("p-0")


async def test_models_that_change_variants_on_the_same_servers_open_everywhere_before_they_close(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resources, writes = Store(), FakeWriter()
    variants = [{"name": "low", "maxConcurrency": 8}, {"name": "high"}]
    settings = {"variants": variants, "routing": {"placement": "Separate"}, "footprint": {"device": "CPU"}}
    for body in (pool(), model(**settings), model("k", **settings)):
        resources.put(parsed_body(body))
    regimes = {f"InferenceModel n/{name}": FleetRegime("high", RegimeState(1, 0, 1)) for name in "mk"}
    monkeypatch.setattr(Scaling, "before", lambda *_: Decided(regimes=regimes))
    m, k = frozenset({"m"}), frozenset({"k"})
    view = _together(
        _shared(_variant_server("p-0", "low", ejected=k), _variant_server("p-0", "high", of="k")),
        _shared(_variant_server("p-1", "high", ejected=m), _variant_server("p-1", "low", of="k")),
    )
    await rounds(writes, resources, observed(p=view)).reconcile(KEY)
    assert set(writes.rerouted[:2]) == {("p-0", frozenset()), ("p-1", frozenset())}
    assert set(writes.rerouted[2:]) == {("p-0", m), ("p-1", k)}


async def test_a_queue_that_is_too_long_counts_for_the_chosen_variant(monkeypatch: pytest.MonkeyPatch) -> None:
    resources, writes = Store(), FakeWriter()
    variants = [{"name": "low", "maxConcurrency": 8}, {"name": "high"}]
    separate = model(variants=variants, routing={"placement": "Separate"}, replicas=2, footprint={"device": "CPU"})
    for body in (pool(minServers=4), separate):
        resources.put(parsed_body(body))
    view = _together(*(_variant_server(f"p-{index}", "low" if index < 2 else "high") for index in range(4)))
    decision = Decision(Allocation(2), 2, Reason.FIXED_REPLICAS, "It is so.", ejection=Ejection(("p-0",)))
    monkeypatch.setattr(Scaling, "before", lambda *_: Decided({"Variant n/m--low": decision}))
    await rounds(writes, resources, observed(p=view)).reconcile(KEY)
    assert writes.ejected["p-0"] == {"m", "m--low"}
    assert writes.ejected.get("p-1", frozenset()) == frozenset()
    assert writes.ejected["p-2"] == writes.ejected["p-3"] == {"m"}


def _annotations(body: KubernetesObject) -> dict[str, str]:
    return body["metadata"].get("annotations") or {}


async def test_a_server_that_waits_for_its_turn_keeps_its_objects() -> None:
    resources, writes = Store(), FakeWriter()
    for body in (pool(), model(footprint={"gpuMemory": "20Gi"}), model("k", footprint={"gpus": 1})):
        resources.put(parsed_body(body))
    one, other = serving("p-0"), serving("p-1")
    view = PoolView(
        (CurrentServer("p-0", "a", (0,), {"m": (0,)}), CurrentServer("p-1", "a", (1,), {"k": (1,)})),
        (one.reports[0], replace(other.reports[0], settled=False)),
        (*one.repositories, *other.repositories),
        pods=(*one.pods, *other.pods),
        templates={"p-0": "older", "p-1": "older"},
    )
    await rounds(writes, resources, observed(p=view)).reconcile(KEY)
    assert {"ConfigMap n/p-1", "Deployment n/p-1"} <= writes.objects
    assert not {"ConfigMap n/p-0", "Deployment n/p-0"} & writes.objects
    assert {"ConfigMap n/p-0", "Deployment n/p-0"} <= writes.keep


async def test_a_server_is_not_restarted_while_what_it_serves_drains_on_another() -> None:
    resources, writes = Store(), FakeWriter()
    for body in (pool(), model(minReplicas=1)):
        resources.put(parsed_body(body))
    one, other = serving("p-0"), serving("p-1")
    (declared,) = resources.of_pool(KEY).members
    assert isinstance(declared, InferenceModel)
    placed = ServerPlan("p-0", "a", (), (Placement("m", 1, "m", (), 1, 0, 0),))
    keys = RenderedKeys().of_model(declared, placed.placements[0], placed)
    revision = RenderedModel(
        "m", 'name: "m"', {1: VersionSource("s3://bucket/m")}, reload_key=keys.reload, config_key=keys.config
    )
    view = PoolView(
        (CurrentServer("p-0", "a", (), {"m": ()}), CurrentServer("p-1", "a", ())),
        (*one.reports, *other.reports),
        (RenderedRepository("p-0", (revision,)), RenderedRepository("p-1", (revision,))),
        pods=(*one.pods, *other.pods),
        templates={"p-0": "older"},
    )
    await rounds(writes, resources, observed(p=view)).reconcile(KEY)
    assert "Deployment n/p-0" in writes.keep
    view = replace(view, reports=one.reports, repositories=one.repositories, pods=one.pods)
    await rounds(writes, resources, observed(p=view)).reconcile(KEY)
    assert "Deployment n/p-0" in writes.objects


@pytest.mark.parametrize("lacks", [{"ready": False}, {"routes": frozenset()}, {"terminating": True}], ids=str)
async def test_a_server_is_not_restarted_before_requests_reach_another_that_was(lacks: dict[str, Any]) -> None:
    resources, writes = Store(), FakeWriter()
    for body in (pool(), model(minReplicas=2)):
        resources.put(parsed_body(body))
    one, other = serving("p-0"), serving("p-1")
    view = PoolView(
        (CurrentServer("p-0", "a", (), {"m": ()}), CurrentServer("p-1", "a", (), {"m": ()})),
        (*one.reports, *other.reports),
        (*one.repositories, *other.repositories),
        pods=(*one.pods, replace(other.pods[0], **lacks)),
        templates={"p-0": "older"},
    )
    wake = await rounds(writes, resources, observed(p=view)).reconcile(KEY)
    assert "Deployment n/p-0" in writes.keep
    assert wake is not None, "nobody tells of the labels that it writes itself"
    view = replace(view, pods=(*one.pods, *other.pods))
    await rounds(writes, resources, observed(p=view)).reconcile(KEY)
    assert "Deployment n/p-0" in writes.objects


async def test_a_pool_that_is_gone_leaves_the_services_of_what_asks_for_another() -> None:
    resources, writes = Store(), FakeWriter()
    resources.put(parsed_body(pool("q")))
    moved = model(poolRef={"name": "q"})
    resources.put(parsed_body(moved))
    await rounds(writes, resources, observed(p=serving("p-0"))).reconcile(KEY)
    assert (writes.objects, writes.keep) == (set(), {"Service n/m"})
    resources.put(
        parsed_body({**moved, "metadata": {**moved["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}})
    )
    await rounds(writes, resources, observed(p=serving("p-0"))).reconcile(KEY)
    assert writes.keep == set()


async def test_a_service_is_made_by_the_pool_that_serves() -> None:
    resources, writes = Store(), FakeWriter()
    for body in (pool(), pool("q"), model(), model(generation=2, poolRef={"name": "q"}, version="wrong")):
        resources.put(parsed_body(body))
    run = rounds(writes, resources)
    await run.reconcile(KEY)
    assert "Service n/m" in writes.objects
    await run.reconcile(PoolKey("n/q"))
    assert "Service n/m" not in writes.objects


def pod(name: str) -> PodView:
    """Return a Pod that may be asked about models which it no longer has."""
    return PodView(name, name, "p-0", True, True, False, frozenset({"old"}), False, "", NOW)


async def test_what_is_refused_of_one_object_holds_up_no_other() -> None:
    denied, later = ForbiddenError(403, "Forbidden", "labels are fixed"), UnreachableError(500, "", "try later")
    refusal = Refusal("InferenceModel n/m", "Service n/m", "exists")
    writes = FakeWriter(Applied((refusal,)), wrong={"a": denied, "ServingPool n/p": later})
    run = rounds(writes, cache=observed(p=PoolView(pods=(pod("a"), pod("b")))))
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

    writes = FakeWriter(refused("read tcp 10.0.0.5:48712: connection reset"))
    run = rounds(writes)
    first = await run.reconcile(KEY)
    writes.applied = refused("read tcp 10.0.0.5:48999: connection reset")
    second = await run.reconcile(KEY)
    assert (first, second) == (NOW, NOW + timedelta(seconds=REFUSED_RETRY_S))


@pytest.mark.parametrize("fails", ["decide", "conclude"])
async def test_a_fault_of_ours_is_reported_until_a_round_works(monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    writes, resources, now = FakeWriter(), Store(), NOW
    for body in (pool(), model(), model("other", poolRef={"name": "q"}), pool("q")):
        resources.put(parsed_body(body))
    run = rounds(writes, resources, clock=lambda: now)
    await run.reconcile(KEY)
    before = {identity: status.model_copy() for identity, status in writes.statuses.items()}

    def broken(*_: object, **__: object) -> None:
        raise KeyError("gpu-7")

    with monkeypatch.context() as patched:
        patched.setattr(module, fails, broken)
        writes.statuses.clear()
        with pytest.raises(KeyError):
            await run.reconcile(KEY)
        assert writes.statuses.keys() == {"ServingPool n/p", "InferenceModel n/m"}
        for identity, status in writes.statuses.items():
            assert condition_of(status, ConditionType.STALLED) == ("True", "ReconcileFailed")
            assert condition_of(status, ConditionType.READY) == ("False", "ReconcileFailed")
            assert "KeyError: 'gpu-7'" in stalled(status).message
            assert status.available_replicas == before[identity].available_replicas
        writes.statuses.clear()
        now += timedelta(minutes=1)
        with pytest.raises(KeyError):
            await run.reconcile(KEY)
        assert not writes.statuses  # it stands there already

    await run.reconcile(KEY)
    assert {condition_of(status, ConditionType.STALLED)[0] for status in writes.statuses.values()} == {"False"}


async def test_a_report_on_a_pool_delays_no_other_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    writes, resources = FakeWriter(), Store()
    for body in (pool(), model(), model("other", poolRef={"name": "q"}), pool("q")):
        resources.put(parsed_body(body))
    run = rounds(writes, resources, observed(q=PoolView()))
    telling, go_on = threading.Event(), threading.Event()

    def slow(decided: DecidedRound, cache: RoundCache) -> dict[str, Status]:
        if any(resource.identity == "ServingPool n/p" for resource in decided.resources):
            telling.set()
            assert go_on.wait(60)
        return statuses(decided, cache)

    monkeypatch.setattr("argosy.reconcile.outcome.statuses", slow)
    async with asyncio.TaskGroup() as tasks, asyncio.timeout(60):
        tasks.create_task(run.reconcile(KEY))
        try:
            await asyncio.to_thread(telling.wait, 30)
            async with asyncio.timeout(30):
                await run.reconcile(PoolKey("n/q"))
            assert writes.statuses.keys() == {"ServingPool n/q", "InferenceModel n/other"}
        finally:
            go_on.set()
    assert "ServingPool n/p" in writes.statuses


def recorded(folder: Path) -> list[Bundle]:
    """Return the bundles of the pool."""
    return [read_bundle(path) for path in folder.glob("n_p-2026*")]


async def test_a_round_is_recorded_so_that_it_can_be_decided_again(tmp_path: Path) -> None:
    await rounds(FakeWriter(), record=BundleFolder(tmp_path, "0.1.0").record).reconcile(KEY)
    (bundle,) = recorded(tmp_path)
    assert [resource.identity for resource in bundle.snapshot.resources] == ["ServingPool n/p", "InferenceModel n/m"]
    assert (bundle.now, bundle.drain_period, bundle.error) == (NOW, DRAIN_PERIOD, "")
    assert replayed(bundle).is_same


@pytest.mark.parametrize("fails", ["decide", "conclude"])
async def test_a_round_that_a_fault_of_ours_ends_is_recorded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fails: str
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("gpu-7")

    monkeypatch.setattr(module, fails, broken)
    with pytest.raises(KeyError):
        await rounds(FakeWriter(), record=BundleFolder(tmp_path, "0.1.0").record).reconcile(KEY)
    (bundle,) = recorded(tmp_path)
    assert (bundle.error, bundle.decisions) == ("KeyError: 'gpu-7'", None)
    assert len(bundle.snapshot.resources) == 2


async def test_an_api_server_that_does_not_answer_is_no_fault_of_ours() -> None:
    writes = FakeWriter(Applied(failure=UnreachableError(500, "InternalError", "try later")))
    with pytest.raises(UnreachableError):
        await rounds(writes).reconcile(KEY)
    assert {condition_of(status, ConditionType.STALLED)[1] for status in writes.statuses.values()} != {
        "ReconcileFailed"
    }


async def test_where_a_fault_cannot_be_reported_the_fault_itself_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("gpu-7")

    monkeypatch.setattr(module, "decide", broken)
    writes = FakeWriter(wrong={"ServingPool n/p": UnreachableError(500, "", "try later")})
    with pytest.raises(KeyError, match="gpu-7"):
        await rounds(writes).reconcile(KEY)
    assert writes.statuses.keys() == {"InferenceModel n/m"}


def stalled(status: Status) -> Condition:
    """Return the condition Stalled, which must be there."""
    result = status.condition(ConditionType.STALLED)
    assert result is not None
    return result


def condition_of(status: Status, kind: ConditionType) -> tuple[str, str]:
    """Return a condition's status and reason."""
    result = status.condition(kind)
    assert result is not None
    return str(result.status), str(result.reason)


async def test_a_silent_agent_is_read_when_its_report_expires() -> None:
    writes, now, view = FakeWriter(), NOW, serving("p-0")
    spoken = replace(view, reports=(replace(view.reports[0], written_at=7),))
    run = rounds(writes, cache=observed(p=spoken), clock=lambda: now)
    assert await run.reconcile(KEY) == NOW + EXPIRY
    now = NOW + EXPIRY
    assert await run.reconcile(KEY) is None
    assert writes.routes == {}
