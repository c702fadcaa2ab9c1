"""A Service per model and per ensemble selects only servers where it is loaded."""

from collections.abc import Mapping
from itertools import chain, combinations
from typing import Any

import pytest
from tests.operator.render.workloads.cases import CASES, IMAGES, Case, read_case

from argosy.api import Ensemble, InferenceModel, ServingPool, parse_documents
from argosy.render.workloads import (
    Cluster,
    member_grpc_address,
    member_selector,
    member_url,
    pool_grpc_address,
    pool_objects,
    pool_selector,
    pool_url,
    route_labels,
)


def pods(case: Case) -> dict[str, dict[str, str]]:
    """Return the initial labels of a case's Pods, by Deployment."""
    deployments = case.of_kind("Deployment")
    return {
        deployment["metadata"]["name"]: deployment["spec"]["template"]["metadata"]["labels"]
        for deployment in deployments
    }


def chosen(selector: Mapping[str, str], labels: Mapping[str, Mapping[str, str]]) -> set[str]:
    """Return the Pods that have every label of a selector."""
    return {name for name, has in labels.items() if selector.items() <= has.items()}


def services(case: Case, members: bool) -> list[Mapping[str, Any]]:
    """Return the Services of models and ensembles, or the pool's."""
    result = case.of_kind("Service")
    return [item for item in result if ("argosy.dev/model" in item["metadata"]["labels"]) is members]


@pytest.mark.parametrize("name", CASES)
def test_a_new_pod_is_queried_for_nothing(name: str) -> None:
    case = read_case(name)
    assert len(services(case, members=True)) == len(case.members)
    for service in services(case, members=True):
        assert chosen(service["spec"]["selector"], pods(case)) == set()


@pytest.mark.parametrize("name", CASES)
def test_a_pod_is_queried_for_what_its_routes_say_and_nothing_else(name: str) -> None:
    case = read_case(name)
    names = [member.name for member in case.members]
    subsets = chain.from_iterable(combinations(names, n) for n in range(len(names) + 1))
    for routes in map(frozenset, subsets):
        for pod, labels in pods(case).items():
            routed = {**pods(case), pod: {**labels, **route_labels(routes)}}
            for member, service in zip(case.members, services(case, members=True), strict=True):
                assert chosen(service["spec"]["selector"], routed) == ({pod} if member.name in routes else set())


@pytest.mark.parametrize("name", CASES)
def test_the_pools_service_budget_and_policy_are_of_all_its_servers(name: str) -> None:
    case = read_case(name)
    (service,), (budget,), (policy,) = (
        services(case, members=False), case.of_kind("PodDisruptionBudget"), case.of_kind("NetworkPolicy")
    )  # fmt: skip
    selectors = (
        service["spec"]["selector"],
        budget["spec"]["selector"]["matchLabels"],
        policy["spec"]["podSelector"]["matchLabels"],
    )
    assert [chosen(selector, pods(case)) for selector in selectors] == [set(pods(case))] * 3


@pytest.mark.parametrize("name", CASES)
def test_the_pools_policy_is_about_ports_whatever_the_client(name: str) -> None:
    """A request by the host's network, a load balancer or the API server's proxy comes from no Pod's address."""
    (policy,) = read_case(name).of_kind("NetworkPolicy")
    (rule,) = policy["spec"]["ingress"]
    assert [item["port"] for item in rule.pop("ports")] == [8000, 8001, 8002]
    assert rule == {}


@pytest.mark.parametrize("name", CASES)
def test_a_deployment_selects_its_own_pod_alone(name: str) -> None:
    case = read_case(name)
    for item in case.of_kind("Deployment"):
        selector = item["spec"]["selector"]["matchLabels"]
        assert set(selector) == {"argosy.dev/pool", "argosy.dev/server"}
        assert chosen(selector, pods(case)) == {item["metadata"]["name"]}


