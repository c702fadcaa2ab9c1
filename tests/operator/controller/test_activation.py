"""What is routed to a pool's activator, what its ConfigMap has, and when it is deleted; without an API server."""

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.operator.controller.bodies import model, pool
from tests.operator.controller.fakes import FakeWriter
from tests.operator.controller.test_reconciler import KEY, NOW, observed, rounds, serving

from argosy.api import InferenceModel
from argosy.api.documents import parse_body
from argosy.autoscaling.pool.policies import may_be_zero
from argosy.cluster.cache.pods.pod_cache import PodView
from argosy.cluster.cache.pods.routing import Routes
from argosy.cluster.cache.pool_view import PoolView
from argosy.controller.rendering.activation import LONGEST_REASON
from argosy.controller.resources.parsed_body import parsed_body
from argosy.controller.resources.store import Store
from argosy.render.names import activator_name
from argosy_agent.contract.activation import MEMBERS_KEY, ActivationPart, Endpoint, parse_part

NAME = activator_name("p")
HOLDER = PodView("holder", "holder", "", True, False, False, frozenset(), False, "", NOW)
LED = replace(HOLDER, routes=frozenset({"m"}))


def declared(**spec: Any) -> Store:
    """Return a store of a pool with the model `m`."""
    resources = Store()
    for body in (pool(), model(**spec)):
        resources.put(parsed_body(body))
    return resources


def published(writes: FakeWriter) -> ActivationPart:
    """Return the first part as the activator reads it."""
    return parse_part(writes.bodies[f"ConfigMap n/{NAME}"]["data"][MEMBERS_KEY])


def at(view: PoolView, address: str = "10.0.0.1") -> PoolView:
    """Return the same view, whose Pod has an address."""
    return replace(view, pods=(replace(view.pods[0], address=address),))


@pytest.mark.parametrize(
    ("spec", "zero"),
    [
        ({"minReplicas": 0}, True),
        ({}, False),
        ({"replicas": 0}, False),
        ({"minReplicas": 0, "replicas": 2}, True),
        ({"scaling": {"schedules": [{"name": "night", "start": "22:00", "end": "06:00", "minReplicas": 0}]}}, True),
    ],
)
def test_what_may_go_to_zero(spec: dict[str, Any], zero: bool) -> None:
    resource, problems = parse_body(model(**spec))
    assert isinstance(resource, InferenceModel), problems
    assert may_be_zero(resource) is zero


async def test_a_model_at_zero_is_routed_to_the_activator_with_a_reason() -> None:
    writes = FakeWriter()
    view = PoolView(activators=(HOLDER, replace(HOLDER, name="ends", terminating=True)))
    await rounds(writes, declared(minReplicas=0, replicas=0), observed(p=view)).reconcile(KEY)
    assert writes.routes == {"holder": frozenset({"m"})}
    (member,) = published(writes).members
    assert (member.name, member.model, member.endpoints, member.timeout_s) == ("m", "m", (), 300.0)
    assert member.reason == writes.statuses["InferenceModel n/m"].conditions[0].message
    mine = {item for item in writes.objects if NAME in item}
    assert mine == {
        f"{kind} n/{NAME}"
        for kind in ("ServiceAccount", "Role", "RoleBinding", "ConfigMap", "NetworkPolicy", "Deployment")
    } | {f"ConfigMap n/{NAME}-state", f"PodDisruptionBudget n/{NAME}"}


@pytest.mark.parametrize(("strategy", "queued"), [("Recreate", {"m", "zero"}), ("Auto", {"zero"})])
@pytest.mark.parametrize("has_activator", [True, False])
async def test_what_is_recreated_is_queued_where_the_pool_has_an_activator(
    strategy: str, queued: set[str], has_activator: bool
) -> None:
    writes = FakeWriter()
    resources = declared(rollout={"strategy": strategy})
    if has_activator:
        resources.put(parsed_body(model("zero", minReplicas=0, replicas=0)))
    await rounds(writes, resources, observed(p=PoolView(activators=(HOLDER,)))).reconcile(KEY)
    if has_activator:
        assert {member.name for member in published(writes).members} == queued
    else:
        assert f"ConfigMap n/{NAME}" not in writes.bodies


async def test_adapters_and_aliases_of_a_model_at_zero_wake_it() -> None:
    writes = FakeWriter()
    adapters = [
        {"name": f"sql-v{number}", "storageUri": f"s3://b/{number}", "alias": "sql", "rank": 8} for number in (1, 2)
    ]
    resources = declared(
        minReplicas=0, replicas=0, modelFormat={"name": "vllm"}, inputs=None, outputs=None, adapters=adapters
    )
    await rounds(writes, resources, observed(p=PoolView(activators=(HOLDER,)))).reconcile(KEY)
    members = published(writes).members
    assert [(member.name, member.model) for member in members] == [
        ("m", name) for name in ("m", "sql-v1", "sql-v2", "sql")
    ]
    assert {(member.endpoints, member.timeout_s, member.reason) for member in members} == {
        ((), 300.0, members[0].reason)
    }
    assert writes.routes == {"holder": frozenset({"m", "m--sql-v1", "m--sql-v2", "m--sql"})}


async def test_requests_for_an_adapter_wait_until_a_server_has_it() -> None:
    writes = FakeWriter()
    adapters = [{"name": "sql", "storageUri": "s3://b/1"}]
    resources = declared(
        minReplicas=0, replicas=1, modelFormat={"name": "vllm"}, inputs=None, outputs=None, adapters=adapters
    )
    cache = observed(p=replace(at(serving("p-0")), activators=(HOLDER,)))
    await rounds(writes, resources, cache).reconcile(KEY)
    base, adapter = published(writes).members
    assert (base.endpoints, adapter.endpoints) == ((Endpoint("10.0.0.1", 8000, 8001),), ())
    assert writes.routes["holder"] == frozenset({"m--sql"})


