"""A pool's activator: what its objects say, what it may do, and that an API server takes them."""

from typing import Any

import pytest
from tests.operator.render.workloads.activators import activators_objects
from tests.operator.render.workloads.cases import IMAGES
from tests.operator.render.workloads.restricted import broken

from argosy.render.names import LONGEST, activator_name, state_name
from argosy_agent.activator.flags import parse
from argosy_agent.activator.spans import TraceOptions
from argosy_agent.flags import ConfigMaps


def template(*timeouts_s: float) -> dict[str, Any]:
    result: dict[str, Any] = activators_objects(*timeouts_s)[f"Deployment {activator_name('gpus')}"]["spec"]["template"]
    return result


def test_its_pod_is_restricted_and_under_the_pools_template_as_servers_are() -> None:
    result = template(60)
    spec = result["spec"]
    assert broken({**spec, "securityContext": {**spec["securityContext"], "runAsUser": 1000}}) == []
    assert not {"runAsUser", "runAsGroup", "fsGroup"} & spec["securityContext"].keys(), "the cluster's policy sets them"
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    assert spec["nodeSelector"] == {"gpu": "yes"}
    assert result["metadata"]["labels"]["team"] == "search"
    assert result["metadata"]["annotations"] == {"example.com/scrape": "false"}
    assert "argosy.dev/pool" not in result["metadata"]["labels"], "the pool's Service would lead there"
    assert "hostPID" not in spec, "that is for servers and their sidecars"
    (container,) = spec["containers"]
    assert container["image"] == IMAGES.agent
    assert container["resources"] == {
        "requests": {"cpu": "50m", "memory": "128Mi"},
        "limits": {"cpu": "1", "memory": "1Gi"},
    }
    assert {"name": "HTTPS_PROXY", "value": "http://proxy:3128"} in container["env"]
    assert container["securityContext"]["runAsNonRoot"]
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    assert mounts == {volume["name"] for volume in spec["volumes"]} == {"tmp", "token", "authority"}


def test_it_has_two_pods_of_which_a_drain_takes_one_at_a_time() -> None:
    result, name = activators_objects(60), activator_name("gpus")
    spec = result[f"Deployment {name}"]["spec"]
    assert (spec["replicas"], spec["strategy"]["rollingUpdate"]["maxUnavailable"]) == (2, 0)
    budget = result[f"PodDisruptionBudget {name}"]["spec"]
    assert budget == {"maxUnavailable": 1, "selector": spec["selector"]}
    (apart,) = spec["template"]["spec"]["affinity"]["podAntiAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    assert apart["podAffinityTerm"]["labelSelector"] == spec["selector"]
    assert "podAffinity" not in spec["template"]["spec"]["affinity"]


def test_it_sends_spans_where_the_pools_servers_do() -> None:
    tracing = "  tracing: {endpoint: 'http://collector:4318/v1/traces', rate: 7}\n"
    objects = activators_objects(60, more=tracing)
    (container,) = objects[f"Deployment {activator_name('gpus')}"]["spec"]["template"]["spec"]["containers"]
    assert parse(container["args"]).tracing == TraceOptions("http://collector:4318/v1/traces", 7)
    (untraced,) = template(60)["spec"]["containers"]
    assert parse(untraced["args"]).tracing is None


def test_its_flags_are_such_as_it_takes_and_name_its_own_configmaps() -> None:
    result = activators_objects(60)
    name = activator_name("gpus")
    (container,) = template(60)["spec"]["containers"]
    flags = parse([item.replace("$(POD_UID)", "uid") for item in container["args"]])
    assert isinstance(flags.documents, ConfigMaps)
    assert str(flags.documents.desired) == f"serving/{name}"
    assert str(flags.documents.state) == f"serving/{state_name(name)}"
    assert {f"ConfigMap {name}", f"ConfigMap {state_name(name)}"} <= result.keys()
    allowed = {rule["resourceNames"][0]: set(rule["verbs"]) for rule in result[f"Role {name}"]["rules"]}
    assert allowed == {name: {"get", "list", "watch"}, state_name(name): {"get", "patch", "update"}}
    assert [port["containerPort"] for port in container["ports"]] == [
        flags.http_port,
        flags.grpc_port,
        flags.metrics_port,
    ]


@pytest.mark.parametrize(("timeouts_s", "exit_s"), [((), 300), ((60, 299), 300), ((301,), 600), ((10, 3600), 3600)])
def test_an_activator_has_as_long_to_end_as_its_longest_timeout(timeouts_s: tuple[float, ...], exit_s: int) -> None:
    result = template(*timeouts_s)["spec"]
    flags = parse([item.replace("$(POD_UID)", "uid") for item in result["containers"][0]["args"]])
    assert flags.exit_s == exit_s
    assert result["terminationGracePeriodSeconds"] > exit_s + flags.idle.limit_s


@pytest.mark.parametrize("name", ["p", "x" * 63, "a." * 100 + "b"])
def test_names_are_short_enough_and_unique(name: str) -> None:
    result = activator_name(name)
    assert len(state_name(result)) <= LONGEST
    assert result != activator_name(name + "x")
    assert all(len(item.partition(" ")[2]) <= LONGEST for item in activators_objects(1, name=name))


def test_many_members_are_reported_in_several_configmaps_that_it_may_read() -> None:
    result = activators_objects(*[60.0] * 20_000)
    name = activator_name("gpus")
    parts = [item for item in result if item.startswith(f"ConfigMap {name}") and not item.endswith("-state")]
    assert parts == [f"ConfigMap {name}", *(f"ConfigMap {name}-p{number}" for number in (1, 2, 3))]
    read = result[f"Role {name}"]["rules"][0]
    assert read["resourceNames"] == [name, *(f"{name}-p{number}" for number in (1, 2, 3))]
    assert read["verbs"] == ["get", "list", "watch"]
    assert all(len(result[part]["data"]["members.json"].encode()) < 2**20 for part in parts)
    assert all(len(part) <= LONGEST + len("ConfigMap ") for part in parts)
    (container,) = result[f"Deployment {name}"]["spec"]["template"]["spec"]["containers"]
    assert container == template(60.0)["spec"]["containers"][0], "how many there are makes no other Pod"
