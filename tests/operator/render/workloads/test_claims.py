"""A server with devices of DRA drivers: its Pod has them by a ResourceClaim, made from a template of its own."""

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from kubernetes.client import V1ResourceClaimTemplate
from tests.operator.planning.nodes.slices_v1 import divisible, gpu, resource_slice
from tests.operator.planning.nodes.test_dra import bare, chosen, named, node
from tests.operator.render.workloads.build_cases import read_build_case
from tests.operator.render.workloads.cases import IMAGES, as_text, read_case

from argosy.controller.rendering.builds import BuildRenderer
from argosy.controller.rendering.claims import retained_claims
from argosy.planning.facts import CurrentServer, Node
from argosy.render.repositories import RenderedServer
from argosy.render.workloads import Cluster, KubernetesObject, object_identity, pool_objects

EXPECTED = Path(__file__).parent / "claim_data" / "objects.yaml"
CASE = read_case("gpu_pool")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
DIVIDED = node(*divisible(0), of=bare(annotations={"argosy.dev/gpu-partitions": "3g.40gb"}))
PART = named(DIVIDED, "gpu-0-mig-3g-40gb-4").index


def server(*gpus: int, name: str = "p-0") -> RenderedServer:
    """Return a server called so, with these devices of the node `a`."""
    first = CASE.servers[0]
    return replace(first, plan=replace(first.plan, name=name, node="a", gpus=gpus, placements=()))


def rendered(of: Node, *servers: RenderedServer) -> tuple[KubernetesObject, ...]:
    """Return the templates and Deployments of servers on a node."""
    every = pool_objects(CASE.pool, servers, (), IMAGES, Cluster(device_claims=True), nodes={"a": of})
    return tuple(one for one in every if one["kind"] in ("ResourceClaimTemplate", "Deployment"))


def test_golden() -> None:
    two = node(resource_slice("s", gpu(0), gpu(1)))
    text = as_text((*rendered(DIVIDED, server(PART)), *rendered(two, server(*(one.index for one in two.gpus)))))
    if os.environ.get("ARGOSY_UPDATE_GOLDEN"):
        EXPECTED.parent.mkdir(exist_ok=True)
        EXPECTED.write_text(text)
    assert text == EXPECTED.read_text()


def test_the_template_is_one_of_the_client_and_the_pod_names_it() -> None:
    template, deployment = rendered(DIVIDED, server(PART))
    read = V1ResourceClaimTemplate.from_dict(dict(template))
    assert read is not None
    assert read.model_dump(mode="json", by_alias=True, exclude_none=True) == template
    pod = deployment["spec"]["template"]["spec"]
    (claim,) = pod["resourceClaims"]
    assert claim["resourceClaimTemplateName"] == template["metadata"]["name"]
    assert pod["containers"][0]["resources"] == {"claims": [{"name": claim["name"]}]}
    assert template["metadata"]["ownerReferences"][0]["kind"] == "ServingPool"


def test_other_devices_have_a_template_of_another_name() -> None:
    other = named(DIVIDED, "gpu-0-mig-3g-40gb-0").index
    (before, _), (after, _) = rendered(DIVIDED, server(PART)), rendered(DIVIDED, server(other))
    assert object_identity(before) != object_identity(after)


def test_a_device_that_is_not_published_leaves_the_pod_and_its_template_as_they_are() -> None:
    template, deployment = rendered(DIVIDED, server(PART))
    gone = node(resource_slice("s", gpu(5)))
    assert rendered(gone, server(PART)) == (deployment,)
    assert object_identity(template) in retained_claims(CASE.pool, [server(PART)], [])
    former = replace(gone, former=(named(DIVIDED, "gpu-0-mig-3g-40gb-4"),))
    assert rendered(former, server(PART)) == (template, deployment)


def test_a_server_that_changes_keeps_its_former_template_and_one_that_is_gone_does_not() -> None:
    (template, _) = rendered(DIVIDED, server(PART))
    before = CurrentServer("p-0", "a", (PART,))
    assert object_identity(template) in retained_claims(CASE.pool, [server(7)], [before])
    assert retained_claims(CASE.pool, [server(7, name="p-1")], [before]) == frozenset()


def test_devices_that_are_offered_together_have_a_template_for_every_server() -> None:
    parts = [one.index for one in chosen(DIVIDED).gpus]
    servers = [server(index, name=f"p-{at}") for at, index in enumerate(parts)]
    kinds = [one["kind"] for one in rendered(DIVIDED, *servers)]
    assert kinds == ["ResourceClaimTemplate"] * 2 + ["Deployment"] * 2


def test_a_build_has_its_devices_by_a_template_of_its_own() -> None:
    published = node(resource_slice("s", gpu(0)))
    index = published.gpus[0].index
    case = read_build_case("gpu")
    build = replace(case.builds[0], node="a", gpus=(index,))
    rendered = BuildRenderer(case.pool, IMAGES, Cluster(device_claims=True), NOW, {"a": published}).builds([build], {})
    template, job = (one for one in rendered.objects if one["kind"] in ("ResourceClaimTemplate", "Job"))
    read = V1ResourceClaimTemplate.from_dict(dict(template))
    assert read is not None
    assert read.model_dump(mode="json", by_alias=True, exclude_none=True) == template
    pod = job["spec"]["template"]["spec"]
    (claim,) = pod["resourceClaims"]
    assert claim["resourceClaimTemplateName"] == template["metadata"]["name"]
    resources = pod["containers"][0]["resources"]
    assert resources["claims"] == [{"name": claim["name"]}]
    assert "nvidia.com/gpu" not in resources.get("limits", {})
    assert template["spec"]["metadata"]["labels"]["argosy.dev/build"] == build.name


def test_a_build_whose_device_is_not_published_keeps_its_template() -> None:
    published, gone = node(resource_slice("s", gpu(0))), node(resource_slice("s", gpu(5)))
    case = read_build_case("gpu")
    build = replace(case.builds[0], node="a", gpus=(published.gpus[0].index,))
    cluster = Cluster(device_claims=True)
    before, after = (
        BuildRenderer(case.pool, IMAGES, cluster, NOW, {"a": of}).builds([build], {}) for of in (published, gone)
    )
    (template,) = (one for one in before.objects if one["kind"] == "ResourceClaimTemplate")
    assert not any(one["kind"] == "ResourceClaimTemplate" for one in after.objects)
    assert object_identity(template) in after.keep
