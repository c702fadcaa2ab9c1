"""What the API server records of fields says whether another apply would change anything."""

import copy
import json
from typing import Any

import pytest

from argosy.cluster.apply.owned_fields import is_applied

DESIRED: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"namespace": "team", "name": "a", "labels": {"l": "1"}, "finalizers": ["f"]},
    "spec": {
        "replicas": 1,
        "paused": False,
        "selector": {"matchLabels": {"l": "1"}},
        "tolerations": [{"operator": "Exists"}],
        "containers": [
            {
                "name": "server",
                "args": ["--x"],
                "env": [],
                "ports": [{"containerPort": 80}],
                "resources": {"limits": {"cpu": "1000m"}},
            },
        ],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    },
}
LIVE: dict[str, Any] = {
    "metadata": {
        "namespace": "team",
        "name": "a",
        "uid": "u",
        "labels": {"l": "1", "theirs": "2"},
        "finalizers": ["theirs", "f"],
    },
    "spec": {
        "replicas": 1,
        "strategy": {"type": "RollingUpdate"},
        "selector": {"matchLabels": {"l": "1"}},
        "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
        "containers": [
            {"name": "theirs"},
            {
                "name": "server",
                "args": ["--x"],
                "image": "i",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "resources": {"limits": {"cpu": "1"}},
            },
        ],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    },
}
CONTAINER = {
    ".": {},
    "f:name": {},
    "f:args": {},
    "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
    "f:resources": {"f:limits": {"f:cpu": {}}},
}
FIELDS: dict[str, Any] = {
    "f:metadata": {"f:labels": {"f:l": {}}, "f:finalizers": {'v:"f"': {}}},
    "f:spec": {
        "f:replicas": {},
        "f:paused": {},
        "f:selector": {},
        "f:tolerations": {},
        "f:containers": {'k:{"name":"server"}': CONTAINER},
        "f:volumes": {'k:{"name":"tmp"}': {".": {}, "f:name": {}}},
    },
}
SERVER = ("f:spec", "f:containers", 'k:{"name":"server"}')
DROPPED: Any = object()


def changed(value: Any, path: tuple[Any, ...], to: Any) -> Any:
    """Return a copy with another value at a path, or without it."""
    result = copy.deepcopy(value)
    location = result
    for part in path[:-1]:
        location = location[part]
    if to is DROPPED:
        del location[path[-1]]
    else:
        location[path[-1]] = to
    return result


def live(content: dict[str, Any] = LIVE, fields: dict[str, Any] = FIELDS, **entry: Any) -> dict[str, Any]:
    """Return a live object; `entry` overrides fields of its managedFields record."""
    ours = {"manager": "argosy", "operation": "Apply", "apiVersion": "apps/v1", "fieldsV1": fields, **entry}
    theirs = {"manager": "kubectl", "operation": "Update", "apiVersion": "apps/v1", "fieldsV1": {"f:status": {}}}
    return changed(content, ("metadata", "managedFields"), [theirs, ours])


def test_what_others_added_and_defaults_are_no_difference() -> None:
    assert is_applied(DESIRED, live(), "argosy")


@pytest.mark.parametrize(
    "entry", [{"manager": "kubectl"}, {"operation": "Update"}, {"apiVersion": "apps/v1beta1"}], ids=json.dumps
)
def test_what_this_manager_did_not_apply_differs(entry: dict[str, str]) -> None:
    assert not is_applied(DESIRED, live(**entry), "argosy")
    assert not is_applied(DESIRED, LIVE, "argosy")


@pytest.mark.parametrize(
    ("path", "to"),
    [
        (("metadata", "labels", "l"), "2"),
        (("metadata", "labels"), DROPPED),
        (("metadata", "finalizers"), ["theirs"]),
        (("spec", "replicas"), 3),
        (("spec", "replicas"), DROPPED),
        (("spec", "paused"), True),
        (("spec", "selector", "matchLabels"), {}),
        (("spec", "tolerations"), []),
        (("spec", "tolerations", 0, "operator"), "Equal"),
        (("spec", "containers", 1, "args"), ["--x", "--y"]),
        (("spec", "containers", 1, "name"), "other"),
        (("spec", "containers", 1, "ports", 0, "protocol"), "UDP"),
        (("spec", "containers", 1, "resources", "limits", "cpu"), "1001m"),
        (("spec", "containers", 1, "resources", "limits", "cpu"), "nonsense"),
        (("spec", "containers"), None),
        (("spec", "volumes", 0, "emptyDir"), DROPPED),
        (("spec",), None),
    ],
)
def test_a_value_that_was_changed_differs(path: tuple[Any, ...], to: Any) -> None:
    assert not is_applied(DESIRED, live(changed(LIVE, path, to)), "argosy")


@pytest.mark.parametrize(
    ("path", "to"),
    [
        (("f:spec", "f:replicas"), DROPPED),  # another manager changed it, be it to the same value
        (("f:spec", "f:former"), {}),  # it was desired once
        ((*SERVER, "f:image"), {}),
        (("f:spec", "f:containers", 'k:{"name":"former"}'), {"f:name": {}}),
        (("f:metadata", "f:finalizers"), {'v:"former"': {}}),
        (("f:metadata", "f:finalizers"), {"i:0": {}}),  # no list here identifies its members by position
    ],
)
def test_fields_that_are_not_those_desired_differ(path: tuple[Any, ...], to: Any) -> None:
    assert not is_applied(DESIRED, live(fields=changed(FIELDS, path, to)), "argosy")


def test_what_is_empty_may_be_recorded_or_not() -> None:
    recorded = changed(FIELDS, ("f:spec", "f:volumes", 'k:{"name":"tmp"}', "f:emptyDir"), {})
    recorded = changed(recorded, (*SERVER, "f:env"), {})
    assert is_applied(DESIRED, live(fields=recorded), "argosy")


def test_only_amounts_are_compared_as_such() -> None:
    content = changed(LIVE, ("spec", "containers", 1, "args"), ["1"])
    assert not is_applied(changed(DESIRED, ("spec", "containers", 0, "args"), ["1000m"]), live(content), "argosy")
