"""The objects of builds: golden, taken by a real API server, restricted, and with no right or file too many."""

import json
import os
from dataclasses import replace
from typing import Any

import pytest
from e2e.cluster import Cluster as ControlPlane
from tests.operator.render.workloads.activators import pool
from tests.operator.render.workloads.build_cases import BUILD_CASES, BUILD_DATA, read_build_case
from tests.operator.render.workloads.cases import IMAGES, as_text
from tests.operator.render.workloads.dry_run import changes_by_server
from tests.operator.render.workloads.restricted import broken

from argosy.api.pool.builds import Builds
from argosy.api.pool.podtemplate import PodTemplate
from argosy.render.names import LONGEST, build_name, report_name
from argosy.render.workloads import (
    BUILD_LABEL,
    BUILDS_OF_LABEL,
    POOL_LABEL,
    Cluster,
    Images,
    build_rights,
    job_hash,
    parse_build_placement,
)
from argosy.render.workloads.builds.pod import build_pod
from argosy.render.workloads.pods.volumes import amount
from argosy_agent.contract.builddocuments import REQUEST_KEY, parse_request


def specs(name: str) -> list[dict[str, Any]]:
    """Return the specs of a case's Pods."""
    return [job["spec"]["template"]["spec"] for job in read_build_case(name).of_kind("Job")]


@pytest.mark.parametrize("name", BUILD_CASES)
def test_golden(name: str) -> None:
    text, expected = as_text(read_build_case(name).objects()), BUILD_DATA / name / "expected" / "objects.yaml"
    if os.environ.get("ARGOSY_UPDATE_GOLDEN"):
        expected.parent.mkdir(exist_ok=True)
        expected.write_text(text)
    assert text == expected.read_text()


@pytest.mark.parametrize("name", BUILD_CASES)
def test_an_api_server_takes_every_object_and_gives_it_back(control_plane: ControlPlane, name: str) -> None:
    case = read_build_case(name)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": case.pool.namespace}}
    control_plane.apply(json.dumps(namespace))
    objects = case.objects(replace(case.cluster, ends_jobs=False, judges_failures=False))
    assert changes_by_server(control_plane, objects) == []


