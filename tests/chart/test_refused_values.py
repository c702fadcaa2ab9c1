"""What cannot be meant is refused before anything is installed, and the field is named."""

from typing import Any

import pytest
from tests.chart.conftest import Release

BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "a text for a number": ({"replicas": "two"}, "/replicas", "want integer"),
    "a field that there is not": ({"image": {}}, "''", "'image' not allowed"),
    "a misspelt field, deep": ({"images": {"operator": {"tagg": "1"}}}, "/images/operator", "'tagg' not allowed"),
    "no name of a namespace": ({"watchNamespaces": ["Team_A"]}, "/watchNamespaces/0", "does not match"),
    "a namespace twice": ({"watchNamespaces": ["a", "a"]}, "/watchNamespaces", "equal"),
    "a privileged port": ({"metrics": {"port": 80}}, "/metrics/port", "minimum"),
    "no pull policy": ({"images": {"pullPolicy": "Sometimes"}}, "/images/pullPolicy", "one of"),
    "a tag in the repository": (
        {"images": {"runtime": {"repository": "a/b:1"}}},
        "/images/runtime/repository",
        "does not match",
    ),
    "a short digest": ({"images": {"triton": {"digest": "sha256:12"}}}, "/images/triton/digest", "does not match"),
    "no quantity": ({"resources": {"limits": {"memory": "much"}}}, "/resources/limits/memory", "does not match"),
    "a truth value as text": ({"crds": {"keep": "yes"}}, "/crds/keep", "want boolean"),
    "a long name": ({"fullnameOverride": "a" * 51}, "/fullnameOverride", "maxLength"),
    "no name of a PriorityClass": (
        {"builds": {"priorityClass": {"name": "Low Priority"}}},
        "/builds/priorityClass/name",
        "does not match",
    ),
    "placeholders that take GPUs from others": (
        {"placeholders": {"priorityClass": {"value": 0}}},
        "/placeholders/priorityClass/value",
        "maximum",
    ),
    "a toleration's misspelt field": (
        {"tolerations": [{"efect": "NoSchedule"}]},
        "/tolerations/0",
        "'efect' not allowed",
    ),
    "a monitor of a service that there is not": (
        {"metrics": {"serviceMonitor": {"enabled": True}, "service": {"enabled": False}}},
        "metrics.service.enabled",
        "needs",
    ),
}


@pytest.mark.parametrize(("values", "field", "why"), BAD.values(), ids=BAD)
def test_it_is_refused_and_the_field_is_named(
    release: Release, helm: Any, values: dict[str, Any], field: str, why: str
) -> None:
    with pytest.raises(helm.HelmError) as refused:
        release.install({**values, "crds": {"install": False, **values.get("crds", {})}})
    assert field in str(refused.value)
    assert why in str(refused.value)
    assert not release.cluster.kubectl("get", "deployments,secrets", "-n", release.namespace, "-l", "owner=helm")