async def test_what_a_thousand_models_are_reported_fits_into_a_configmap() -> None:
    resources, writes = Store(), FakeWriter()
    resources.put(parsed_body(pool()))
    unfit = {"gpus": 64}
    for number in range(1000):
        resources.put(parsed_body(model(f"model-{number}", minReplicas=0, replicas=1, footprint=unfit)))
    await rounds(writes, resources).reconcile(KEY)
    assert len(published(writes).members) == 1000
    assert all(0 < len(member.reason) <= LONGEST_REASON for member in published(writes).members)
    assert len(writes.bodies[f"ConfigMap n/{NAME}"]["data"][MEMBERS_KEY].encode()) < 2**20 * 0.9


async def test_how_long_requests_wait_is_reported_by_the_resource() -> None:
    writes = FakeWriter()
    await rounds(writes, declared(minReplicas=0, replicas=0, scaling={"holdTimeout": "10m"})).reconcile(KEY)
    assert published(writes).members[0].timeout_s == 600.0
    (container,) = writes.bodies[f"Deployment n/{NAME}"]["spec"]["template"]["spec"]["containers"]
    assert "--exit-timeout-secs=600" in container["args"]


async def test_the_activator_learns_of_a_server_before_services_lead_there() -> None:
    writes = FakeWriter()
    view = at(serving("p-0"))
    behind = replace(view.pods[0], routes=frozenset[str]())
    cache = observed(p=replace(view, pods=(behind,), activators=(LED,)))
    run = rounds(writes, declared(minReplicas=0, replicas=1), cache)
    wake = await run.reconcile(KEY)
    assert published(writes).members[0].endpoints == (Endpoint("10.0.0.1", 8000, 8001),)
    assert writes.routes == {"p-0": frozenset({"m"})}
    assert wake == NOW, "nobody tells of the labels that it writes itself"
    cache.views[KEY] = replace(view, activators=(LED,))
    await run.reconcile(KEY)
    assert writes.routes["holder"] == frozenset()


async def test_a_model_that_goes_to_zero_is_first_routed_to_the_activator() -> None:
    order: list[str] = []

    class Ordered(FakeWriter):
        async def route(self, pod: PodView, namespace: str, routes: Routes, settled: bool) -> None:
            order.append(pod.name)
            await super().route(pod, namespace, routes, settled)

    writes = Ordered()
    cache = observed(p=replace(at(serving("p-0")), activators=(HOLDER,)))
    run = rounds(writes, declared(minReplicas=0, replicas=0), cache)
    await run.reconcile(KEY)
    assert order == ["holder", "p-0"]
    assert writes.routes == {"holder": frozenset({"m"}), "p-0": frozenset()}
    assert published(writes).members[0].endpoints == ()


@pytest.mark.parametrize("lacks", [{"ready": False}, {"server_ready": False}, {"terminating": True}], ids=str)
async def test_while_its_server_is_not_ready_its_requests_wait(lacks: dict[str, Any]) -> None:
    writes = FakeWriter()
    view = at(serving("p-0"))
    cache = observed(p=replace(view, pods=(replace(view.pods[0], **lacks),), activators=(HOLDER,)))
    await rounds(writes, declared(minReplicas=0, replicas=1), cache).reconcile(KEY)
    assert writes.routes["holder"] == frozenset({"m"})
    expected = () if lacks.keys() & {"server_ready", "terminating"} else (Endpoint("10.0.0.1", 8000, 8001),)
    assert published(writes).members[0].endpoints == expected


async def test_nothing_stands_where_nothing_may_go_to_zero() -> None:
    writes = FakeWriter()
    await rounds(writes, declared(), observed(p=PoolView(activators=(HOLDER,)))).reconcile(KEY)
    assert not [item for item in writes.objects if NAME in item]
    assert writes.routes == {}


async def test_a_model_above_zero_stays_with_the_activator_until_reached() -> None:
    writes = FakeWriter()
    view = at(serving("p-0"))
    behind = replace(view.pods[0], routes=frozenset[str]())
    cache = observed(p=replace(view, pods=(behind,), activators=(LED,)))
    run = rounds(writes, declared(minReplicas=1), cache)
    await run.reconcile(KEY)
    assert f"Deployment n/{NAME}" in writes.objects
    assert "holder" not in writes.routes
    cache.views[KEY] = replace(view, activators=(LED,))
    await run.reconcile(KEY)
    assert writes.routes["holder"] == frozenset()
    cache.views[KEY] = replace(view, activators=(HOLDER,))
    await run.reconcile(KEY)
    assert f"Deployment n/{NAME}" not in writes.objects


async def test_a_suspended_pool_holds_nothing() -> None:
    resources, writes = Store(), FakeWriter()
    for body in (pool(suspend=True), model(minReplicas=0)):
        resources.put(parsed_body(body))
    await rounds(writes, resources, observed(p=PoolView(activators=(LED,)))).reconcile(KEY)
    assert not [item for item in writes.objects if NAME in item]
    assert writes.routes == {"holder": frozenset()}


async def test_another_operator_process_leaves_the_activator_as_it_was() -> None:
    first, second = FakeWriter(), FakeWriter()
    view = observed(p=PoolView(activators=(LED,), queued={"m": 2}))
    for writes in (first, second):
        await rounds(writes, declared(minReplicas=0, replicas=0), view).reconcile(KEY)
    assert json.dumps(first.bodies, default=str) == json.dumps(second.bodies, default=str)
    assert second.routes == {}