@pytest.mark.parametrize("name", BUILD_CASES)
def test_pods_are_restricted_and_write_where_nothing_else_is(name: str) -> None:
    for spec in specs(name):
        assert broken(spec) == []
        (container,) = spec["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert spec["automountServiceAccountToken"] is False
        mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
        assert set(mounts) == {volume["name"] for volume in spec["volumes"]}
        writable = {name for name, mount in mounts.items() if not mount.get("readOnly")}
        assert writable - {"claim-shared"} == {"workspace", "tmp"}


def test_only_the_claim_of_the_engines_can_be_written() -> None:
    spec, _ = specs("gpu")
    claims = {
        volume["persistentVolumeClaim"]["claimName"]: volume["persistentVolumeClaim"].get("readOnly", False)
        for volume in spec["volumes"]
        if "persistentVolumeClaim" in volume
    }
    assert claims == {"checkpoints": True, "shared": False}
    mounts = {mount["mountPath"]: mount.get("readOnly", False) for mount in spec["containers"][0]["volumeMounts"]}
    assert (mounts["/pvc/checkpoints"], mounts["/pvc/shared"]) == (True, False)


def test_a_build_is_under_the_pools_template_as_servers_are() -> None:
    build = read_build_case("gpu").builds[0]
    result = build_pod(pool(), build, IMAGES, Cluster(build_priority_class="builds"))
    spec = result["spec"]
    assert not {"runAsUser", "runAsGroup", "fsGroup"} & spec["securityContext"].keys(), "the cluster's policy sets them"
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    assert spec["nodeSelector"]["gpu"] == "yes"
    assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    assert spec["priorityClassName"] == "builds"
    assert (result["metadata"]["labels"]["team"], len(result["metadata"]["annotations"])) == ("search", 1)
    (container,) = spec["containers"]
    limits = container["resources"]["limits"]
    assert limits["nvidia.com/gpu"] == str(len(build.gpus)), "the plan decides of GPUs"
    assert limits["memory"] == (amount(build.memory) if build.memory else "64Gi")
    assert {"name": "HTTPS_PROXY", "value": "http://proxy:3128"} in container["env"]
    assert "authority" in {volumeMount["name"] for volumeMount in container["volumeMounts"]}
    assert {volumeMount["name"] for volumeMount in container["volumeMounts"]} == {
        volume["name"] for volume in spec["volumes"]
    }
    assert "hostPID" not in spec


def secrets_of(template: dict[str, Any]) -> tuple[set[str], set[str], str]:
    """Return the Secrets of a Pod as files and as variables, and its service account."""
    spec = template["spec"]
    mounted = {volume["secret"]["secretName"] for volume in spec["volumes"] if "secret" in volume}
    variables = {item["secretRef"]["name"] for item in spec["containers"][0].get("envFrom", ())}
    return mounted, variables, spec["serviceAccountName"]


@pytest.mark.parametrize(
    ("builds", "secret", "account"),
    [
        ({}, "models", "reader"),
        ({"secret_name": "engines", "service_account_name": "writer"}, "engines", "writer"),
        ({"secret_name": "engines"}, "engines", "reader"),
    ],
)
def test_builds_have_credentials_of_their_own(builds: dict[str, str], secret: str, account: str) -> None:
    plain, build = pool(), replace(read_build_case("gpu").builds[0])
    storage = plain.spec.storage.model_copy(update={"secret_name": "models", "service_account_name": "reader"})
    update = {"storage": storage, "builds": Builds(**builds)}
    mine = plain.model_copy(update={"spec": plain.spec.model_copy(update=update)})
    mounted, variables, result = secrets_of(build_pod(mine, build, IMAGES, Cluster()))
    assert (mounted & {"models", "engines"}, variables, result) == ({secret}, {secret}, account)
    (binding,) = (right for right in build_rights(mine, build) if right["kind"] == "RoleBinding")
    assert [subject["name"] for subject in binding["subjects"]] == [account]


def test_a_mount_that_would_hide_the_builds_own_is_left_out() -> None:
    over = PodTemplate(
        spec={
            "volumes": [{"name": "mine", "emptyDir": {}}],
            "containers": [{"name": "agent", "volumeMounts": [{"name": "mine", "mountPath": "/build"}]}],
        }
    )
    plain = pool()
    runtime = plain.spec.runtime.model_copy(update={"pod_template": over})
    covering = plain.model_copy(update={"spec": plain.spec.model_copy(update={"runtime": runtime})})
    spec = build_pod(covering, read_build_case("gpu").builds[0], IMAGES, Cluster())["spec"]
    assert "mine" not in {volume["name"] for volume in (*spec["volumes"], *spec["containers"][0]["volumeMounts"])}


@pytest.mark.parametrize("name", BUILD_CASES)
def test_a_build_reads_its_request_and_may_write_its_report_alone(name: str) -> None:
    case = read_build_case(name)
    maps = {item["metadata"]["name"]: item for item in case.of_kind("ConfigMap")}
    roles = {item["metadata"]["name"]: item["rules"] for item in case.of_kind("Role")}
    for build, spec in zip(case.builds, specs(name), strict=True):
        mine = build_name(case.pool.name, build.name)
        provided = dict(argument.split("=", 1) for argument in spec["containers"][0]["args"])
        assert provided["--report-configmap"] == f"{case.pool.namespace}/{report_name(mine)}"
        assert parse_request(maps[mine]["data"][REQUEST_KEY]) == build.request
        assert "data" not in maps[report_name(mine)]
        (rule,) = roles[mine]
        assert (rule["resources"], rule["resourceNames"]) == (["configmaps"], [report_name(mine)])


@pytest.mark.parametrize("name", BUILD_CASES)
def test_no_service_and_no_budget_of_the_pool_finds_a_builds_pod(name: str) -> None:
    case = read_build_case(name)
    for job in case.of_kind("Job"):
        labels = job["spec"]["template"]["metadata"]["labels"]
        assert POOL_LABEL not in labels
        assert labels[BUILDS_OF_LABEL] == case.pool.name
        assert labels[BUILD_LABEL] == job["metadata"]["labels"][BUILD_LABEL]
        assert job["metadata"]["labels"][POOL_LABEL] == case.pool.name
    (policy,) = case.of_kind("NetworkPolicy")
    assert policy["spec"] == {
        "podSelector": {"matchLabels": {BUILDS_OF_LABEL: case.pool.name}},
        "policyTypes": ["Ingress"],
    }


def test_the_hash_tells_what_a_job_cannot_change() -> None:
    case = read_build_case("gpu")
    build, cluster = case.builds[0], case.cluster
    registered = job_hash(case.pool, build, IMAGES, cluster)
    assert registered == case.of_kind("Job")[0]["metadata"]["annotations"]["argosy.dev/template"]
    assert job_hash(case.pool, replace(build, timeout=1, owners=(), start=False), IMAGES, cluster) == registered
    others = (
        job_hash(case.pool, replace(build, node="gpu-2"), IMAGES, cluster),
        job_hash(case.pool, replace(build, memory=1), IMAGES, cluster),
        job_hash(case.pool, build, Images("a", "b", "c", "Always"), cluster),
        job_hash(case.pool, build, IMAGES, Cluster(build_priority_class="other")),
    )
    assert registered not in others


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"node": "n"}', '{"node": "n", "gpus": ["x"]}', "no JSON"])
def test_a_location_edited_by_hand_is_none(text: str) -> None:
    assert parse_build_placement(text) == ("", ())


def test_names_stay_apart_and_short() -> None:
    request = "0" * 20
    pools = ("a", "a-build", "n" * 29, "n" * 30, "n" * 31, "n" * 200, "n" * 201, "a.b", "a-b")
    names = {build_name(pool, request) for pool in pools}
    assert len(names) == len(pools)
    assert max(len(report_name(name)) for name in names) == LONGEST
