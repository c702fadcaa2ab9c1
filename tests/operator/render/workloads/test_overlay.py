"""A part of a template over a whole one, as kubectl merges; what Argosy renders cannot be changed by what is valid."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.render.workloads.cases import CASES, read_case

from argosy.api.documents import parse_body
from argosy.api.pool.podtemplate import PodTemplate
from argosy.api.values.meta import API_VERSION
from argosy.render.workloads.pods.overlay import MERGE_KEYS, overlay

MERGES: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ("a value is replaced", {"a": 1, "b": 2}, {"a": 3}, {"a": 3, "b": 2}),
    ("maps are joined", {"m": {"a": 1}}, {"m": {"b": 2}}, {"m": {"a": 1, "b": 2}}),
    ("a map takes the place of what is none", {"m": 1}, {"m": {"b": 2}}, {"m": {"b": 2}}),
    ("null removes", {"m": {"a": 1, "b": 2}}, {"m": {"a": None}}, {"m": {"b": 2}}),
    ("null of nothing is nothing", {}, {"m": {"a": None}, "b": None}, {"m": {}}),
    (
        "elements are joined by their key, in their order",
        {"env": [{"name": "A", "value": "1"}, {"name": "B"}]},
        {"env": [{"name": "C"}, {"name": "B", "value": "2"}]},
        {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C"}]},
    ),
    (
        "a mount's key is its path",
        {"volumeMounts": [{"name": "a", "mountPath": "/x"}]},
        {"volumeMounts": [{"name": "b", "mountPath": "/x"}, {"name": "a", "mountPath": "/y"}]},
        {"volumeMounts": [{"name": "b", "mountPath": "/x"}, {"name": "a", "mountPath": "/y"}]},
    ),
    (
        "a port's key is its number",
        {"ports": [{"containerPort": 1, "name": "a"}]},
        {"ports": [{"containerPort": 1, "protocol": "TCP"}]},
        {"ports": [{"containerPort": 1, "name": "a", "protocol": "TCP"}]},
    ),
    (
        "two constraints of one topology stay two",
        {},
        {"topologySpreadConstraints": [{"topologyKey": "z", "maxSkew": 1}, {"topologyKey": "z", "maxSkew": 2}]},
        {"topologySpreadConstraints": [{"topologyKey": "z", "maxSkew": 1}, {"topologyKey": "z", "maxSkew": 2}]},
    ),
    ("other lists are replaced", {"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]},
     {"tolerations": [{"key": "b"}]}),
    ("a label is called as a list is", {"labels": {"env": "a"}}, {"labels": {"env": "b"}}, {"labels": {"env": "b"}}),
    (
        "lists in elements are joined too",
        {"containers": [{"name": "server", "env": [{"name": "A"}], "args": ["a"]}]},
        {"containers": [{"name": "server", "env": [{"name": "B"}]}, {"name": "logs", "image": None}]},
        {"containers": [{"name": "server", "env": [{"name": "A"}, {"name": "B"}], "args": ["a"]}, {"name": "logs"}]},
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("base", "patch", "expected"), [merge[1:] for merge in MERGES], ids=[merge[0] for merge in MERGES]
)
def test_it_merges_as_kubectl_does(base: dict[str, Any], patch: dict[str, Any], expected: dict[str, Any]) -> None:
    before = copy.deepcopy((base, patch))
    assert overlay(base, patch) == expected
    assert (base, patch) == before


VALUES = st.recursive(
    st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abcd"), inner) | st.lists(inner, max_size=3),
    max_leaves=8,
)
MAPS = st.dictionaries(st.sampled_from("abcd"), VALUES)


@given(MAPS, MAPS)
def test_laying_it_over_again_changes_nothing(base: dict[str, Any], patch: dict[str, Any]) -> None:
    once = overlay(base, patch)
    assert overlay(once, patch) == once
    assert overlay(base, {}) == base
    assert overlay({}, patch) == patch
    assert set(once) == set(base) | set(patch)


Step = str | int
FREE = {
    # What a platform may well want otherwise; it takes nothing from the plan, the agent or the way to a server.
    "metadata.annotations.kubectl.kubernetes.io/default-container",
    "spec.enableServiceLinks",
    *(f"spec.securityContext.{field}" for field in ("runAsNonRoot", "runAsUser", "runAsGroup", "fsGroup")),
    "spec.securityContext.fsGroupChangePolicy",
    "spec.securityContext.seccompProfile.type",
    *(
        f"spec.containers.{container}.{field}"
        for container in ("server", "agent")
        for field in (
            "imagePullPolicy",
            "env.HOME.value",
            "securityContext.allowPrivilegeEscalation",
            "securityContext.capabilities.drop",
            "securityContext.readOnlyRootFilesystem",
        )
    ),
    "metadata.annotations.cluster-autoscaler.kubernetes.io/safe-to-evict",
    "metadata.annotations.karpenter.sh/do-not-disrupt",
    "spec.containers.agent.resources.requests.cpu",
    "spec.containers.agent.resources.requests.memory",
}
SHARED_MEMORY = {"spec.volumes.shared-memory.emptyDir.medium", "spec.containers.server.volumeMounts./dev/shm.name"}
"""Fields of the volume that some servers have at /dev/shm: a pool may limit its size, or mount another."""


def leaves(value: Any, path: tuple[Step, ...] = (), field: str = "") -> Iterator[tuple[tuple[Step, ...], Any]]:
    """Yield each value of a template with its path, in which the elements of keyed lists appear with their keys."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*path, key), key)
    elif isinstance(value, list) and field in MERGE_KEYS:
        for element in value:
            name = element[MERGE_KEYS[field]]
            for inner_path, inner in leaves(element, (*path, name)):
                if inner_path[-1] != MERGE_KEYS[field]:
                    yield inner_path, inner
    else:
        yield path, value