@pytest.mark.parametrize("name", CASES)
def test_urls_and_selectors_are_those_of_the_services(name: str) -> None:
    case = read_case(name)
    (full,), item = services(case, members=False), services(case, members=True)
    assert pool_url(case.pool) == f"http://{full['metadata']['name']}.{case.pool.namespace}.svc:8000"
    assert pool_selector(case.pool) == query(full)
    for member, service in zip(case.members, item, strict=True):
        host = f"{service['metadata']['name']}.{case.pool.namespace}.svc"
        assert member_url(member) == f"http://{host}:8000/v2/models/{member.name}"
        assert member_selector(member) == query(service)


def query(service: Mapping[str, Any]) -> str:
    """Return a Service's selector as a query."""
    return ",".join(f"{key}={value}" for key, value in service["spec"]["selector"].items())


@pytest.mark.parametrize("member", read_case("gpu_pool").members, ids=lambda member: member.identity)
def test_a_member_called_like_the_pools_service_gets_another(member: InferenceModel | Ensemble) -> None:
    pool = read_case("gpu_pool").pool
    metadata = member.metadata.model_copy(update={"name": "assistants-pool"})
    renamed = member.model_copy(update={"metadata": metadata})
    objects = pool_objects(pool, (), (renamed,), IMAGES, Cluster())
    first, second = (item["metadata"]["name"] for item in objects if item["kind"] == "Service")
    assert first == "assistants-pool"
    assert second.startswith("assistants-pool-")
    assert member_url(renamed) == f"http://{second}.serving.svc:8000/v2/models/assistants-pool"


@pytest.mark.parametrize("name", CASES)
def test_grpc_is_reached_by_the_same_services(name: str) -> None:
    case = read_case(name)
    ports = {
        f"{item['metadata']['name']}.{item['metadata']['namespace']}.svc:{port['port']}"
        for item in case.of_kind("Service")
        for port in item["spec"]["ports"]
        if port["name"] == "grpc"
    }
    assert ports == {pool_grpc_address(case.pool), *map(member_grpc_address, case.members)}


MODEL = """
apiVersion: argosy.dev/v1alpha1
kind: InferenceModel
metadata: {name: NAME, uid: NAME}
spec: {poolRef: {name: p}, modelFormat: {name: python}, version: 1, storageUri: s3://b/model.py, sequence: SEQUENCE}
---"""
ENSEMBLE = """
apiVersion: argosy.dev/v1alpha1
kind: Ensemble
metadata: {name: NAME, uid: NAME}
spec:
  poolRef: {name: p}
  version: 1
  inputs: [{name: IN, dataType: TYPE_FP32, dims: [1]}]
  outputs: [{name: OUT, dataType: TYPE_FP32, dims: [1]}]
  steps: [{model: STEP, inputs: {IN: IN}, outputs: {OUT: OUT}}]
---"""
POOL = "\napiVersion: argosy.dev/v1alpha1\nkind: ServingPool\nmetadata: {name: p, uid: p}\n"


@pytest.mark.parametrize(
    ("sequence", "seconds"),
    [("{}", 10_800), ("{maxIdleMicroseconds: 20000000000}", 20_000), ("{maxIdleMicroseconds: 100000000001}", 86_400)],
)
def test_a_client_of_sequences_stays_with_one_server(sequence: str, seconds: int) -> None:
    models = MODEL.replace("NAME", "words") + MODEL.replace("NAME", "plain").replace("sequence: SEQUENCE", "")
    ensembles = ENSEMBLE.replace("NAME", "inner").replace("STEP", "words") + ENSEMBLE.replace("NAME", "outer")
    text = models.replace("SEQUENCE", sequence) + ensembles.replace("STEP", "inner") + POOL
    resources, problems = parse_documents(text, "resources.yaml")
    assert problems == []
    *members, pool = resources
    assert isinstance(pool, ServingPool)
    objects = pool_objects(pool, (), [one for one in members if not isinstance(one, ServingPool)], IMAGES, Cluster())
    specs = {item["metadata"]["name"]: item["spec"] for item in objects if item["kind"] == "Service"}
    config = {"clientIP": {"timeoutSeconds": seconds}}
    for name in ("words", "inner", "outer"):
        assert (specs[name]["sessionAffinity"], specs[name]["sessionAffinityConfig"]) == ("ClientIP", config)
    assert not {"sessionAffinity", "sessionAffinityConfig"} & (specs["plain"].keys() | specs["p-pool"].keys())
