"""What stands is told from what was applied by digests alone."""

import copy
from typing import Any

import pytest

from argosy.cluster.cache.fingerprint import Shapes, digest, fingerprint, list_key

DESIRED: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "a", "labels": {"l": "1"}},
    "spec": {
        "replicas": 1,
        "containers": [{"name": "server", "args": ["--x"]}, {"name": "agent"}],
        "tolerations": [{"operator": "Exists"}, {"operator": "Equal"}],
    },
}
LIVE: dict[str, Any] = {
    "metadata": {"name": "a", "uid": "u", "labels": {"l": "1", "others": "2"}, "annotations": {"revision": "3"}},
    "spec": {
        "replicas": 1,
        "strategy": {"type": "RollingUpdate"},
        "containers": [{"name": "server", "args": ["--x"], "image": "i"}, {"name": "agent", "tty": False}],
        "tolerations": [{"operator": "Exists"}, {"operator": "Equal", "key": "k"}],
    },
    "status": {"replicas": 1},
}


def changed(*path: Any, to: Any) -> dict[str, Any]:
    result = copy.deepcopy(LIVE)
    location: Any = result
    for part in path[:-1]:
        location = location[part]
    location[path[-1]] = to
    return result


@pytest.mark.parametrize(
    "live",
    [
        changed("metadata", "labels", "others", to="9"),
        changed("metadata", "annotations", to={}),
        changed("status", to={"replicas": 5}),
        changed("spec", "strategy", to={"type": "Recreate"}),
        changed("spec", "containers", 1, "tty", to=True),
        changed("spec", "containers", to=list(reversed(LIVE["spec"]["containers"]))),
        {**LIVE, "apiVersion": "apps/v1", "kind": "Deployment"},
    ],
)
def test_what_others_change_is_not_ours(live: dict[str, Any]) -> None:
    shape = Shapes().of_object(DESIRED)
    assert fingerprint(live, shape) == fingerprint(LIVE, shape)


@pytest.mark.parametrize(
    "live",
    [
        changed("metadata", "labels", to={}),
        changed("metadata", "labels", "l", to="2"),
        changed("spec", "replicas", to=3),
        changed("spec", "containers", 0, "args", to=["--x", "--y"]),
        changed("spec", "containers", to=[*LIVE["spec"]["containers"], {"name": "more"}]),
        changed("spec", "containers", to=LIVE["spec"]["containers"][:1]),
        changed("spec", "tolerations", 1, "operator", to="Exists"),
        changed("spec", "tolerations", to="nonsense"),
        changed("spec", to=None),
    ],
)
def test_what_was_applied_is_ours(live: dict[str, Any]) -> None:
    shape = Shapes().of_object(DESIRED)
    assert fingerprint(live, shape) != fingerprint(LIVE, shape)


def test_members_are_distinguished_by_name_if_all_have_different_ones() -> None:
    assert list_key([{"name": "a"}, {"name": "b"}]) == "name"
    assert list_key([{"name": "a"}, {"name": "a"}]) == ""
    assert list_key([{"name": "a"}, {"port": 1}]) == ""
    assert list_key([{"mountPath": "/a", "other": 1}, {"mountPath": "/b"}]) == "mountPath"


def test_equal_shapes_are_one() -> None:
    shapes = Shapes()
    one = shapes.of_object({"metadata": {"name": "a"}, "spec": {"ports": [{"name": "http", "port": 1}]}})
    other = shapes.of_object({"metadata": {"name": "b"}, "spec": {"ports": [{"name": "http", "port": 2}]}})
    assert one is other


def test_the_order_of_a_map_does_not_matter() -> None:
    assert digest({"a": 1, "b": {"c": 2, "d": 3}}) == digest({"b": {"d": 3, "c": 2}, "a": 1})
    assert digest({"a": [1, 2]}) != digest({"a": [2, 1]})
