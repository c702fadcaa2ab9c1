"""A pool's activator: what its objects say, what it may do, and that an API server takes them."""

from typing import Any

import pytest
from tests.operator.render.workloads.activators import activators_objects
from tests.operator.render.workloads.cases import IMAGES
from tests.operator.render.workloads.restricted import broken

from argosy.render.names import LONGEST, activator_name, state_name
from argosy_agent.activator.flags import parse
from argosy_agent.flags import ConfigMaps


def template(*timeouts_s: float) -> dict[str, Any]:
    found: dict[str, Any] = activators_objects(*timeouts_s)[f"Deployment {activator_name('gpus')}"]["spec"]["template"]
    return found


def test_its_pod_is_restricted_and_runs_where_the_pools_images_come_from() -> None:
    found = template(60)
    assert broken(found["spec"]) == []
    assert found["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    assert found["spec"]["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    assert "nodeSelector" not in found["spec"], "it needs no GPU, and pools' nodes may all be gone"
    assert "team" in found["metadata"]["labels"]
    assert "argosy.dev/pool" not in found["metadata"]["labels"], "the pool's Service would lead there"
    (container,) = found["spec"]["containers"]
    assert container["image"] == IMAGES.agent
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    assert mounts == {volume["name"] for volume in found["spec"]["volumes"]}


def test_its_flags_are_such_as_it_takes_and_name_its_own_configmaps() -> None:
    found = activators_objects(60)
    name = activator_name("gpus")
    (container,) = template(60)["spec"]["containers"]
    flags = parse([each.replace("$(POD_UID)", "uid") for each in container["args"]])
    assert isinstance(flags.exchange, ConfigMaps)
    assert str(flags.exchange.desired) == f"serving/{name}"
    assert str(flags.exchange.state) == f"serving/{state_name(name)}"
    assert {f"ConfigMap {name}", f"ConfigMap {state_name(name)}"} <= found.keys()
    allowed = {rule["resourceNames"][0]: set(rule["verbs"]) for rule in found[f"Role {name}"]["rules"]}
    assert allowed == {name: {"get", "list", "watch"}, state_name(name): {"get", "patch", "update"}}
    assert [each["containerPort"] for each in container["ports"]] == [
        flags.http_port,
        flags.grpc_port,
        flags.metrics_port,
    ]


@pytest.mark.parametrize(("timeouts_s", "exit_s"), [((), 300), ((60, 299), 300), ((301,), 600), ((10, 3600), 3600)])
def test_who_waits_when_it_is_to_end_may_wait_as_long_as_any_may(timeouts_s: tuple[float, ...], exit_s: int) -> None:
    found = template(*timeouts_s)["spec"]
    flags = parse([each.replace("$(POD_UID)", "uid") for each in found["containers"][0]["args"]])
    assert flags.exit_s == exit_s
    assert found["terminationGracePeriodSeconds"] > exit_s + flags.quiet.limit_s


@pytest.mark.parametrize("name", ["p", "x" * 63, "a." * 100 + "b"])
def test_names_are_short_enough_and_nobody_elses(name: str) -> None:
    found = activator_name(name)
    assert len(state_name(found)) <= LONGEST
    assert found != activator_name(name + "x")
    assert all(len(each.partition(" ")[2]) <= LONGEST for each in activators_objects(1, name=name))
