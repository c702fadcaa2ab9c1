"""Our Pods meet the restricted Pod Security Standard and what we ask of ourselves beyond it."""

import copy
from typing import Any

import pytest
from tests.operator.render.workloads.cases import CASES, read_case
from tests.operator.render.workloads.restricted import RULES, broken


def specs(name: str) -> list[dict[str, Any]]:
    """Return the specs of a case's Pods."""
    return [item["spec"]["template"]["spec"] for item in read_case(name).of_kind("Deployment")]


@pytest.mark.parametrize("name", CASES)
def test_pods_are_restricted(name: str) -> None:
    assert [broken(spec) for spec in specs(name)] == [[] for _ in specs(name)]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("hostNetwork", True),
        ("hostPID", True),
        ("hostIPC", True),
        ("securityContext.runAsNonRoot", None),
        ("securityContext.runAsUser", 0),
        ("securityContext.seccompProfile.type", "Unconfined"),
        ("securityContext.seLinuxOptions.type", "spc_t"),
        ("securityContext.sysctls", [{"name": "kernel.msgmax", "value": "1"}]),
        ("volumes.0.hostPath", {"path": "/"}),
        ("containers.0.ports.0.hostPort", 8000),
        ("containers.1.securityContext.privileged", True),
        ("containers.1.securityContext.allowPrivilegeEscalation", None),
        ("containers.1.securityContext.capabilities.drop", ["NET_RAW"]),
        ("containers.0.securityContext.capabilities.add", ["SYS_ADMIN"]),
        ("containers.0.securityContext.procMount", "Unmasked"),
        ("containers.0.securityContext.runAsUser", 0),
    ],
)
def test_the_rules_find_what_breaks_them(path: str, value: Any) -> None:
    spec = copy.deepcopy(specs("gpu_pool")[0])
    *above, last = path.split(".")
    location: Any = spec
    for key in above:
        location = location[int(key)] if isinstance(location, list) else location.setdefault(key, {})
    location[last] = value
    (result,) = broken(spec)
    assert path.startswith(result.split(".")[0])
    assert result in RULES


@pytest.mark.parametrize("name", CASES)
def test_only_the_agent_has_a_token_and_credentials(name: str) -> None:
    for spec in specs(name):
        server, agent, *_ = spec["containers"]
        assert spec["automountServiceAccountToken"] is False
        assert "envFrom" not in server
        seen = {mount["name"] for mount in server["volumeMounts"]}
        assert seen <= {"models", "server-tmp", "shared", "shared-memory", "control-token"}
        assert "token" in {mount["name"] for mount in agent["volumeMounts"]}


@pytest.mark.parametrize("name", CASES)
def test_every_mount_is_of_a_volume_and_every_volume_is_used(name: str) -> None:
    for spec in specs(name):
        mounts = [mount for container in spec["containers"] for mount in container["volumeMounts"]]
        assert {mount["name"] for mount in mounts} == {volume["name"] for volume in spec["volumes"]}
        assert len({volume["name"] for volume in spec["volumes"]}) == len(spec["volumes"])


@pytest.mark.parametrize("name", CASES)
def test_every_container_has_a_root_that_stays_and_a_location_to_write(name: str) -> None:
    for container in (container for spec in specs(name) for container in spec["containers"][:2]):
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        writable = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
        (home,) = (item["value"] for item in container["env"] if item["name"] == "HOME")
        assert "/tmp" in writable
        assert home.startswith("/tmp")


@pytest.mark.parametrize("name", CASES)
def test_an_agent_may_read_one_configmap_and_write_one(name: str) -> None:
    case = read_case(name)
    roles = {item["metadata"]["name"]: item["rules"] for item in case.of_kind("Role")}
    maps = {item["metadata"]["name"] for item in case.of_kind("ConfigMap")}
    for spec in specs(name):
        provided = dict(argument.split("=", 1) for argument in spec["containers"][1]["args"])
        mine, state = provided["--configmap"].rpartition("/")[2], provided["--state"].rpartition("/")[2]
        assert {mine, state} <= maps
        allowed = {rule["resourceNames"][0]: set(rule["verbs"]) for rule in roles[mine]}
        assert allowed == {mine: {"get", "list", "watch"}, state: {"get", "patch", "update"}}
        assert all(len(rule["resourceNames"]) == 1 for rule in roles[mine])