def over(path: tuple[Step, ...], value: Any, field: str = "") -> Any:
    """Return the overlay that sets one value."""
    if not path:
        return value
    if field in MERGE_KEYS and len(path) == 1:
        return [value]
    if field in MERGE_KEYS:
        return [{MERGE_KEYS[field]: path[0], **over(path[1:], value)}]
    return {path[0]: over(path[1:], value, str(path[0]))}


def taken(template: Any) -> dict[str, Any]:
    """Return the part of a pool's template that is merged over its Pods; null metadata or spec is left out."""
    result = PodTemplate.model_validate(template)
    return {"metadata": result.metadata.model_dump(), "spec": result.spec}


def problems(template: Any) -> list[str]:
    """Return the errors of a pool with this overlay."""
    spec = {"runtime": {"podTemplate": template}}
    body = {"apiVersion": API_VERSION, "kind": "ServingPool", "metadata": {"name": "p"}, "spec": spec}
    return [problem.path for problem in parse_body(body)[1]]


@pytest.mark.parametrize("other", ["other", None], ids=["changed", "removed"])
@pytest.mark.parametrize("name", [name for name in CASES if name != "storage_and_settings"])
def test_nothing_that_argosy_owns_can_be_changed(name: str, other: str | None) -> None:
    seen: set[str] = set()
    for deployment in read_case(name).of_kind("Deployment"):
        for path, value in leaves(deployment["spec"]["template"]):
            text = ".".join(map(str, path))
            assert value != other
            allowed = problems(over(path, other)) == []
            assert allowed == (text in FREE | SHARED_MEMORY and (other is not None or path[0] == "spec")), text
            seen.add(text)
    assert not read_case(name).servers or seen >= FREE


@pytest.mark.parametrize("other", ["other", None], ids=["changed", "removed"])
@pytest.mark.parametrize("name", CASES)
def test_no_map_or_list_that_holds_what_argosy_owns_can_be_replaced(name: str, other: str | None) -> None:
    for deployment in read_case(name).of_kind("Deployment"):
        full = deployment["spec"]["template"]
        owned = [path for path, _ in leaves(full) if problems(over(path, "other"))]
        for path in owned:
            for length in range(1, len(path)):
                template = over(path[:length], other)
                if problems(template) == []:
                    merged = overlay(full, taken(template))
                    assert dict(leaves(merged)).get(path) == dict(leaves(full))[path], path[:length]


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_mounted_over_argosy_s_mounts_or_listens_on_its_ports(name: str) -> None:
    for deployment in read_case(name).of_kind("Deployment"):
        for container in deployment["spec"]["template"]["spec"]["containers"][:2]:
            for mount in container["volumeMounts"]:
                mounts = [{"name": "own", "mountPath": mount["mountPath"]}]
                mine = {"spec": {"containers": [{"name": container["name"], "volumeMounts": mounts}]}}
                assert bool(problems(mine)) == (mount["mountPath"] != "/dev/shm"), mount
            for port in container.get("ports", ()):
                sidecar = {"name": "x", "ports": [{"containerPort": port["containerPort"]}]}
                assert problems({"spec": {"containers": [sidecar]}})
