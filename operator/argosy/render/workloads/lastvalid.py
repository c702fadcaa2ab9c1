"""The last valid form of resources whose newest is wrong: what another process of the operator goes on from."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from argosy.api.documents import Resource
from argosy.api.meta import API_VERSION
from argosy.api.servingpool import ServingPool
from argosy.render.names import last_valid_name

from .metadata import LAST_VALID_LABEL, owned, pool_labels


def last_valid_configmap(pool: ServingPool, forms: Iterable[Resource]) -> dict[str, Any]:
    """A ConfigMap of the pool that holds each resource's last valid form as JSON, by its uid."""
    labels = {**pool_labels(pool), LAST_VALID_LABEL: "true"}
    rendered = owned("v1", "ConfigMap", last_valid_name(pool.name), pool, labels)
    data = {form.metadata.uid: json.dumps(_body(form), indent=1, sort_keys=True) + "\n" for form in forms}
    return {**rendered, "data": dict(sorted(data.items()))}


def parse_last_valid(configmap: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The bodies that stand in such a ConfigMap; what people made unreadable there is passed over."""
    bodies = []
    for text in (configmap.get("data") or {}).values():
        try:
            body = json.loads(text)
        except ValueError:
            continue
        if isinstance(body, dict):
            bodies.append(body)
    return bodies


def _body(form: Resource) -> dict[str, Any]:
    metadata = form.metadata
    return {
        "apiVersion": API_VERSION,
        "kind": form.kind,
        "metadata": {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid},
        "spec": form.spec.model_dump(mode="json", by_alias=True, exclude_none=True),
    }
