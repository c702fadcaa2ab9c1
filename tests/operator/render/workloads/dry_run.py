"""Objects as a real API server would store them."""

import json
from collections.abc import Mapping
from typing import Any

from e2e.cluster import Cluster
from tests.operator.render.workloads.cases import as_text

from argosy.render.workloads import KubernetesObject, object_identity


def changes_by_server(cluster: Cluster, objects: tuple[KubernetesObject, ...]) -> list[str]:
    """Apply the objects in a dry run; return the paths that the API server dropped or changed."""
    words = ("apply", "--server-side", "--field-manager=argosy", "--dry-run=server", "-o", "json", "-f", "-")
    answer = json.loads(cluster.kubectl(*words, stdin=as_text(objects), timeout_s=120))
    stored = {object_identity(item): item for item in answer["items"]}
    sent = {object_identity(item): item for item in objects}
    assert stored.keys() == sent.keys()
    return [path for identity, item in sent.items() for path in _differences(item, stored[identity], identity)]


def _differences(sent: Any, got: Any, path: str) -> list[str]:
    """Return the paths of what was sent and is missing or different; what the API server adds is its own."""
    if isinstance(sent, Mapping):
        if not isinstance(got, Mapping):
            return [f"{path}: {sent!r} became {got!r}"]
        return [difference for key in sent for difference in _differences(sent[key], got.get(key), f"{path}.{key}")]
    if isinstance(sent, list) and isinstance(got, list) and len(sent) == len(got):
        pairs = enumerate(zip(sent, got, strict=True))
        return [difference for at, (one, other) in pairs for difference in _differences(one, other, f"{path}[{at}]")]
    return [] if sent == got and type(sent) is type(got) else [f"{path}: {sent!r} became {got!r}"]
